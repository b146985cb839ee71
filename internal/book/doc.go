// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

// Package book is the address book of a node of package weft: where all nodes are, and which members
// were removed from which groups.
//
// [Facts] are what books tell each other, and what groups replicate. A [Book] merges facts, keeps them in a
// file, and tells the transport. A [Keeper] gossips: it brings the facts of this node to the others.
package book

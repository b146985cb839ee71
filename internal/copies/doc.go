// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

// Package copies has the copies of a group's state: snapshots in files, and the ways back from a
// snapshot, or from one survivor of a lost majority, into the directory of a node that is not open.
package copies

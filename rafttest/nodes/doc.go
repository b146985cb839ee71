// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

// Package nodes runs whole nodes in virtual time.
package nodes

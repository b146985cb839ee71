// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

// Package lab is the kit of benches: what a bench needs besides its question. A [Section] has the
// tables of a bench, for a terminal, for a document and as JSON; [Turns] measures sides in turns,
// and [Rounds] are the figures of a side by round.
package lab

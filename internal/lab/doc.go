// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

// Package lab is the kit of benches: what a bench needs besides its question. A [Cluster] is nodes as
// processes, of a [Program], on the hosts of a [Network], whose links may have a rate, delays and
// cuts. A [Load] makes calls and measures the answers. [Turns] measures sides in turns, [Rounds] are
// the figures of a side by round, and a [Section] has the tables, for a terminal, for a document and
// as JSON.
package lab

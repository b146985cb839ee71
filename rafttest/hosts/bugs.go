// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package hosts

// Bug is a mistake that is made on purpose.
type Bug byte

// The mistakes.
const (
	NoBug Bug = iota
	// ReusedReadIDs numbers read requests from 1 again after a restart.
	ReusedReadIDs
)

// wrap puts a mistake around a core.
func (b Bug) wrap(c Core, m *machine) Core {
	return c
}

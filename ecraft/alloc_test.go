// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package ecraft_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weftraft/weft/ecraft"
)

// TestAllocations counts the allocations for an entry after the pools are warm: none in this
// package. The library allocates less than 1 KiB for each call that multiplies a matrix, which is
// one call an entry for groups of five.
func TestAllocations(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector empties pools at random")
	}
	p := payload(1, 4096)
	h3, units3 := sent(3, 2, p)
	h5, units5 := sent(5, 3, p)
	dst := make([]byte, 0, 8192)
	c3, c5 := ecraft.NewCodeword(h3, p), ecraft.NewCodeword(h5, p)
	data := ecraft.Seal(nil, h5, 2, 0, c5, nil)
	strips := []ecraft.Strip{c5.Strip(1, 0, 2), c5.Strip(2, 0, 2), c5.Strip(3, 0, 2)}
	strip := ecraft.AppendStrip(nil, strips[0])
	held := []int{6, 2, 2, 2, 0}
	for name, c := range map[string]struct {
		most float64
		run  func()
	}{
		"encode, no parity": {0, func() {
			c := ecraft.NewCodeword(h3, p)
			c.Prepare(units3)
			c.Free()
		}},
		"encode": {1, func() {
			c := ecraft.NewCodeword(h5, p)
			c.Prepare(units5)
			c.Free()
		}},
		"seal units":   {0, func() { ecraft.Seal(dst, h3, 2, 0, c3, nil) }},
		"seal parity":  {0, func() { ecraft.Seal(dst, h5, 5, 0, c5, nil) }},
		"seal a whole": {0, func() { ecraft.Seal(dst, h5, 1, 0, c5, nil) }},
		"sealed length": {0, func() {
			ecraft.SealedLen(h5, 3, 0, nil)
			h5.Fingerprint()
		}},
		"decode": {2, func() { // a kernel's blocks, and the last bytes
			a := ecraft.NewAssembly(h5)
			for _, s := range strips {
				_, _ = a.Add(s) // held below to succeed
			}
			if _, err := a.AppendPayload(dst); err != nil {
				t.Error(err)
			}
			a.Free()
		}},
		"parse a strip": {0, func() { _, _, _ = ecraft.ParseStrip(strip) }},
		"parse":         {3, func() { _, _ = ecraft.Parse(data, 0, 2) }}, // the envelope, its members and units
		"covered":       {0, func() { ecraft.Covered(6, 3, held) }},
	} {
		got := testing.AllocsPerRun(200, c.run)
		require.LessOrEqual(t, got, c.most, name)
	}
}

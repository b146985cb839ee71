// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package ecraft_test

import (
	"fmt"
	"strings"

	"github.com/weftraft/weft/ecraft"
)

// In a group of five, any three of the four followers give a payload back, of which each
// holds a third.
func Example() {
	payload := []byte(strings.Repeat("weft ", 1200))
	layout := ecraft.NewLayout(5, 4)
	units := layout.UnitsAt(3)
	header := &ecraft.Header{
		Kind: ecraft.Coded, PayloadLen: len(payload), PayloadCRC: ecraft.Checksum(payload),
		Layout: layout, Encoder: 1, Members: []uint64{2, 3, 4, 5},
		Units: []uint8{uint8(units), uint8(units), uint8(units), uint8(units)},
	}
	word := ecraft.NewCodeword(header, payload)
	defer word.Free()
	assembly := ecraft.NewAssembly(header)
	defer assembly.Free()
	for _, slot := range []int{0, 2, 3} {
		if _, err := assembly.Add(word.Strip(slot, 0, units)); err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println("missing units:", assembly.Missing())
	}
	got, err := assembly.Payload()
	fmt.Println(string(got) == string(payload), err)
	// Output:
	// missing units: 4
	// missing units: 2
	// missing units: 0
	// true <nil>
}

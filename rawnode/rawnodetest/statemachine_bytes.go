// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package rawnodetest

import (
	"bytes"

	"github.com/weftraft/weft/rawnode"
)

// ruleBytes applies commands with bytes that are no UTF-8. A state that writes strings as JSON writes
// U+FFFD for each such byte: two keys become one, and only at replicas that read the state back.
func ruleBytes(s *stage) {
	t := &story{}
	for i := range 12 {
		c := s.f.Command(s.rng)
		at := letter(c, s.rng.IntN(len(c)+1))
		t.batches = append(t.batches, rawnode.Batch{Index: uint64(5*i + 4), Host: []byte("host"), Commands: [][]byte{
			garbled(c, at, 0xff), garbled(c, at, 0xfe), garbled(c, at, 0xff), c,
		}})
	}
	// Each command comes before the snapshot and behind it.
	for _, b := range t.batches[:12] {
		b.Index += 60
		t.batches = append(t.batches, b)
	}
	const half = 12
	when(func() { s.learn(t) }, "commands with a byte that is no UTF-8: a state that refuses such a command returns an error as the result")
	when(func() {
		m := s.fresh()
		m.apply(t, 0, half)
		snap := m.snap(t, half)
		body := drain(snap)
		other := s.restored(snap.Meta(), bytes.NewReader(body), t, half)
		when(func() { other.apply(t, half, len(t.batches)) }, "after a restored snapshot")
	}, keepBytes)
}

// keepBytes is what to do about a violation.
const keepBytes = "commands had bytes that are no UTF-8; refuse such commands in Apply, or write keys as []byte, because JSON changes strings that are no UTF-8"

// letter returns the place of an ASCII letter in a command, at or behind from, or else before from; without a letter, the end.
// A letter is more likely a part of a key or a name than of the command's structure.
func letter(c []byte, from int) int {
	for i := range c {
		at := (from + i) % len(c)
		if x := c[at] | 0x20; 'a' <= x && x <= 'z' {
			return at
		}
	}
	return len(c)
}

// garbled returns a command with the byte at a place replaced, or appended.
func garbled(c []byte, at int, by byte) []byte {
	c = append(append([]byte{}, c...), 0)
	if c[at] = by; at < len(c)-1 {
		c = c[:len(c)-1]
	}
	return c
}

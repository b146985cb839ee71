// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package live

import (
	"bytes"
	"hash/fnv"
	"math/bits"
	"math/rand/v2"
	"strings"
)

// values converts the short names of values in a history to the values in the store: the name, and
// bytes computed from the name.
type values struct {
	largest int // bytes; 0 for the name alone
}

// damaged begins the name of a value that no client wrote. No order of writes explains such a
// value.
const damaged = "damaged: "

// of returns the value with a name. Sizes are spread evenly over the orders of magnitude.
func (v values) of(name string) string {
	if v.largest == 0 || name == "" {
		return name
	}
	h := fnv.New64a()
	_, _ = h.Write([]byte(name)) // a hash takes everything
	rng := rand.New(rand.NewPCG(h.Sum64(), 0))
	most := max(v.largest>>rng.IntN(bits.Len(uint(v.largest))), 1)
	room := max(most-rng.IntN(most/2+1)-len(name)-1, 0)
	var b strings.Builder
	b.Grow(len(name) + 1 + room)
	b.WriteString(name)
	b.WriteByte('|')
	for range room {
		b.WriteByte(byte(rng.Uint32()))
	}
	return b.String()
}

// id returns the name of a value.
func (v values) id(value []byte) string {
	if v.largest == 0 {
		return string(value)
	}
	name, _, ok := bytes.Cut(value, []byte("|"))
	if !ok || v.of(string(name)) != string(value) {
		return damaged + string(value[:min(len(value), 32)])
	}
	return string(name)
}

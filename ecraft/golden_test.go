// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package ecraft_test

import (
	"encoding/hex"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weftraft/weft/ecraft"
)

// examples returns the bytes shown in the description of the format: blocks of lines of
// hexadecimal digits in front of a bar.
func examples(t *testing.T) (out [][]byte) {
	doc, err := os.ReadFile("seal.go")
	require.NoError(t, err)
	inExample := false
	for line := range strings.Lines(string(doc)) {
		digits, _, ok := strings.Cut(strings.TrimPrefix(line, "//\t"), "  | ")
		b, err := hex.DecodeString(strings.ReplaceAll(digits, " ", ""))
		if ok = ok && err == nil; ok {
			if !inExample {
				out = append(out, nil)
			}
			out[len(out)-1] = append(out[len(out)-1], b...)
		}
		inExample = ok
	}
	require.Len(t, out, 3)
	return out
}

// TestGolden holds the code to the examples in the head of seal.go, and so to the
// bytes that logs are full of.
func TestGolden(t *testing.T) {
	want := examples(t)
	p := []byte("Hello, Weft!")
	h := atLevel(5, 3, p)
	c := ecraft.NewCodeword(h, p)
	carrier := &ecraft.Header{Kind: ecraft.Carrier, Encoder: 1, Riders: []ecraft.Rider{
		{ID: ecraft.ID{Term: 2, Index: 7}, Totals: []uint8{3, 3, 3, 0}},
	}}
	old := []*ecraft.Codeword{c}
	same := func(want, got []byte) {
		t.Helper()
		require.Equal(t, hex.Dump(want), hex.Dump(got))
	}
	same(want[0], ecraft.Seal(nil, h, 4, 1, c, nil))
	same(want[1], ecraft.Seal(nil, carrier, 4, 1, nil, old))
	forFive := ecraft.Seal(nil, carrier, 5, 1, nil, old)
	same(want[2], forFive[len(forFive)-12:])

	// And back.
	e, err := ecraft.Parse(want[0], 1, 4)
	require.NoError(t, err)
	require.Equal(t, *h, e.Header)
	require.Equal(t, "H", string(e.Prefix))
	k, err := ecraft.Parse(want[1], 1, 4)
	require.NoError(t, err)
	require.Equal(t, *carrier, k.Header)
	a := ecraft.NewAssembly(&e.Header)
	for _, s := range []ecraft.Strip{e.Own, k.RiderUnits[0], c.Strip(0, 0, 3)} {
		_, err := a.Add(s)
		require.NoError(t, err)
	}
	got, err := a.Payload()
	require.NoError(t, err)
	require.Equal(t, p, got)
}

// TestDocumentedBounds looks for the package's bounds in the head of seal.go.
func TestDocumentedBounds(t *testing.T) {
	doc, err := os.ReadFile("seal.go")
	require.NoError(t, err)
	text := regexp.MustCompile(` +`).ReplaceAllString(string(doc), " ")
	for _, want := range []string{
		fmt.Sprintf("P at most %d", ecraft.MaxPrefix),
		fmt.Sprintf("at most %d GiB", ecraft.MaxPayload>>30),
		fmt.Sprintf("1 to %d", ecraft.MaxSlots),
		fmt.Sprintf("riders at most %d\n", ecraft.MaxRiders),
		fmt.Sprintf("coded: 1 to %d, and", ecraft.MaxD),
		fmt.Sprintf("first + count at most %d", ecraft.MaxD),
		fmt.Sprintf("not raised at most %d\n", ecraft.MaxD),
		fmt.Sprintf("D times slots at most %d", ecraft.MaxUnits),
		fmt.Sprintf("%d whole, %d coded, %d carrier", ecraft.Whole, ecraft.Coded, ecraft.Carrier),
	} {
		require.Contains(t, text, want)
	}
}

// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package frames

import (
	"bytes"
	"io"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"
)

// write returns a row and a state as frames.
func write(t testing.TB, row, state []byte) []byte {
	var b bytes.Buffer
	w := &Writer{To: &b, Number: 1}
	require.NoError(t, w.Frame(Session, row))
	n, err := w.Write(state)
	require.NoError(t, err)
	require.Equal(t, len(state), n)
	require.NoError(t, w.End())
	return b.Bytes()
}

// read reads what write wrote, or the first mistake.
func read(from io.Reader) (row, state []byte, err error) {
	r := &Reader{From: from, Number: 1}
	if err := r.Next(); err != nil {
		return nil, nil, err
	}
	row = bytes.Clone(r.Data)
	if err := r.Next(); err != nil {
		return nil, nil, err
	}
	if state, err = io.ReadAll(r); err != nil {
		return nil, nil, err
	}
	return row, state, r.AtEnd()
}

// What was written is read, whatever the pieces in which it comes.
func TestFramesAreReadAsTheyWereWritten(t *testing.T) {
	for _, size := range []int{0, 1, pieceBytes - 1, pieceBytes, pieceBytes + 1, 3*pieceBytes + 7} {
		state := bytes.Repeat([]byte{7}, size)
		b := write(t, []byte("row"), state)
		for _, from := range []io.Reader{bytes.NewReader(b), iotest.HalfReader(bytes.NewReader(b)), iotest.DataErrReader(bytes.NewReader(b))} {
			row, got, err := read(from)
			require.NoError(t, err)
			require.Equal(t, "row", string(row))
			require.True(t, bytes.Equal(state, got))
		}
	}
}

// A frame beyond the bound is refused where it would be written.
func TestFrameBeyondTheBoundIsRefused(t *testing.T) {
	w := &Writer{To: io.Discard}
	require.ErrorIs(t, w.Frame(Session, make([]byte, maxFrame+1)), errTooLarge)
	require.ErrorIs(t, w.End(), errTooLarge, "nothing comes behind what failed")
}

// Arbitrary bytes are an error, never a panic, and never another state than was written.
func FuzzReader(f *testing.F) {
	whole := write(f, []byte("row"), []byte("state"))
	f.Add(whole)
	f.Add(whole[:len(whole)-1])
	f.Add([]byte{Piece, 0xff, 0xff, 0xff, 0xff})
	f.Fuzz(func(t *testing.T, b []byte) {
		row, state, err := read(bytes.NewReader(b))
		if err != nil {
			return
		}
		again := write(t, row, state)
		row2, state2, err := read(bytes.NewReader(again))
		require.NoError(t, err)
		require.Equal(t, row, row2)
		require.True(t, bytes.Equal(state, state2))
	})
}

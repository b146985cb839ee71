// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package copies

import (
	"bytes"
	"context"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// FuzzSnapshot reads what may be in a file: it is what was written, or it is refused.
func FuzzSnapshot(f *testing.F) {
	write := func(t testing.TB, state string) []byte {
		var b bytes.Buffer
		info, err := NewInfo(7, 1, 9)
		require.NoError(t, err)
		require.NoError(t, Write(context.Background(), &b, info, strings.NewReader(state)))
		return b.Bytes()
	}
	f.Add([]byte{}, 0, byte(0))
	f.Add(write(f, ""), 3, byte(1))
	f.Add(write(f, "a state"), 150, byte(4))
	f.Fuzz(func(t *testing.T, data []byte, at int, flip byte) {
		read := func(data []byte) (string, error) {
			s, err := newReader(bytes.NewReader(data))
			if err != nil {
				return "", err
			}
			state, err := io.ReadAll(s)
			return string(state), err
		}
		if _, err := read(data); err != nil {
			require.ErrorIs(t, err, ErrSnapshot)
		}
		whole := write(t, string(data))
		state, err := read(whole)
		require.NoError(t, err)
		require.Equal(t, string(data), state)
		if at < 0 || at >= len(whole) || flip == 0 {
			return
		}
		_, err = read(whole[:at])
		require.ErrorIs(t, err, ErrSnapshot)
		whole[at] ^= flip
		_, err = read(whole)
		require.ErrorIs(t, err, ErrSnapshot)
	})
}

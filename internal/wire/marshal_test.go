// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestMessageSurvivesBinaryForm(t *testing.T) {
	for i, m := range samples() {
		m.Background = i%2 == 1
		b, err := m.MarshalBinary()
		require.NoError(t, err)
		var got Message
		require.NoError(t, got.UnmarshalBinary(b))
		requireEqual(t, m, got)
		require.Equal(t, m.Background, got.Background)
	}
}

func TestBinaryFormHoldsOneMessageOfAKnownKind(t *testing.T) {
	one, err := samples()[0].MarshalBinary()
	require.NoError(t, err)
	strange := append([]byte(nil), one...)
	strange[1] = byte(endOfKinds)
	for name, b := range map[string][]byte{
		"nothing": nil, "no message": one[:1], "another class": append([]byte{2}, one[1:]...),
		"cut off": one[:len(one)-1], "two messages": append(append([]byte(nil), one...), one[1:]...), "unknown kind": strange,
	} {
		var m Message
		require.ErrorIs(t, m.UnmarshalBinary(b), ErrFrame, name)
		require.Equal(t, Message{}, m, name)
	}
}

func FuzzBinaryForm(f *testing.F) {
	for _, m := range samples() {
		b, err := m.MarshalBinary()
		require.NoError(f, err)
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var m Message
		if err := m.UnmarshalBinary(b); err != nil {
			require.True(t, errors.Is(err, ErrFrame) || errors.Is(err, ErrMemory), err)
			return
		}
		again, err := m.MarshalBinary()
		require.NoError(t, err)
		var got Message
		require.NoError(t, got.UnmarshalBinary(again))
		requireEqual(t, m, got)
	})
}

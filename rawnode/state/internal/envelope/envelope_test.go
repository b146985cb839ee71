// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package envelope

import (
	"errors"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weftraft/weft/rawnode/session"
)

// Whatever bytes come as a command, the outcome is a result, the same at two replicas,
// and no panic.
func FuzzCommands(f *testing.F) {
	for _, c := range [][]byte{nil, Plain([]byte("a")), Open(), Inside(1, 1, 0, []byte("b")), Inside(1, 2, 1, nil), End(1), {9}} {
		f.Add(c)
	}
	f.Fuzz(func(t *testing.T, command []byte) {
		var rows [2]map[session.ID]string
		var results [2]any
		for i := range rows {
			s, err := new(session.Limits{Sessions: 2, Results: 2, ResultBytes: 10})
			require.NoError(t, err)
			_, err = s.Apply(Open(), nil)
			require.NoError(t, err)
			for range 2 {
				results[i], err = s.Apply(command, func(c []byte) (any, error) { return c, nil })
				require.NoError(t, err)
			}
			rows[i] = map[session.ID]string{}
			for id, row := range s.All() {
				rows[i][id] = string(row)
			}
		}
		require.Equal(t, rows[0], rows[1])
		require.Equal(t, results[0], results[1])
	})
}

// A client that tries again gets the result of the first time, of the same type.
func TestResultsAreKept(t *testing.T) {
	for i, want := range []any{nil, []byte("a"), []byte{}, "b", "", true, false, 0, -3, int64(1) << 40, uint64(1) << 63} {
		s, err := new(session.DefaultLimits)
		require.NoError(t, err)
		id, err := s.Apply(Open(), nil)
		require.NoError(t, err)
		for range 2 {
			got, err := s.Apply(Inside(id.(session.ID), 1, 0, nil), func([]byte) (any, error) { return want, nil })
			require.NoError(t, err)
			require.Equal(t, want, got, "result %d", i)
		}
	}
	require.Equal(t, ErrResult, decodeResult([]byte{resultInt}))
	require.Equal(t, ErrResult, decodeResult([]byte{resultBool, 1, 1}))
}

// A command that could not be applied is not noted as applied.
func TestErrorLeavesTheTable(t *testing.T) {
	s, err := new(session.DefaultLimits)
	require.NoError(t, err)
	id, err := s.Apply(Open(), nil)
	require.NoError(t, err)
	c := Inside(id.(session.ID), 1, 0, []byte("x"))
	broken := errors.New("broken")
	_, err = s.Apply(c, func([]byte) (any, error) { return nil, broken })
	require.ErrorIs(t, err, broken)
	for range 2 {
		got, err := s.Apply(c, func(b []byte) (any, error) { return b, nil })
		require.NoError(t, err)
		require.Equal(t, []byte("x"), got)
	}
}

// TestSessionFitsAFrame: what a session keeps is one frame of a checkpoint, of at most 32 MiB. A session that keeps
// more would let no checkpoint be made, and the log grow.
func TestSessionFitsAFrame(t *testing.T) {
	most := session.Limits{Sessions: 1, Results: maxResults, ResultBytes: maxKeptBytes}
	require.NoError(t, CheckLimits(most))
	s, err := Load(most, nil)
	require.NoError(t, err)
	id := session.ID(1)
	_, err = s.Apply(Open(), nil)
	require.NoError(t, err)
	const far = math.MaxUint64 / (maxResults + 2) // between two commands
	value := make([]byte, maxKeptBytes/maxResults-1)
	for i := range uint64(maxResults + 1) {
		if i == maxResults {
			value = make([]byte, maxResultBytes) // the last counts whole
		}
		_, err = s.Apply(Inside(id, (i+1)*far, 0, []byte{1}), func([]byte) (any, error) { return value, nil })
		require.NoError(t, err)
	}
	for id, row := range s.All() {
		require.Less(t, len(EncodeRow(id, row)), 32<<20)
	}
	most.Results++
	require.ErrorContains(t, CheckLimits(most), "Results is 1048577, want at most 1048576")
}

// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package world

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestAgendaOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var a Agenda
		times := rapid.SliceOf(rapid.IntRange(0, 5)).Draw(t, "times")
		type mark struct {
			at time.Duration
			no int
		}
		var got []mark
		for no, at := range times {
			a.At(time.Duration(at), func() { got = append(got, mark{a.Now(), no}) })
		}
		for a.Step(4) {
		}
		require.EqualValues(t, 4, a.Now())
		due := 0
		for _, at := range times {
			if at <= 4 {
				due++
			}
		}
		require.Len(t, got, due)
		for i, m := range got {
			require.EqualValues(t, times[m.no], m.at)
			if i > 0 {
				before := got[i-1]
				require.True(t, before.at < m.at || before.at == m.at && before.no < m.no, "%v before %v", before, m)
			}
		}
	})
}

func TestAgendaPastIsNow(t *testing.T) {
	var a Agenda
	require.False(t, a.Step(10))
	ran := false
	a.At(3, func() { ran = true })
	require.True(t, a.Step(10))
	require.True(t, ran)
	require.EqualValues(t, 10, a.Now())
}

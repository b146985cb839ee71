// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package quiet

import (
	"bytes"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// flood has a line come every so often for some time, and returns when lines were
// logged, since the first, and the sum of what was left out.
func flood(l *Log[string], start time.Time, every, lasts time.Duration) (logged []time.Duration, leftOut uint64) {
	for at := time.Duration(0); at < lasts; at += every {
		if n, due := l.due("kind", start.Add(at)); due {
			logged = append(logged, at)
			leftOut += n
		}
	}
	return logged, leftOut
}

func TestFloodIsLoggedWithPausesThatGrow(t *testing.T) {
	var l Log[string]
	start := time.Unix(1e9, 0)
	const every = 100 * time.Microsecond
	logged, leftOut := flood(&l, start, every, 15*time.Second)
	require.Equal(t, []time.Duration{0, time.Second, 3 * time.Second, 7 * time.Second}, logged)
	require.Equal(t, uint64(7*time.Second/every)-3, leftOut, "all but those that were logged")

	logged, _ = flood(&l, start.Add(15*time.Second), time.Second, 24*time.Hour)
	require.Less(t, len(logged), 24*6+12, "one in ten minutes in the end")
	require.Greater(t, len(logged), 24*6-12)
}

func TestKindsDoNotHideEachOther(t *testing.T) {
	var l Log[string]
	now := time.Unix(1e9, 0)
	for _, kind := range []string{"one", "other"} {
		_, due := l.due(kind, now)
		require.True(t, due)
		_, due = l.due(kind, now)
		require.False(t, due)
	}
}

// A stranger that comes as another gateway each time costs neither memory nor lines without a bound, and hides no
// kind that is known; when it has gone, kinds are told apart again.
func TestKindsWithoutEndAreBounded(t *testing.T) {
	var l Log[int]
	now := time.Unix(1e9, 0)
	lines := 0
	for kind := range 10 * maxKinds {
		if _, due := l.due(kind, now); due {
			lines++
		}
	}
	require.Len(t, l.kinds, maxKinds)
	require.Equal(t, maxKinds+1, lines)
	leftOut, due := l.due(10*maxKinds, now.Add(firstPause))
	require.True(t, due)
	require.EqualValues(t, 9*maxKinds-1, leftOut)
	_, due = l.due(1, now.Add(firstPause))
	require.True(t, due, "a kind that is known has a pause of its own")

	for kind := range 2 {
		_, due = l.due(-1-kind, now.Add(2*maxPause))
		require.True(t, due)
	}
	require.Len(t, l.kinds, 2)
}

func TestLineThatComesNowAndThenIsLoggedLessAndLess(t *testing.T) {
	var l Log[string]
	logged, _ := flood(&l, time.Unix(1e9, 0), 2*time.Second, time.Minute)
	require.Equal(t, []time.Duration{0, 2 * time.Second, 4 * time.Second, 8 * time.Second, 16 * time.Second, 32 * time.Second}, logged)
}

func TestKindThatWasSilentBeginsAnew(t *testing.T) {
	var l Log[string]
	start := time.Unix(1e9, 0)
	flood(&l, start, time.Millisecond, 20*time.Second) // the pause is 16 s
	logged, leftOut := flood(&l, start.Add(20*time.Second+maxPause), time.Millisecond, 2*time.Second)
	require.Equal(t, []time.Duration{0, time.Second}, logged)
	require.Greater(t, leftOut, uint64(1000), "what was left out before is not forgotten")
}

func TestLinesSayHowManyWereLeftOut(t *testing.T) {
	var out bytes.Buffer
	logger := slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: slog.LevelWarn}))
	var l Log[int]
	for range 3 {
		l.Log(logger, slog.LevelInfo, 0, "nobody listens")
		l.Log(logger, slog.LevelWarn, 0, "trouble", "with", "a peer")
	}
	require.Equal(t, 1, bytes.Count(out.Bytes(), []byte("\n")))
	require.Contains(t, out.String(), `msg=trouble with="a peer"`)
	require.NotContains(t, out.String(), "left_out")

	l.kinds[0].next = time.Time{} // as if the pause were over
	l.Log(logger, slog.LevelWarn, 0, "trouble")
	require.Contains(t, out.String(), "msg=trouble left_out=2")
}

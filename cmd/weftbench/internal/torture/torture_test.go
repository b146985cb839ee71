// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package torture

import (
	"crypto/sha256"
	"errors"
	"math"
	"testing"

	"github.com/anishathalye/porcupine"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/weftraft/weft/cmd/kvdemo/kvpb"
)

func failure(t *testing.T, code codes.Code, text string, verdict kvpb.Outcome_Verdict) error {
	t.Helper()
	s, err := status.New(code, text).WithDetails(&kvpb.Outcome{Verdict: verdict})
	require.NoError(t, err)
	return s.Err()
}

func TestJudge(t *testing.T) {
	require.Equal(t, acknowledged, judge(nil))
	require.Equal(t, refused, judge(failure(t, codes.Unavailable, "no leader", kvpb.Outcome_REFUSED)))
	require.Equal(t, unknown, judge(failure(t, codes.DeadlineExceeded, "too late", kvpb.Outcome_UNKNOWN)))
	require.Equal(t, refused, judge(status.Error(codes.Unavailable, `connection error: desc = "transport: Error while dialing: refused"`)))
	require.Equal(t, unknown, judge(status.Error(codes.Unavailable, "error reading from server: EOF")))
	require.Equal(t, unknown, judge(errors.New("anything")))
}

// The outcomes that a writer has seen, and the values that a replica may then have.
func TestWants(t *testing.T) {
	for _, c := range []struct {
		want          want
		there, absent bool
	}{
		{want{put: acknowledged}, true, false},
		{want{put: refused}, false, true},
		{want{put: unknown}, true, true},
		{want{put: acknowledged, gone: true, delete: acknowledged}, false, true},
		{want{put: acknowledged, gone: true, delete: refused}, true, false},
		{want{put: acknowledged, gone: true, delete: unknown}, true, true},
	} {
		there, absent := c.want.allows()
		require.Equal(t, c.there, there, "%+v", c.want)
		require.Equal(t, c.absent, absent, "%+v", c.want)
	}
}

// Each broken promise is found.
func TestCompareFinds(t *testing.T) {
	sum := func(v string) (s [sha256.Size]byte) { return sha256.Sum256([]byte(v)) }
	bytesOf := func(v string) []byte { s := sum(v); return s[:] }
	r := &run{hot: newHot(1), writers: []*writer{{wants: map[string]want{
		"there": {sum: sum("1"), put: acknowledged}, "refused": {sum: sum("2"), put: refused}, "doubt": {sum: sum("3"), put: unknown},
		"gone": {sum: sum("4"), put: acknowledged, gone: true, delete: acknowledged},
	}}}}
	require.NoError(t, r.compare(map[string][]byte{"there": bytesOf("1")}))
	require.NoError(t, r.compare(map[string][]byte{"there": bytesOf("1"), "doubt": bytesOf("3")}))
	require.Equal(t, 1, r.sum.UnknownThere)
	for want, held := range map[string]map[string][]byte{
		"there is lost":         {},
		"refused is there":      {"there": bytesOf("1"), "refused": bytesOf("2")},
		"gone is there":         {"there": bytesOf("1"), "gone": bytesOf("4")},
		"never written to it":   {"there": bytesOf("2")},
		"of which nobody wrote": {"there": bytesOf("1"), "other": bytesOf("5")},
	} {
		require.ErrorContains(t, r.compare(held), want)
	}
}

// The check finds a read that misses an acknowledged write. A read that misses a write
// of unknown outcome is not wrong.
func TestHistories(t *testing.T) {
	put := func(v string, call, end int64) porcupine.Operation {
		return porcupine.Operation{Input: hotCall{put: true, value: v}, Output: "", Call: call, Return: end}
	}
	get := func(v string, call, end int64) porcupine.Operation {
		return porcupine.Operation{ClientId: 1, Input: hotCall{}, Output: v, Call: call, Return: end}
	}
	require.True(t, porcupine.CheckOperations(register, []porcupine.Operation{put("a", 1, 2), get("a", 3, 4)}))
	require.False(t, porcupine.CheckOperations(register, []porcupine.Operation{put("a", 1, 2), get("", 3, 4)}))
	require.True(t, porcupine.CheckOperations(register, []porcupine.Operation{put("a", 1, math.MaxInt64), get("", 3, 4), get("a", 5, 6)}))
	require.False(t, porcupine.CheckOperations(register, []porcupine.Operation{put("a", 1, math.MaxInt64), get("a", 3, 4), get("", 5, 6)}))
}

// Whoever is killed, it is one node or more, and the leader half of the time.
func TestVictims(t *testing.T) {
	r := newTestRun(3)
	leader := r.cluster.Nodes[1]
	alone, all := 0, 0
	for range 1000 {
		switch v := r.victims(leader); {
		case len(v) == 1 && v[0] == leader:
			alone++
		case len(v) == 3:
			all++
		default:
			require.NotEmpty(t, v)
		}
	}
	require.InDelta(t, 500, alone, 100)
	require.Positive(t, all)
}

// A put whose outcome is unknown is left out of a check if nobody has seen its value,
// and only then: what a read has returned was put.
func TestUnseenPutsAreLeftOut(t *testing.T) {
	put := func(value string, end int64) porcupine.Operation {
		return porcupine.Operation{Input: hotCall{put: true, value: value}, Return: end}
	}
	get := porcupine.Operation{Input: hotCall{}, Output: "seen", Return: 9}
	all := []porcupine.Operation{put("done", 5), put("seen", math.MaxInt64), put("unseen", math.MaxInt64), get}
	require.Equal(t, []porcupine.Operation{all[0], all[1], all[3]}, withoutUnseen(all))
}

// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/weftraft/weft/cmd/kvdemo/internal/kv"
	"github.com/weftraft/weft/cmd/kvdemo/kvpb"
	"github.com/weftraft/weft/leases"
	"github.com/weftraft/weft/rawnode"
)

// No command may give a key another value that its spans leave out. A key that leases
// cannot name stands for every key, and so does a system key.
func TestSpansOfCommands(t *testing.T) {
	long := strings.Repeat("k", leases.MaxKey)
	for _, c := range []struct {
		command kv.Command
		want    []leases.Span
	}{
		{kv.Command{Op: kv.OpPut, Key: "k", Value: []byte("v")}, []leases.Span{leases.KeySpan("k")}},
		{kv.Command{Op: kv.OpPut, Key: "k", Session: 3, Sequence: 1}, []leases.Span{leases.KeySpan("k")}},
		{kv.Command{Op: kv.OpDelete, Key: "k"}, []leases.Span{leases.KeySpan("k")}},
		{kv.Command{Op: kv.OpFinish, Key: "k", Size: 1 << 20}, []leases.Span{leases.KeySpan("k")}},
		{kv.Command{Op: kv.OpPut, Key: long}, nil},
		{kv.Command{Op: kv.OpPut, Key: long[1:]}, []leases.Span{leases.KeySpan(long[1:])}},
		{kv.Command{Op: kv.OpSystem, Key: "groups"}, nil},
		{kv.Command{Op: kv.OpPart, Size: 1 << 20, Value: []byte("v")}, []leases.Span{}},
		{kv.Command{Op: kv.OpOpenSession}, []leases.Span{}},
	} {
		require.Equal(t, c.want, writtenSpans(c.command.Encode()), "%v", c.command)
	}
	require.Nil(t, writtenSpans(nil))
	require.Nil(t, writtenSpans([]byte{99}))
	require.Equal(t, leases.Span{}, keySpan(long))
}

func TestSpanOfAPrefix(t *testing.T) {
	for prefix, want := range map[string]leases.Span{
		"": {}, "a": {Start: "a", End: "b"}, "a\xff\xff": {Start: "a\xff\xff", End: "b"}, "\xff": {Start: "\xff"},
		"a\xfe":                  {Start: "a\xfe", End: "a\xff"},
		strings.Repeat("z", 600): {Start: strings.Repeat("z", 512), End: strings.Repeat("z", 511) + "{"},
	} {
		require.Equal(t, want, prefixSpan(prefix))
	}
}

// Each policy of a client is one of the host's, about the key that is read, and the
// answer says what served the read.
func TestReadPolicies(t *testing.T) {
	s, host := testService(t)
	s.id = 7
	_, err := s.Put(t.Context(), &kvpb.PutRequest{Key: "k"})
	require.NoError(t, err)
	key := []leases.Span{leases.KeySpan("k")}
	for _, c := range []struct {
		policy *kvpb.ReadPolicy
		want   rawnode.ReadOptions
	}{
		{nil, rawnode.ReadOptions{Spans: key}},
		{&kvpb.ReadPolicy{Kind: kvpb.ReadPolicy_RESPONDER}, rawnode.ReadOptions{Policy: rawnode.AtResponder{}, Spans: key}},
		{&kvpb.ReadPolicy{Kind: kvpb.ReadPolicy_LEADER}, rawnode.ReadOptions{Policy: rawnode.LeaderLease{}}},
		{&kvpb.ReadPolicy{Kind: kvpb.ReadPolicy_QUORUM}, rawnode.ReadOptions{Policy: rawnode.QuorumRead{}, Spans: key}},
		{&kvpb.ReadPolicy{Kind: kvpb.ReadPolicy_STALE, Entries: 3, AgeUs: 5}, rawnode.ReadOptions{Policy: rawnode.BoundedStaleness{Max: 5 * time.Microsecond, MaxEntries: 3}}},
	} {
		got, err := s.Get(t.Context(), &kvpb.GetRequest{Key: "k", Policy: c.policy})
		require.NoError(t, err)
		require.Equal(t, c.want, host.options)
		require.Equal(t, "roster", got.GetServed().GetBy())
		require.EqualValues(t, 7, got.GetServed().GetNode())
		require.EqualValues(t, 1, s.reads[c.policy.GetKind()][rawnode.ServedByRoster].Load())
	}
	host.options = rawnode.ReadOptions{}
	for _, req := range []*kvpb.GetRequest{{Key: "k", Local: true}, {Key: "k", Policy: &kvpb.ReadPolicy{Kind: kvpb.ReadPolicy_STALE}}} {
		got, err := s.Get(t.Context(), req)
		require.NoError(t, err)
		require.Equal(t, "stale", got.GetServed().GetBy())
		require.EqualValues(t, -1, got.GetServed().GetAgeUs())
		require.Nil(t, host.options.Policy, "nobody was asked")
	}
	for want, policy := range map[string]*kvpb.ReadPolicy{
		"policy: LEADER with bounds, want STALE": {Kind: kvpb.ReadPolicy_LEADER, Entries: 1},
		"policy: 9, want 0 to 4":                 {Kind: 9},
		"want at most 86400000000":               {Kind: kvpb.ReadPolicy_STALE, AgeUs: 1 << 62},
	} {
		_, err := s.Get(t.Context(), &kvpb.GetRequest{Key: "k", Policy: policy})
		require.Equal(t, codes.InvalidArgument, status.Code(err))
		require.ErrorContains(t, err, want)
	}
}

// A wish is kept in the state of group 1, so its form must not change.
func TestWish(t *testing.T) {
	w := wish{}
	require.NoError(t, w.name(leases.Span{Start: "m"}, []leases.NodeID{2, 3}))
	require.NoError(t, w.name(leases.Span{Start: "a", End: "m"}, []leases.NodeID{1}))
	require.ErrorContains(t, (&wish{Wanted: w.Wanted}).name(leases.Span{}, []leases.NodeID{1}), "unname one of them first")
	require.ErrorContains(t, (&wish{}).name(leases.Span{Start: "\xff"}, []leases.NodeID{1}), "not UTF-8")
	text, err := json.Marshal(w)
	require.NoError(t, err)
	const kept = `{"wanted":[{"Span":{"Start":"a","End":"m"},"Nodes":[1],"Tuned":false},{"Span":{"Start":"m","End":""},"Nodes":[2,3],"Tuned":false}]}`
	require.Equal(t, kept, string(text))
	table, err := parseTable(map[string][]byte{respondersKey: []byte(kept)})
	require.NoError(t, err)
	require.Equal(t, w, *table.wish)

	for text, mode := range map[string]leases.TunerMode{"": leases.TunerConfigured, "off": leases.TunerOff, "watch": leases.TunerWatch, "on": leases.TunerOn} {
		kept := strings.TrimSuffix(kept, "}") + `,"tuner":"` + text + `"}`
		x, err := parseWish(kept)
		require.NoError(t, err)
		got, err := x.tuner()
		require.NoError(t, err)
		require.Equal(t, mode, got)
	}
	_, err = parseTable(map[string][]byte{respondersKey: []byte(`{"tuner":"auto"}`)})
	require.ErrorContains(t, err, `tuner "auto", want configured, off, watch or on`)

	require.False(t, w.unname(nil, []leases.NodeID{9}))
	require.True(t, w.unname(nil, []leases.NodeID{1, 2}), "what is left of nobody is dropped")
	require.Equal(t, []leases.Want{{Span: leases.Span{Start: "m"}, Nodes: []leases.NodeID{3}}}, w.Wanted)
	require.True(t, w.unname(&leases.Span{Start: "m"}, nil))
	require.Empty(t, w.Wanted)
}

// The bound on heartbeats is not above what leases take.
func TestLeasesFitTheHeartbeatsThatAreAllowed(t *testing.T) {
	for _, c := range []struct {
		tick           time.Duration
		beat, election int
		fits           bool
	}{
		{50 * time.Millisecond, 1, 10, true}, {20 * time.Millisecond, 1, 10, true}, {326 * time.Millisecond, 1, 10, true},
		{327 * time.Millisecond, 1, 10, false}, {20 * time.Millisecond, 4, 10, false}, {20 * time.Millisecond, 1, 3, false},
	} {
		cfg := Config{Leases: true, Core: CoreWeft, Tick: c.tick, HeartbeatTicks: c.beat, ElectionTicks: c.election}
		require.Equal(t, c.fits, cfg.validateLeases() == nil, "%+v", c)
		beat := time.Duration(c.beat) * c.tick
		err := leases.Config{ID: 1, Boot: 1, Lease: leaseTime, Heartbeat: beat, Fail: max(500*time.Millisecond, 4*beat), ElectionTimeout: time.Duration(c.election-1) * c.tick}.Validate()
		if c.fits {
			require.NoError(t, err)
		}
	}
}

// A node that waits for the leases of its last run to end is stopped at once, and the next start waits again.
func TestNodeThatWaitsForOldLeasesIsStopped(t *testing.T) {
	cfg := testConfig(t)
	stopped, stop := context.WithCancel(t.Context())
	stop()
	cfg.Leases = true
	require.NoError(t, Run(stopped, cfg))
	cfg.Leases = false
	for range 2 {
		require.NoError(t, Run(stopped, cfg))
		require.FileExists(t, filepath.Join(cfg.Data, leasesFile))
	}
	require.NoError(t, newNode(cfg).noteLeases(t.Context()))
	require.NoFileExists(t, filepath.Join(cfg.Data, leasesFile))
}

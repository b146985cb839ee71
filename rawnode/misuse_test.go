// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package rawnode_test

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/internal/replica"
	"github.com/weftraft/weft/internal/wire"
	"github.com/weftraft/weft/raft"
	"github.com/weftraft/weft/rawnode"
	"github.com/weftraft/weft/rawnode/transport"
	"github.com/weftraft/weft/storage"
)

var errNobodyWaits = errors.New("nobody waits any more")

// endedContexts are contexts that have ended, by the error that they cause.
func endedContexts(t *testing.T) map[error]context.Context {
	cancelled, cancel := context.WithCancelCause(t.Context())
	cancel(errNobodyWaits)
	late, cancelLate := context.WithDeadline(t.Context(), time.Now().Add(-time.Second))
	t.Cleanup(cancelLate)
	return map[error]context.Context{errNobodyWaits: cancelled, rawnode.ErrTimeout: late}
}

// calls are the calls of a host that take a context.
var calls = map[string]func(context.Context, *rawnode.Host) error{
	"propose": func(ctx context.Context, h *rawnode.Host) error {
		_, err := h.Propose(ctx, []byte("for nobody"))
		return err
	},
	"read":   func(ctx context.Context, h *rawnode.Host) error { _, err := h.Read(ctx); return err },
	"readAt": func(ctx context.Context, h *rawnode.Host) error { _, err := h.ReadAt(ctx, rawnode.Local{}); return err },
	"readWith": func(ctx context.Context, h *rawnode.Host) error {
		_, err := h.ReadWith(ctx, rawnode.ReadOptions{Policy: rawnode.QuorumRead{}})
		return err
	},
	"set responders": func(ctx context.Context, h *rawnode.Host) error { return h.SetResponders(ctx, nil) },
	"retire leases":  func(ctx context.Context, h *rawnode.Host) error { return h.RetireLeases(ctx, true) },
	"change": func(ctx context.Context, h *rawnode.Host) error {
		_, err := h.ProposeConfChange(ctx, addLearner(7))
		return err
	},
	"force": func(ctx context.Context, h *rawnode.Host) error {
		_, err := h.ForceConfChange(ctx, addLearner(8))
		return err
	},
	"transfer": func(ctx context.Context, h *rawnode.Host) error { return h.TransferLeader(ctx, 1) },
}

func addLearner(id uint64) pb.ConfChangeI {
	return &pb.ConfChange{Type: pb.ConfChangeAddLearnerNode.Enum(), NodeId: &id}
}

func TestCallWithEndedContextIsRefused(t *testing.T) {
	bothLibraries(t, func(t *testing.T, core replica.NewCore) {
		m := group(t, core, 1, nil)[1]
		must(t, m.host, "before")
		for want, ctx := range endedContexts(t) {
			for name, call := range calls {
				err := call(ctx, m.host)
				require.ErrorIs(t, err, rawnode.ErrRefused, name)
				require.ErrorIs(t, err, want, name)
			}
		}
		must(t, m.host, "after")
		require.Zero(t, m.sm.times("for nobody"))
		require.Empty(t, m.host.Status().Members.GetLearners())
		require.EqualValues(t, 2, m.host.Status().Counters.Proposals)
	})
}

// parts are the parts of a host.
type parts struct {
	id, group uint64
	log       *storage.Group
	tr        *transport.TCP
	logger    *slog.Logger
}

func (p parts) host() (*rawnode.Host, error) {
	return rawnode.New(rawnode.Config{
		Replica:      rawnode.ReplicaConfig{ID: p.id, Group: p.group, Log: p.log, Peers: []uint64{1, 2, 3}},
		StateMachine: newCounts(10), Transport: p.tr, TickInterval: hostTick, Logger: p.logger,
	})
}

func openEngine(t *testing.T, cluster, node uint64) *storage.Engine {
	e, err := storage.Open("log", storage.Options{FS: vfs.NewMem(), Identity: storage.Identity{Cluster: cluster, Node: node}})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, e.Close()) })
	return e
}

func openGroup(t *testing.T, e *storage.Engine, id uint64) *storage.Group {
	g, err := e.Group(id)
	require.NoError(t, err)
	return g
}

func openTransport(t *testing.T, cluster, node uint64) *transport.TCP {
	tr, err := transport.New(transport.Config{Cluster: cluster, Node: node, Listen: "127.0.0.1:0"})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, tr.Close()) })
	return tr
}

func TestPartsOfDifferentOwnersAreRefused(t *testing.T) {
	engine := openEngine(t, 9, 1)
	one, two := openGroup(t, engine, 1), openGroup(t, engine, 2)
	foreign := openGroup(t, openEngine(t, 8, 3), 1)
	mine, other, otherCluster := openTransport(t, 9, 1), openTransport(t, 9, 2), openTransport(t, 8, 1)
	for name, c := range map[string]struct {
		parts
		want []string
	}{
		"log of another group":         {parts{1, 1, two, mine, nil}, []string{"Replica.Group is 1", "Log is that of group 2"}},
		"group left at zero":           {parts{1, 0, one, mine, nil}, []string{"Replica.Group is 0", "Log is that of group 1"}},
		"another node's parts":         {parts{2, 1, one, mine, nil}, []string{"Replica.ID is 2", "Log is that of node 1", "Transport is that of node 1"}},
		"another node's transport":     {parts{1, 1, one, other, nil}, []string{"Replica.ID is 1", "Transport is that of node 2"}},
		"transport of another cluster": {parts{1, 1, one, otherCluster, nil}, []string{"Log is that of cluster 9", "Transport is that of cluster 8"}},
		"nothing fits": {parts{2, 2, foreign, mine, nil},
			[]string{"Log is that of node 3", "Log is that of group 1", "Transport is that of node 1", "Log is that of cluster 8"}},
	} {
		_, err := c.host()
		require.ErrorIs(t, err, rawnode.ErrInvalid, name)
		for _, want := range c.want {
			require.ErrorContains(t, err, want, name)
		}
	}
	for _, log := range []*storage.Group{one, two, foreign} {
		last, err := log.LastIndex()
		require.NoError(t, err)
		require.Zero(t, last, "a refused host begins no log")
	}
}

// A log that has begun keeps its first members, so a mistake of coding or leases is found earlier.
func TestMistakesOfCodingAndLeasesBeginNoLog(t *testing.T) {
	log, tr := openGroup(t, openEngine(t, 9, 1), 1), openTransport(t, 9, 1)
	for want, r := range map[string]rawnode.ReplicaConfig{
		"Coding.Memory is 1 bytes": {Coding: &raft.Coding{Memory: 1}},
		"Lease is -1ns":            {Leases: &raft.Leases{Lease: -1}},
	} {
		r.ID, r.Group, r.Log, r.Peers = 1, 1, log, []uint64{1}
		_, err := rawnode.New(rawnode.Config{Replica: r, StateMachine: newCounts(10), Transport: tr, TickInterval: hostTick})
		require.ErrorIs(t, err, rawnode.ErrInvalid)
		require.ErrorContains(t, err, want)
		last, err := log.LastIndex()
		require.NoError(t, err)
		require.Zero(t, last, want)
	}
}

func TestLogServesOneHostAtATime(t *testing.T) {
	engine := openEngine(t, 9, 1)
	log := openGroup(t, engine, 1)
	first := parts{1, 1, log, openTransport(t, 9, 1), nil}
	second := parts{1, 1, openGroup(t, engine, 1), openTransport(t, 9, 1), nil}
	h, err := first.host()
	require.NoError(t, err)
	_, err = second.host()
	require.ErrorIs(t, err, storage.ErrTaken)
	require.ErrorContains(t, err, "group 1")
	require.NoError(t, h.Stop(within(time.Minute)))
	h, err = second.host()
	require.NoError(t, err, "the first has stopped")
	require.NoError(t, h.Stop(within(time.Minute)))
	// A host that failed to start has released the log.
	require.NoError(t, first.tr.Join(1, nobody{}))
	_, err = first.host()
	require.ErrorContains(t, err, "the group has a receiver")
	first.tr.Leave(1)
	h, err = first.host()
	require.NoError(t, err)
	require.NoError(t, h.Stop(within(time.Minute)))
}

// nobody is a receiver of nothing.
type nobody struct{}

func (nobody) Receive(wire.Message) {}
func (nobody) Unreachable(uint64)   {}

func TestMembersWithoutAddressAreNamed(t *testing.T) {
	var lines lockedBuffer
	p := parts{1, 1, openGroup(t, openEngine(t, 9, 1), 1), openTransport(t, 9, 1), slog.New(slog.NewTextHandler(&lines, nil))}
	h, err := p.host()
	require.NoError(t, err)
	defer func() { require.NoError(t, h.Stop(within(time.Minute))) }()
	require.Eventually(t, func() bool { return len(h.Status().Unaddressed) == 2 }, time.Minute, hostTick)
	_, err = h.Read(within(50 * hostTick))
	require.ErrorIs(t, err, rawnode.ErrNoLeader)
	require.ErrorContains(t, err, "no address for members [2 3]")
	_, err = h.Propose(within(50*hostTick), []byte("x"))
	require.ErrorContains(t, err, "no address for members [2 3]")
	require.Equal(t, 1, strings.Count(lines.String(), "no address"), "one line: %s", lines.String())

	p.tr.SetPeer(2, "127.0.0.1:1")
	p.tr.SetPeer(3, "") // may connect, and is not dialed
	require.Eventually(t, func() bool { return slices.Equal(h.Status().Unaddressed, []uint64{3}) }, time.Minute, hostTick)
	require.Equal(t, 1, strings.Count(lines.String(), "no address"), "nothing new: %s", lines.String())
}

// lockedBuffer is a log that is written and read at the same time.
type lockedBuffer struct {
	mu sync.Mutex
	b  strings.Builder
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// A nil context is a mistake with an error, for each call.
func TestNilContextIsRefused(t *testing.T) {
	m := group(t, rawnode.Weft, 1, nil)[1]
	var none context.Context
	for name, call := range calls {
		err := call(none, m.host)
		require.ErrorIs(t, err, rawnode.ErrInvalid, name)
		require.ErrorIs(t, err, rawnode.ErrRefused, name)
	}
	_, err := m.host.LeaseStatus(none)
	require.ErrorIs(t, err, rawnode.ErrInvalid)
	require.ErrorIs(t, m.host.Stop(none), rawnode.ErrInvalid)
	_, err = m.host.ProposeConfChange(within(time.Minute), (*pb.ConfChangeV2)(nil))
	require.ErrorIs(t, err, rawnode.ErrConfChange)
	for _, policy := range []rawnode.ReadPolicy{(*rawnode.BoundedStaleness)(nil), (*rawnode.Local)(nil), &rawnode.Local{}} {
		_, err = m.host.ReadAt(within(time.Minute), policy)
		require.ErrorIs(t, err, rawnode.ErrInvalid)
		require.ErrorIs(t, err, rawnode.ErrRefused)
	}
	must(t, m.host, "after")
}

// The members that a change returns are the caller's own.
func TestReturnedMembersAreTheCallersOwn(t *testing.T) {
	m := group(t, rawnode.Weft, 1, nil)[1]
	conf, err := m.host.ProposeConfChange(within(time.Minute), addLearner(7))
	require.NoError(t, err)
	conf.Voters[0], conf.Learners = 99, nil
	require.Equal(t, []uint64{1}, m.host.Status().Members.GetVoters())
	must(t, m.host, "after")
}

// A transport with small frames would drop a large entry each time that it is sent, and the group would commit nothing
// behind it.
func TestTransportForSmallMessagesIsRefused(t *testing.T) {
	tr, err := transport.New(transport.Config{Cluster: 9, Node: 1, Listen: "127.0.0.1:0", MaxFrameBytes: 2 << 20})
	require.NoError(t, err)
	defer func() { require.NoError(t, tr.Close()) }()
	_, err = parts{1, 1, openGroup(t, openEngine(t, 9, 1), 1), tr, nil}.host()
	require.ErrorIs(t, err, rawnode.ErrInvalid)
	require.ErrorContains(t, err, "Replica.MaxCommandBytes is 8388608, want at most 1048564: the transport takes messages of at most 2097140 bytes")
	require.ErrorContains(t, err, "Replica.MaxAppendBytes is 1048576, want at most 1048564")
	require.NotContains(t, err.Error(), "ChunkBytes")
	gate := rawnode.GatewayConfig{ID: 7, Group: 1, Transport: tr, Homes: func() []uint64 { return nil }}
	_, err = rawnode.NewGateway(gate)
	require.ErrorContains(t, err, "MaxCommandBytes is 8388608, want at most 1048564")
	gate.MaxCommandBytes = 1 << 19
	g, err := rawnode.NewGateway(gate)
	require.NoError(t, err)
	g.Stop()
}

// Nil pointers in a configuration are named like fields that are not set.
func TestNilPartsAreNamed(t *testing.T) {
	_, err := rawnode.New(rawnode.Config{
		Replica:      rawnode.ReplicaConfig{ID: 1, Group: 1, Log: (*storage.Group)(nil)},
		StateMachine: (*counts)(nil), Transport: (*transport.TCP)(nil),
	})
	require.ErrorIs(t, err, rawnode.ErrInvalid)
	for _, field := range []string{"StateMachine", "Transport", "Log"} {
		require.ErrorContains(t, err, field)
	}
}

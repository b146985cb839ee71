// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package codingbench

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/ecraft"
	"github.com/weftraft/weft/internal/lab"
	"github.com/weftraft/weft/internal/silent"
	"github.com/weftraft/weft/internal/wire"
	"github.com/weftraft/weft/raft"
)

// BenchmarkLeaderPath is what an entry costs the leader's thread, with full
// copies and coded at the highest level: core, encoding of the messages, and one
// writev for each follower, over real TCP connections. Followers are real cores
// on other threads, whose CPU is not counted. Nothing is synced. Both sides take
// turns of a few entries, so that whatever else goes on meets both, and while the
// leader works the followers wait: on machines of their own they would not use
// its caches.
func BenchmarkLeaderPath(b *testing.B) {
	for _, voters := range []int{3, 5} {
		for _, size := range []int{1 << 10, 16 << 10, 64 << 10, 1 << 20} {
			b.Run(fmt.Sprintf("N=%d/size=%s", voters, strings.ReplaceAll(lab.Bytes(size), " ", "")), func(b *testing.B) { benchmarkLeaderPath(b, voters, size) })
		}
	}
}

func benchmarkLeaderPath(b *testing.B, voters, size int) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	payload := make([]byte, size)
	rand.NewChaCha8([32]byte{}).Read(payload) //nolint:errcheck // it never fails
	full, coded := newPathGroup(b, voters, false), newPathGroup(b, voters, true)
	for range 2 {
		full.round(payload)
		coded.round(payload)
	}
	full.reset()
	coded.reset()
	b.SetBytes(2 * pathRound * int64(size))
	for b.Loop() {
		full.round(payload)
		coded.round(payload)
	}
	per := func(total int64) float64 { return float64(total) / float64(b.N) / pathRound }
	b.ReportMetric(per(full.used.Nanoseconds())/1e3, "full-µs")
	b.ReportMetric(per(coded.used.Nanoseconds())/1e3, "coded-µs")
	b.ReportMetric(float64(coded.used)/float64(full.used), "coded/full")
	b.ReportMetric(per(full.sent)/float64(size), "full-sent/byte")
	b.ReportMetric(per(coded.sent)/float64(size), "coded-sent/byte")
}

// round proposes pathRound entries and adds up what that took of this thread's
// CPU time.
func (g *pathGroup) round(payload []byte) {
	before := threadCPU(g.tb)
	for range pathRound {
		g.propose(append([]byte(nil), payload...), pathWindow) // as a host's would be: a buffer of its own
	}
	g.propose(nil, 0)
	g.used += threadCPU(g.tb) - before
}

func (g *pathGroup) reset() { g.used, g.sent = 0, 0 }

// pathRound is how many entries a side proposes at its turn.
const pathRound = 8 * pathWindow

// pathWindow is how many entries are under way: enough that the leader's thread
// rarely has to wait.
const pathWindow = 16

// threadCPU returns the CPU time of this thread, in user and system.
func threadCPU(tb testing.TB) time.Duration {
	var u syscall.Rusage
	require.NoError(tb, syscall.Getrusage(syscall.RUSAGE_THREAD, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// pathGroup is a leader, on the caller's thread, and its followers.
type pathGroup struct {
	tb      testing.TB
	leader  *pathNode
	conns   map[uint64]net.Conn
	answers chan []*pb.Message
	sent    int64
	used    time.Duration // of the leader's thread
	// proposed is the index of the last proposal.
	proposed uint64
	frames   map[uint64]*wire.Frame
}

type pathNode struct {
	rn      *raft.RawNode
	storage *raft.MemoryStorage
	applied uint64
}

func newPathNode(tb testing.TB, id uint64, voters []uint64, coded bool) *pathNode {
	n := &pathNode{storage: raft.NewMemoryStorage(), applied: 1}
	require.NoError(tb, n.storage.ApplySnapshot(&pb.Snapshot{Metadata: &pb.SnapshotMetadata{
		Index: new(uint64(1)), Term: new(uint64(1)), ConfState: &pb.ConfState{Voters: voters},
	}}))
	cfg := &raft.Config{
		ID: id, Applied: 1, ElectionTick: 10, HeartbeatTick: 1, Storage: n.storage,
		MaxSizePerMsg: 4 << 20, MaxInflightMsgs: 256, Logger: silent.Logger{},
	}
	if coded {
		cfg.Coding = &raft.Coding{Policy: ecraft.Levelled{}, LateSeal: true} // as rawnode.Host
	}
	var err error
	n.rn, err = raft.NewRawNode(cfg)
	require.NoError(tb, err)
	return n
}

func newPathGroup(tb testing.TB, voters int, coded bool) *pathGroup {
	g := &pathGroup{tb: tb, conns: map[uint64]net.Conn{}, frames: map[uint64]*wire.Frame{}, answers: make(chan []*pb.Message, 1024)}
	var ids []uint64
	for i := range voters {
		ids = append(ids, uint64(i+1))
	}
	ctx, cancel := context.WithCancel(context.Background())
	tb.Cleanup(cancel)
	inboxes := map[uint64]chan *pb.Message{}
	for _, id := range ids[1:] {
		inboxes[id] = make(chan *pb.Message, 1024)
	}
	for _, id := range ids[1:] {
		g.conns[id], g.frames[id] = dialSelf(tb, inboxes[id]), &wire.Frame{}
		f := newPathNode(tb, id, ids, coded)
		go f.follow(ctx, inboxes, g.answers)
	}
	g.leader = newPathNode(tb, 1, ids, coded)
	require.NoError(tb, g.leader.rn.Campaign())
	for g.leader.rn.BasicStatus().RaftState != raft.StateLeader || g.leader.applied < 2 {
		g.turn()
	}
	g.proposed = g.leader.applied
	return g
}

// dialSelf returns a TCP connection; what is written to it ends up in inbox.
func dialSelf(tb testing.TB, inbox chan<- *pb.Message) net.Conn {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(tb, err)
	conn, err := net.Dial("tcp", l.Addr().String())
	require.NoError(tb, err)
	peer, err := l.Accept()
	require.NoError(tb, err)
	require.NoError(tb, l.Close())
	tb.Cleanup(func() { _ = conn.Close() }) // the reader ends by it
	go func() {
		for {
			payload, err := wire.ReadFrame(peer, wire.FrameMessages, wire.MaxFrame, nil)
			if err != nil {
				return
			}
			if _, err := wire.DecodeShared(payload, func(m wire.Message) {
				rm := m.Body.(wire.Raft).Message
				rm.From, rm.To = new(m.From), new(m.To)
				inbox <- rm
			}); err != nil {
				panic(err)
			}
		}
	}()
	return conn
}

// follow runs a follower.
func (n *pathNode) follow(ctx context.Context, inboxes map[uint64]chan *pb.Message, leader chan<- []*pb.Message) {
	inbox := inboxes[n.rn.BasicStatus().ID]
	for {
		select {
		case <-ctx.Done():
			return
		case m := <-inbox:
			_ = n.rn.Step(m) // what it does not like it drops
		}
		for n.rn.HasReady() {
			var answers []*pb.Message
			for _, m := range n.ready() {
				if m.GetTo() == 1 {
					answers = append(answers, m)
				} else {
					inboxes[m.GetTo()] <- m
				}
			}
			if len(answers) > 0 {
				leader <- answers
			}
		}
	}
}

// ready stores and applies what a Ready has and returns its messages.
func (n *pathNode) ready() []*pb.Message {
	rd := n.rn.Ready()
	if err := n.storage.Append(rd.Entries); err != nil {
		panic(err)
	}
	if !raft.IsEmptyHardState(rd.HardState) {
		if err := n.storage.SetHardState(rd.HardState); err != nil {
			panic(err)
		}
	}
	for _, e := range rd.CommittedEntries {
		n.applied = e.GetIndex()
	}
	if n.applied > 64 && n.applied%32 == 0 {
		_ = n.storage.Compact(n.applied - 32) // it may have been there
	}
	n.rn.Advance(rd)
	return rd.Messages
}

// propose proposes data, if there is any, and works until at most window entries
// are under way.
func (g *pathGroup) propose(data []byte, window int) {
	if data != nil {
		g.proposed++
		require.NoError(g.tb, g.leader.rn.Propose(data))
		g.send()
	}
	for g.leader.applied+uint64(window) < g.proposed {
		g.turn()
	}
}

// turn takes the waiting answers of followers, and waits for at least one.
func (g *pathGroup) turn() {
	g.send()
	answers := <-g.answers
	for more := true; more; {
		for _, m := range answers {
			_ = g.leader.rn.Step(m) // what it does not like it drops
		}
		select {
		case answers = <-g.answers:
		default:
			more = false
		}
	}
	g.send()
}

// send writes the leader's messages to each follower as one frame.
func (g *pathGroup) send() {
	for g.leader.rn.HasReady() {
		for _, m := range g.leader.ready() {
			g.frames[m.GetTo()].AppendMessage(wire.Message{Group: 1, From: m.GetFrom(), To: m.GetTo(), Body: wire.Raft{Message: m, OwnForm: true}})
		}
		for id, f := range g.frames {
			if f.Len() <= wire.HeaderLen {
				continue
			}
			pieces := f.Messages()
			n, err := pieces.WriteTo(g.conns[id])
			require.NoError(g.tb, err)
			g.sent += n
			f.Reset()
		}
	}
}

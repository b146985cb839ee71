// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package replica

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/ecraft"
	"github.com/weftraft/weft/internal/wire"
	"github.com/weftraft/weft/leases"
	"github.com/weftraft/weft/raft"
)

// skewedClock is a node's own clock: of another origin and another rate.
type skewedClock struct {
	c    *cluster
	id   uint64
	rate float64
}

func (s skewedClock) Now() time.Duration {
	return time.Duration(s.id)*time.Hour + time.Duration(s.rate*float64(s.c.now))
}

// newLeaseCluster starts nodes with leases. Commands are "key=value".
func newLeaseCluster(t testing.TB, ids ...uint64) *cluster {
	c := newCluster(t, Weft)
	c.tune = func(cfg *Config) {
		cfg.Leases = &raft.Leases{Tick: tick, Boot: cfg.ID, Spans: func(command []byte) []leases.Span {
			key, _, _ := strings.Cut(string(command), "=")
			return []leases.Span{leases.KeySpan(key)}
		}}
		cfg.Clock = skewedClock{c, cfg.ID, 1 + 0.0004*float64(cfg.ID%3) - 0.0004}
	}
	for _, id := range ids {
		c.add(id, ids)
	}
	return c
}

// names has the leader name responders of every key, and waits until they are stable.
func (c *cluster) names(leader uint64, ids ...leases.NodeID) {
	c.t.Helper()
	require.NoError(c.t, c.nodes[leader].r.SetResponders([]leases.Want{{Nodes: ids}}))
	for range 50 {
		c.run(1)
		if !slices.ContainsFunc(ids, func(id leases.NodeID) bool { return !c.nodes[uint64(id)].r.Status().Leases.Stable }) {
			return
		}
	}
	c.t.Fatalf("responders %v are not stable: %+v", ids, c.nodes[leader].r.Status().Leases)
}

func (c *cluster) readWith(id uint64, o ReadOptions) Call {
	c.calls++
	c.nodes[id].r.ReadWith(c.calls, o, c.now+20*tick)
	return c.calls
}

// lonely reads at a node that reaches nobody.
func (c *cluster) lonely(id uint64, o ReadOptions) (d Done, ended bool) {
	was := c.lose
	c.lose = func(m wire.Message) bool { return m.From == id || m.To == id }
	call := c.readWith(id, o)
	c.settle()
	c.lose = was
	d, ended = c.done[call]
	return d, ended
}

func TestResponderAnswersReadsWithoutMessages(t *testing.T) {
	c := newLeaseCluster(t, 1, 2, 3)
	c.elect(1)
	c.names(1, 2)
	call := c.propose(3, "a=1")
	c.run(2)
	require.NoError(t, c.result(call).Err)
	for _, policy := range []ReadPolicy{nil, ReadIndex{}, AtResponder{}} {
		d, ended := c.lonely(2, ReadOptions{Policy: policy})
		require.True(t, ended, "%T", policy)
		require.NoError(t, d.Err)
		require.Equal(t, ServedByRoster, d.Read.By)
		require.Zero(t, d.Read.Lag)
		require.GreaterOrEqual(t, d.Index, c.result(call).Index)
	}
	require.EqualValues(t, 3, c.nodes[2].r.Status().Counters.ReadsByRoster)
	require.EqualValues(t, 3, c.nodes[2].r.Status().Leases.Reads.Local)

	d, ended := c.lonely(1, ReadOptions{})
	require.True(t, ended, "the leader has its lease")
	require.Equal(t, ServedByLease, d.Read.By)

	_, ended = c.lonely(3, ReadOptions{})
	require.False(t, ended, "nobody named node 3")
	_, ended = c.lonely(2, ReadOptions{Policy: LeaderLease{}})
	require.False(t, ended, "only the leader may answer")
	away := c.readWith(2, ReadOptions{Policy: LeaderLease{}})
	c.run(10) // the question was lost, and is asked again
	require.NoError(t, c.result(away).Err)
	require.Equal(t, ServedByLeader, c.result(away).Read.By)
}

func TestReadOfOneKeyDoesNotWaitForWritesOfOthers(t *testing.T) {
	c := newLeaseCluster(t, 1, 2, 3)
	c.elect(1)
	c.names(1, 2)
	// The write is in the log of node 2, and the leader hears of no acknowledgement.
	c.lose = func(m wire.Message) bool { return m.To == 1 && m.Class() == wire.ClassControl }
	call := c.propose(1, "a=1")
	c.settle()
	require.NotContains(t, c.done, call)
	other := c.readWith(2, ReadOptions{Spans: []leases.Span{leases.KeySpan("b")}})
	same := c.readWith(2, ReadOptions{Spans: []leases.Span{leases.KeySpan("a")}})
	every := c.readWith(2, ReadOptions{})
	c.settle()
	require.NoError(t, c.result(other).Err)
	require.Equal(t, ServedByRoster, c.result(other).Read.By)
	require.NotContains(t, c.done, same)
	require.NotContains(t, c.done, every)
	c.lose = func(wire.Message) bool { return false }
	c.run(3)
	require.NoError(t, c.result(call).Err)
	require.NoError(t, c.result(same).Err)
	require.NoError(t, c.result(every).Err)
	require.Empty(t, c.nodes[2].r.reads.others, "lanes go when they are empty")
	require.Empty(t, c.nodes[2].r.reads.byWhat)
}

// A read that has to go to the leader, and gets lost, delays no later read that this node
// can answer.
func TestReadBehindOneThatIsLostIsAnswered(t *testing.T) {
	c := newLeaseCluster(t, 1, 2, 3)
	c.elect(1)
	c.names(1, 2)
	isRead := func(m wire.Message) bool { // to the leader, or to a majority, which is asked in its turn
		b, ok := m.Body.(wire.Raft)
		return ok && b.GetType() == pb.MsgReadIndex || m.Kind() == wire.KindLogEnd
	}
	isAck := func(m wire.Message) bool {
		b, ok := m.Body.(wire.Raft)
		return ok && b.GetType() == pb.MsgAppResp
	}
	c.lose = func(m wire.Message) bool { return isRead(m) || isAck(m) }
	write := c.propose(1, "a=1")
	c.settle()
	first := c.readWith(2, ReadOptions{}) // waits for the write, and then goes to the leader
	c.run(2)
	require.NotContains(t, c.done, first)
	c.lose = isRead
	c.run(4)
	require.NoError(t, c.result(write).Err)
	later := c.readWith(2, ReadOptions{})
	c.settle()
	require.NotContains(t, c.done, first)
	require.NoError(t, c.result(later).Err)
	require.Equal(t, ServedByRoster, c.result(later).Read.By)
	c.run(10)
	require.NoError(t, c.result(first).Err, "asked again")
	require.Empty(t, c.nodes[2].r.reads.others)
}

func TestWriteWaitsForADeadResponderOnce(t *testing.T) {
	c := newLeaseCluster(t, 1, 2, 3)
	c.elect(1)
	c.names(1, 2, 3)
	c.lose = func(m wire.Message) bool { return m.From == 3 || m.To == 3 }
	first := c.propose(1, "a=1")
	c.settle()
	require.NotContains(t, c.done, first)
	_, ended := c.lonely(2, ReadOptions{Spans: []leases.Span{leases.KeySpan("b")}})
	require.True(t, ended, "reads at the other responder go on")
	// Fail, a lease and two rounds, and a tick for each step that waits for one.
	c.run(5 + 10 + 4)
	require.NoError(t, c.result(first).Err)
	second := c.propose(1, "a=2")
	c.run(1)
	require.NoError(t, c.result(second).Err)
	require.EqualValues(t, 1, c.nodes[1].r.Status().Leases.Counts.Removed)
	_, ended = c.lonely(3, ReadOptions{})
	require.False(t, ended, "its leases have ended")
}

func TestPausedResponderDoesNotAnswer(t *testing.T) {
	c := newLeaseCluster(t, 1, 2, 3)
	c.elect(1)
	c.names(1, 2)
	// Node 2 stands still: it hears nothing, and no tick tells it of time. Its first
	// turn afterwards begins with a read, and with the time of its last turn.
	n := c.nodes[2]
	delete(c.nodes, 2)
	c.run(30)
	c.nodes[2] = n
	c.calls++
	n.r.ReadWith(c.calls, ReadOptions{}, c.now+20*tick)
	out := n.r.Flush(n.r.now)
	require.Empty(t, out.Done, "the lease has ended, by the clock if not by ticks")
}

func TestRestartedVoterKeepsItsPromises(t *testing.T) {
	c := newLeaseCluster(t, 1, 2, 3)
	c.elect(1)
	c.names(1, 2)
	n := c.nodes[3]
	n.cfg.Leases = &raft.Leases{Tick: tick, Boot: 33}
	c.start(n)
	s := n.r.Status().Leases
	require.NotZero(t, s.Quarantine, "it does not know what it has promised")
	c.run(11)
	require.Zero(t, n.r.Status().Leases.Quarantine)
	call := c.propose(3, "a=1")
	c.run(2)
	require.NoError(t, c.result(call).Err)
}

func TestOnlyTheLeaderTakesRosterCalls(t *testing.T) {
	c := newLeaseCluster(t, 1, 2, 3)
	c.elect(1)
	want := []leases.Want{{Nodes: []leases.NodeID{2}}}
	require.ErrorIs(t, c.nodes[2].r.SetResponders(want), leases.ErrNotLeader)
	require.ErrorIs(t, c.nodes[2].r.RetireLeases(true), leases.ErrNotLeader)
	require.ErrorIs(t, c.nodes[1].r.SetResponders([]leases.Want{{Span: leases.Span{Start: "b", End: "a"}}}), leases.ErrMalformed)
	c.names(1, 2)
	require.NoError(t, c.nodes[1].r.RetireLeases(true))
	c.run(15)
	require.True(t, c.nodes[1].r.Status().Leases.Retired)
	_, ended := c.lonely(2, ReadOptions{})
	require.False(t, ended)
	_, ended = c.lonely(1, ReadOptions{})
	require.False(t, ended, "the leader has no lease either")

	plain := newCluster(t, Weft, 1)
	plain.elect(1)
	require.ErrorIs(t, plain.nodes[1].r.SetResponders(want), raft.ErrNoLeases)
	require.Nil(t, plain.nodes[1].r.Status().Leases)
}

func TestLeasesNeedWeftAndASafeConfiguration(t *testing.T) {
	n := newLeaseCluster(t, 1).nodes[1]
	cfg := n.cfg
	cfg.Core = Upstream
	_, err := New(cfg)
	require.ErrorIs(t, err, ErrInvalid)
	require.ErrorContains(t, err, "want the core Weft, or no Leases")

	for field, spoil := range map[string]func(*Config){
		"Clock": func(c *Config) { c.Clock = nil }, "Leases.Tick": func(c *Config) { c.Leases = &raft.Leases{} },
		"NoPreVote": func(c *Config) { c.NoPreVote = true }, "NoCheckQuorum": func(c *Config) { c.NoCheckQuorum = true },
		"ReadOnly": func(c *Config) { c.ReadOnly = raft.ReadOnlyLeaseBased },
	} {
		cfg := n.cfg
		spoil(&cfg)
		err := cfg.Validate()
		require.ErrorIs(t, err, ErrInvalid, field)
		require.ErrorContains(t, err, field+" is ")
	}
}

// Messages about leases that no honest peer sends are refused and counted, and change
// nothing; where leases are off they are left alone.
func TestHostileLeaseMessages(t *testing.T) {
	c := newLeaseCluster(t, 1, 2, 3)
	c.elect(1)
	c.names(1, 2)
	n := c.nodes[2]
	before := n.r.Status()
	send := func(m *pb.Message) error {
		m.Type = pb.MessageType(66).Enum()
		m.From, m.To = new(uint64(3)), new(uint64(2))
		err := n.r.Receive(wire.Message{Group: 7, From: 3, To: 2, Body: wire.Raft{Message: m}})
		c.turn(n)
		return err
	}
	require.ErrorIs(t, send(&pb.Message{Term: new(uint64(9)), Context: []byte("l")}), ErrBadMessage)
	require.ErrorIs(t, send(&pb.Message{Entries: []*pb.Entry{{}}, Context: []byte("l")}), ErrBadMessage)
	garbled := []string{"", "d", "l", "lx", "n", "n\x01", "l" + strings.Repeat("\xff", 100)}
	for _, text := range garbled {
		require.NoError(t, send(&pb.Message{Context: []byte(text), LogTerm: new(uint64(1 << 40))}), "the core is the one to look")
	}
	after := n.r.Status()
	require.EqualValues(t, len(garbled)+2, after.Counters.BadMessages-before.Counters.BadMessages)
	require.EqualValues(t, len(garbled), after.Leases.Reads.Refused-before.Leases.Reads.Refused)
	require.Equal(t, before.Leases.Roster, after.Leases.Roster)
	require.True(t, after.Leases.Stable)

	plain := newCluster(t, Weft, 1, 2).nodes[2]
	require.NoError(t, plain.r.Receive(wire.Message{Group: 7, From: 1, To: 2, Body: wire.Raft{Message: &pb.Message{
		Type: pb.MessageType(66).Enum(), From: new(uint64(1)), To: new(uint64(2)), Context: []byte("l")}}}))
	require.Zero(t, plain.r.Status().Counters.BadMessages)
}

// A node whose log is slow adopts and grants nothing of a term that is not on its disk.
func TestGrantsWaitUntilTheTermIsDurable(t *testing.T) {
	c := newLeaseCluster(t, 1, 2, 3)
	c.elect(1)
	c.names(1, 2)
	n := c.nodes[3]
	c.work(n)
	n.held = true
	before := n.r.state.Term
	c.lose = func(m wire.Message) bool { return m.From == 3 && m.To == 2 } // it takes no part in the election
	c.calls++
	c.nodes[1].r.TransferLeader(c.calls, 2, c.now+50*tick)
	c.run(12)
	c.lose = func(wire.Message) bool { return false }
	require.True(t, c.nodes[2].r.leads())
	require.Greater(t, n.r.state.Term, before)
	for range 5 {
		c.run(1)
		s := n.r.Status().Leases
		require.Zero(t, s.Adopted)
		for _, p := range s.Promises {
			require.LessOrEqual(t, p.Roster.Term, leases.Term(before))
		}
	}
	n.held = false
	c.run(5)
	s := n.r.Status().Leases
	require.NotZero(t, s.Adopted)
	require.True(t, slices.ContainsFunc(s.Promises, func(l leases.Lease) bool { return l.Roster.Term > leases.Term(before) }))
}

func TestSpansOfAnEntryAreThoseOfItsCommands(t *testing.T) {
	c := newLeaseCluster(t, 1)
	n := c.elect(1)
	c.propose(1, "a=1")
	c.propose(1, "c=2")
	c.run(1)
	last, err := n.log.LastIndex()
	require.NoError(t, err)
	entries, err := n.log.Entries(last, last+1, 1<<20)
	require.NoError(t, err)
	require.Equal(t, []leases.Span{leases.KeySpan("a"), leases.KeySpan("c")}, spansOf(entries[0].GetData(), 0, n.cfg.Leases.Spans))
	require.Nil(t, spansOf([]byte("no envelope"), 0, n.cfg.Leases.Spans), "every key")
	require.Nil(t, spansOf(entries[0].GetData(), 0, func([]byte) []leases.Span { return nil }))
	require.Nil(t, spansOf(entries[0].GetData(), 0, func([]byte) []leases.Span { return make([]leases.Span, leases.MaxSpans) }), "too many")
}

// The clear bytes of a coded entry may end within the name of a key.
func TestCodedEntryMayWriteAnyKey(t *testing.T) {
	c, told := newLeaseCluster(t), map[string]bool{}
	tune := c.tune
	c.tune = func(cfg *Config) {
		tune(cfg)
		of := cfg.Leases.Spans
		cfg.Leases.Spans = func(command []byte) []leases.Span {
			told[string(command)] = true
			return of(command)
		}
	}
	c.coding = func() *raft.Coding { return &raft.Coding{Threshold: 64, ClearPrefix: 12, Policy: ecraft.Levelled{}} }
	for id := uint64(1); id <= 3; id++ {
		c.add(id, []uint64{1, 2, 3})
	}
	c.elect(1)
	c.run(5)
	for _, command := range []string{"a=1", "abcdefghijklmnopqrstuvwxyz=" + strings.Repeat("x", 1000)} {
		call := c.propose(1, command)
		c.run(3)
		require.NoError(t, c.result(call).Err)
	}
	require.NotZero(t, c.nodes[1].r.Status().Coding.Counters.Encoded)
	require.Equal(t, map[string]bool{"a=1": true}, told)
}

// Where the keys of a read do not matter, nobody is asked about them.
func TestLocalReadOfKeysAsksNobody(t *testing.T) {
	c := newLeaseCluster(t, 1, 2, 3)
	c.elect(1)
	d, ended := c.lonely(3, ReadOptions{Policy: Local{}, Spans: []leases.Span{leases.KeySpan("a")}})
	require.True(t, ended)
	require.NoError(t, d.Err)
	require.Equal(t, ServedStale, d.Read.By)
}

func TestBadSpansAreRefused(t *testing.T) {
	c := newLeaseCluster(t, 1)
	c.elect(1)
	for _, spans := range [][]leases.Span{{{Start: "b", End: "a"}}, make([]leases.Span, leases.MaxSpans+1), {{Start: strings.Repeat("x", leases.MaxKey+1)}}} {
		call := c.readWith(1, ReadOptions{Spans: spans})
		c.settle()
		require.ErrorIs(t, c.result(call).Err, ErrInvalid)
		require.ErrorIs(t, c.result(call).Err, ErrRefused)
	}
}

// A leader that steps down holds reads of other nodes. They are not passed on, because a
// message has to be from the node that sends it. The node that asked asks again.
func TestFormerLeaderDropsReadsOfOthers(t *testing.T) {
	c := newLeaseCluster(t, 1, 2, 3)
	for _, id := range c.ids() {
		n := c.nodes[id]
		n.cfg.Leases.Notes, n.cfg.Leases.Boot = true, id+10
		c.start(n)
	}
	c.run(11)
	c.elect(1)
	c.names(1, 2)
	isAck := func(m wire.Message) bool {
		b, ok := m.Body.(wire.Raft)
		return ok && b.GetType() == pb.MsgAppResp
	}
	c.lose = isAck
	c.propose(1, "a=1")
	c.settle()
	read := c.readWith(3, ReadOptions{})
	c.settle()
	require.NotContains(t, c.done, read)
	require.Equal(t, 1, c.nodes[1].r.Status().Leases.Waiting, "the leader holds it until the write is committed")
	c.lose = func(m wire.Message) bool { return m.From == 1 || m.To == 1 }
	for range 60 {
		c.run(1)
		if c.nodes[2].r.leads() || c.nodes[3].r.leads() {
			break
		}
	}
	c.lose = func(wire.Message) bool { return false }
	c.run(15)
	require.Zero(t, c.nodes[1].r.Status().Leases.Waiting)
	require.NoError(t, c.result(read).Err)
}

// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package replica

import (
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/internal/replica/replicatest"
	"github.com/weftraft/weft/internal/wire"
	"github.com/weftraft/weft/raft"
)

type memLog = replicatest.MemLog

func newMemLog() memLog { return replicatest.NewMemLog() }

// journal is a state machine that remembers all its commands.
type journal struct {
	index   uint64
	host    []byte
	applied []string
}

func (j *journal) Load() (uint64, []byte, error) { return j.index, j.host, nil }

func (j *journal) Apply(b Batch) ([]any, error) {
	if b.Index <= j.index {
		return nil, fmt.Errorf("index %d behind %d", b.Index, j.index)
	}
	j.index = b.Index
	if b.Host != nil {
		j.host = b.Host
	}
	results := make([]any, len(b.Commands))
	for i, c := range b.Commands {
		j.applied = append(j.applied, string(c))
		results[i] = "did " + string(c)
	}
	return results, nil
}

func (j *journal) Durable() (uint64, error) { return j.index, nil }

func (j *journal) Snapshot() (*journalSnapshot, error) {
	return &journalSnapshot{
		meta: SnapshotMeta{Index: j.index, Host: j.host}, Reader: strings.NewReader(strings.Join(j.applied, "\n"))}, nil
}

type journalSnapshot struct {
	meta SnapshotMeta
	io.Reader
}

func (s *journalSnapshot) Meta() SnapshotMeta { return s.meta }
func (s *journalSnapshot) Close() error       { return nil }

func (j *journal) Restore(meta SnapshotMeta, body io.Reader) error {
	b, err := io.ReadAll(body)
	if err != nil {
		return err
	}
	j.index, j.host, j.applied = meta.Index, meta.Host, nil
	if len(b) > 0 {
		j.applied = strings.Split(string(b), "\n")
	}
	return nil
}

// cluster runs replicas in virtual time, in one goroutine.
type cluster struct {
	t     testing.TB
	nodes map[uint64]*node
	now   time.Duration
	rand  *rand.Rand
	wires []wire.Message
	// lose decides about each message.
	lose func(m wire.Message) bool
	// shuffle delivers in a random order, and some messages twice.
	shuffle bool
	done    map[Call]Done
	core    NewCore
	coding  func() *raft.Coding // of each start of a node; nil: none
	tune    func(*Config)       // of each node that is added; nil: as it is
	calls   Call
	mayFail bool // nodes may end up out of service
	slow    int  // ticks that a snapshot takes
	streams []stream
}

// stream is a snapshot on its way.
type stream struct {
	from   *node
	send   SnapshotSend
	header *pb.Message
	body   *journalSnapshot
	due    time.Duration
}

// node is a replica with its stages. Writes in appends and commands in applies wait until the
// cluster carries them out.
type node struct {
	r       *Replica
	local   *LocalReads // nil without leases
	cfg     Config
	log     memLog
	sm      *journal
	appends []Append
	applies []Apply
	held    bool // stages do nothing
	hung    bool // the log writes nothing; the other stages go on
	full    bool // as the disk is full
	wiped   bool // it has lost its log: it refuses messages, and fails
	boots   uint64
}

func newCluster(t testing.TB, core NewCore, ids ...uint64) *cluster {
	c := &cluster{t: t, nodes: map[uint64]*node{}, rand: rand.New(rand.NewPCG(1, 2)), done: map[Call]Done{}, core: core,
		lose: func(wire.Message) bool { return false }}
	for _, id := range ids {
		c.add(id, ids)
	}
	return c
}

func (c *cluster) add(id uint64, peers []uint64) *node {
	n := &node{log: newMemLog(), sm: &journal{}, cfg: Config{Settings: Settings{ID: id, Group: 7, Core: c.core, Peers: peers, Rand: c.rand}}}
	n.cfg.Log = n.log
	if c.tune != nil {
		c.tune(&n.cfg)
	}
	c.nodes[id] = n
	c.start(n)
	return n
}

// start starts a node from what it has.
func (c *cluster) start(n *node) {
	n.boots++
	n.cfg.Boot = n.boots
	if c.coding != nil {
		n.cfg.Coding = c.coding()
	}
	n.cfg.Applied, n.cfg.HostState, _ = n.sm.Load()
	w, err := PrepareLog(n.cfg)
	require.NoError(c.t, err)
	if w != nil {
		require.NoError(c.t, n.log.Append(*w, nil))
	}
	n.appends, n.applies = nil, nil
	n.r, err = New(n.cfg)
	require.NoError(c.t, err)
	n.local = NewLocalReads(n.cfg.Settings, n.cfg.Applied)
}

// ids returns the nodes in order, as a run must not depend on a map's order.
func (c *cluster) ids() []uint64 {
	var ids []uint64
	for id := range c.nodes {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return ids
}

// turn flushes a node and does what it asks for.
func (c *cluster) turn(n *node) (busy bool) {
	out := n.r.Flush(c.now)
	n.local.Publish(n.r)
	if n.r.Err() != nil && c.mayFail {
		n.appends, n.applies = nil, nil
		return false
	}
	if !n.wiped {
		require.NoError(c.t, n.r.Err())
	}
	busy = !out.Empty()
	c.wires = append(c.wires, out.Sends...)
	n.appends = append(n.appends, out.Appends...)
	n.applies = append(n.applies, out.Applies...)
	for _, d := range out.Done {
		_, twice := c.done[d.Call]
		require.False(c.t, twice, "call %d ends twice", d.Call)
		c.done[d.Call] = d
	}
	for _, s := range out.Snapshots {
		if err := c.transfer(n, s); err != nil || c.slow == 0 {
			n.r.SnapshotSent(s.To, err)
		}
	}
	if out.Compact != nil {
		require.NoError(c.t, n.log.SetSnapshot(out.Compact.Snapshot, nil))
		require.NoError(c.t, n.log.Compact(out.Compact.Index))
	}
	if !n.held {
		busy = c.work(n) || busy
	}
	return busy
}

// work does what waits for the stages.
func (c *cluster) work(n *node) bool {
	appends, applies := n.appends, n.applies
	n.appends, n.applies = nil, nil
	if n.hung {
		n.appends, appends = appends, nil
	}
	for _, a := range appends {
		require.NoError(c.t, n.log.Append(a.Write, nil))
		n.r.AppendDone(a)
	}
	for _, a := range applies {
		var results []any
		if a.Batch.Index > n.sm.index {
			var err error
			results, err = n.sm.Apply(a.Batch)
			require.NoError(c.t, err)
			n.local.Applied(a.Batch.Index)
		}
		n.r.ApplyDone(a, results)
		n.r.Durable(n.sm.index)
	}
	return len(appends)+len(applies) > 0
}

// transfer sends a snapshot, in no time unless they are slow.
func (c *cluster) transfer(n *node, s SnapshotSend) error {
	snap, err := n.sm.Snapshot()
	require.NoError(c.t, err)
	header, err := SnapshotHeader(s, snap.Meta())
	require.NoError(c.t, err)
	m := wire.Message{Group: 7, From: n.cfg.ID, To: s.To, Body: wire.Chunk{Header: header}}
	to := c.nodes[s.To]
	if to == nil || c.lose(m) {
		return fmt.Errorf("lost")
	}
	if err := to.r.OfferSnapshot(n.cfg.ID, header); err != nil {
		return err
	}
	if c.slow > 0 {
		c.streams = append(c.streams, stream{n, s, header, snap, c.now + time.Duration(c.slow)*tick})
		return nil
	}
	c.arrive(to, header, snap)
	return nil
}

// arrive lets a node restore a snapshot.
func (c *cluster) arrive(to *node, header *pb.Message, body io.Reader) {
	c.work(to)
	snap := header.GetSnapshot()
	require.NoError(c.t, to.sm.Restore(SnapshotMeta{Index: snap.GetMetadata().GetIndex(), Host: snap.GetData()}, body))
	to.r.SnapshotRestored(header, nil)
}

// deliver takes messages to their nodes.
func (c *cluster) deliver() {
	wires := c.wires
	c.wires = nil
	if c.shuffle {
		c.rand.Shuffle(len(wires), func(i, j int) { wires[i], wires[j] = wires[j], wires[i] })
	}
	for _, m := range wires {
		to := c.nodes[m.To]
		if to == nil || c.lose(m) {
			continue
		}
		if err := to.r.Receive(replicatest.Reread(m)); !to.wiped && (to.r.Err() == nil || !c.mayFail) {
			require.NoError(c.t, err)
		}
		if c.shuffle && c.rand.IntN(10) == 0 {
			c.wires = append(c.wires, m)
		}
	}
}

// settle lets everything happen that needs no time.
func (c *cluster) settle() {
	for range 1000 {
		busy := len(c.wires) > 0
		c.deliver()
		for _, id := range c.ids() {
			busy = c.turn(c.nodes[id]) || busy
		}
		if !busy {
			return
		}
	}
	c.t.Fatal("the cluster does not come to rest")
}

const tick = 100 * time.Millisecond

// run lets n ticks pass at all nodes.
func (c *cluster) run(n int) {
	for range n {
		c.now += tick
		for _, id := range c.ids() {
			c.nodes[id].r.Tick(c.now)
		}
		for len(c.streams) > 0 && c.streams[0].due <= c.now {
			s := c.streams[0]
			c.streams = c.streams[1:]
			c.arrive(c.nodes[s.send.To], s.header, s.body)
			s.from.r.SnapshotSent(s.send.To, nil)
		}
		c.settle()
	}
}

// elect makes a node leader.
func (c *cluster) elect(id uint64) *node {
	n := c.nodes[id]
	for range 100 {
		if n.r.leads() {
			return n
		}
		require.NoError(c.t, n.r.Campaign())
		c.settle()
		c.run(1)
	}
	c.t.Fatalf("node %d is not elected", id)
	return nil
}

// propose begins a proposal at a node.
func (c *cluster) propose(id uint64, command string) Call {
	c.calls++
	c.nodes[id].r.Propose(c.calls, []byte(command), c.now+100*tick)
	return c.calls
}

// result returns the outcome of a call that must have ended.
func (c *cluster) result(call Call) Done {
	c.t.Helper()
	d, ok := c.done[call]
	require.True(c.t, ok, "call %d has not ended", call)
	return d
}

// agree checks that all nodes have the same state.
func (c *cluster) agree() []string {
	c.t.Helper()
	var first *node
	for _, id := range c.ids() {
		n := c.nodes[id]
		if first == nil {
			first = n
			continue
		}
		require.Equal(c.t, first.sm.applied, n.sm.applied, "node %d", id)
		require.Equal(c.t, first.sm.index, n.sm.index)
		require.Equal(c.t, first.sm.host, n.sm.host, "the host's state is a function of the log")
	}
	return first.sm.applied
}

// bothCores runs a test with each library.
func bothCores(t *testing.T, f func(t *testing.T, core NewCore)) {
	for name, core := range map[string]NewCore{"weft": Weft, "upstream": Upstream} {
		t.Run(name, func(t *testing.T) { f(t, core) })
	}
}

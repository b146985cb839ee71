// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package replica

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/internal/wire"
	"github.com/weftraft/weft/raft"
)

// While few batches are under way each leaves at once; then the next waits until
// it is full, one ends, or a moment has passed since the last one.
func TestBatchesWaitForEachOther(t *testing.T) {
	c := newCluster(t, Weft, 1, 2, 3)
	n := c.elect(1)
	n.r.cfg.EagerBatches, n.r.cfg.MaxBatchBytes = 2, 10
	c.lose = func(m wire.Message) bool { return m.Class() == wire.ClassAppend }
	batches := func() int { c.settle(); return len(n.r.outbox.batches) }
	for i := range 5 {
		c.propose(1, "x")
		require.Equal(t, min(i+1, 2), batches())
	}
	require.Equal(t, 3, n.r.outbox.unbatched)
	c.propose(1, "0123456")
	require.Equal(t, 3, batches(), "it is full")
	require.Zero(t, n.r.outbox.unbatched)
	c.now += eagerEvery - 1
	c.propose(1, "y")
	require.Equal(t, 3, batches())
	c.now++
	c.propose(1, "y")
	require.Equal(t, 4, batches(), "the last one left a moment ago")
	c.propose(1, "y")
	require.Equal(t, 4, batches())
	n.r.cfg.Busy, n.r.cfg.Tick = func() float64 { return busyFrom }, tick
	c.now += tick - 1
	require.Equal(t, 4, batches(), "processors are busy")
	c.now++
	c.turn(n)
	require.Equal(t, 5, batches())
	c.propose(1, "z")
	c.run(1)
	require.Equal(t, 6, batches(), "it has waited for a tick")
	c.lose = func(wire.Message) bool { return false }
	c.run(15)
	require.Len(t, c.agree(), 10)
	require.Zero(t, n.r.outbox.unbatched)
}

// trio is three cores whose messages and writes need no time.
type trio struct {
	t        testing.TB
	cores    [3]Core
	logs     [3]memLog
	messages int
	entries  int // committed at the leader
}

func newTrio(t testing.TB) *trio {
	tr := &trio{t: t}
	for i := range tr.cores {
		tr.logs[i] = newMemLog()
		w := beginning([]uint64{1, 2, 3})
		require.NoError(t, tr.logs[i].Append(*w, nil))
		cfg := Config{Settings: Settings{ID: uint64(i + 1), Log: tr.logs[i]}}.withDefaults()
		cfg.Applied = firstMark.index
		var err error
		tr.cores[i], err = Weft(cfg.core(tr.logs[i]))
		require.NoError(t, err)
	}
	require.NoError(t, tr.cores[0].Campaign())
	tr.pump()
	require.Equal(t, raft.StateLeader, tr.cores[0].State().Role)
	return tr
}

// pump lets everything happen.
func (tr *trio) pump() {
	for busy := true; busy; {
		busy = false
		for i, core := range tr.cores {
			for core.HasReady() {
				busy = true
				tr.ready(i, core.Ready())
			}
		}
	}
}

func (tr *trio) ready(i int, rd Ready) {
	step := func(m *pb.Message) {
		to := m.GetTo() - 1
		if int(to) != i {
			tr.messages++
		}
		_ = tr.cores[to].Step(m) // a core may have no use for it
	}
	for _, m := range rd.Messages {
		step(m)
	}
	if a := rd.Append; a != nil {
		require.NoError(tr.t, tr.logs[i].MemoryStorage.Append(a.Entries))
		for _, m := range a.Responses {
			step(m)
		}
	}
	if a := rd.Apply; a != nil {
		if i == 0 {
			tr.entries += len(a.Entries)
		}
		for _, m := range a.Responses {
			step(m)
		}
	}
}

// commit has commands committed in so many entries.
func (tr *trio) commit(commands [][]byte, entries int) {
	each := len(commands) / entries
	for i := range entries {
		data := encodeBatch(wire.CommandID{Origin: 1, Boot: 1, Sequence: 1}, 1, commands[i*each:(i+1)*each])
		require.NoError(tr.t, tr.cores[0].Propose(data))
	}
	tr.pump()
}

// One entry of 100 commands costs the three cores at most a fifth of what 100
// entries cost, in messages and in allocations.
func TestBatchCost(t *testing.T) {
	commands := make([][]byte, 100)
	for i := range commands {
		commands[i] = make([]byte, 16)
	}
	cost := func(entries int) (messages int, allocs float64) {
		tr := newTrio(t)
		tr.commit(commands, entries)
		tr.messages, tr.entries = 0, 0
		const runs = 20
		allocs = testing.AllocsPerRun(runs, func() { tr.commit(commands, entries) })
		require.Equal(t, (runs+1)*entries, tr.entries)
		return tr.messages, allocs
	}
	oneMessages, oneAllocs := cost(1)
	manyMessages, manyAllocs := cost(100)
	t.Logf("one entry: %d messages, %.0f allocations; 100 entries: %d messages, %.0f allocations", oneMessages, oneAllocs, manyMessages, manyAllocs)
	require.LessOrEqual(t, 5*oneMessages, manyMessages)
	require.LessOrEqual(t, 5*oneAllocs, manyAllocs)
}

// BenchmarkBatch is what 100 commands cost three cores, in one entry and in 100.
func BenchmarkBatch(b *testing.B) {
	for _, size := range []int{16, 1 << 10} {
		for _, entries := range []int{1, 100} {
			b.Run(fmt.Sprintf("size=%d/entries=%d", size, entries), func(b *testing.B) {
				commands := make([][]byte, 100)
				for i := range commands {
					commands[i] = make([]byte, size)
				}
				tr := newTrio(b)
				b.SetBytes(int64(100 * size))
				b.ReportAllocs()
				for n := 0; b.Loop(); n++ {
					tr.commit(commands, entries)
					if n%100 == 99 { // the log in memory must not grow for ever
						for i, log := range tr.logs {
							applied := tr.cores[i].State().Applied
							require.NoError(b, log.SetSnapshot(&pb.SnapshotMetadata{Index: new(applied), ConfState: &pb.ConfState{Voters: []uint64{1, 2, 3}}}, nil))
							require.NoError(b, log.Compact(applied))
						}
					}
				}
			})
		}
	}
}

// Under overload a command that would not be applied in time is refused, and not
// sent: it would be work for nobody.
func TestLateCommandsAreRefused(t *testing.T) {
	c := newCluster(t, Weft, 1, 2, 3)
	n := c.elect(1)
	n.r.cfg.EagerBatches = 1
	n.r.outbox.typical = 5 * tick
	begin := func(left int) Call {
		c.calls++
		n.r.Propose(c.calls, []byte("x"), c.now+tick/2+tick*Deadline(left))
		return c.calls
	}
	alone := begin(3)
	c.settle()
	require.NoError(t, c.result(alone).Err, "nothing is under way, so nobody knows better")
	c.lose = func(m wire.Message) bool { return m.Class() == wire.ClassAppend }
	first := begin(30)
	c.turn(n)
	late, early := begin(4), begin(12)
	c.run(2)
	require.ErrorIs(t, c.result(late).Err, ErrRefused)
	require.ErrorIs(t, c.result(late).Err, ErrOverloaded)
	require.Equal(t, uint64(1), n.r.count.RefusedLate)
	c.lose = func(wire.Message) bool { return false }
	c.run(5)
	require.NoError(t, c.result(first).Err)
	require.NoError(t, c.result(early).Err)
	require.Less(t, n.r.outbox.typical, 5*tick)
	require.Zero(t, n.r.Status().Queued)
	require.Len(t, c.agree(), 3)
}

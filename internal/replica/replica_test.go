// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package replica

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/internal/wire"
	"github.com/weftraft/weft/raft"
	"github.com/weftraft/weft/storage"
)

func TestProposeAtEveryNode(t *testing.T) {
	bothCores(t, func(t *testing.T, core NewCore) {
		c := newCluster(t, core, 1, 2, 3)
		c.elect(2)
		var calls []Call
		for i := range 30 {
			calls = append(calls, c.propose(uint64(i%3+1), fmt.Sprint(i)))
		}
		c.settle()
		c.run(2) // followers learn the commit index
		for i, call := range calls {
			d := c.result(call)
			require.NoError(t, d.Err)
			require.Equal(t, fmt.Sprint("did ", i), d.Result)
			require.NotZero(t, d.Index)
		}
		require.Len(t, c.agree(), 30)
		for _, n := range c.nodes {
			require.Equal(t, uint64(1), n.r.count.Batches, "commands of a turn share an entry")
		}
	})
}

func TestBatchLimits(t *testing.T) {
	c := newCluster(t, Weft, 1)
	n := c.elect(1)
	n.r.cfg.MaxBatchBytes = 10
	for _, s := range []string{"12345678", "12", "1", strings.Repeat("x", 50), "1"} {
		c.propose(1, s)
	}
	c.settle()
	require.Equal(t, uint64(4), n.r.count.Batches, "8+2, 1, 50, 1 bytes")
	require.Len(t, c.agree(), 5)
}

func TestLimitsRefuse(t *testing.T) {
	c := newCluster(t, Weft, 1, 2, 3)
	n := c.nodes[1]
	n.r.cfg.MaxCommandBytes, n.r.cfg.MaxQueueBytes, n.r.cfg.MaxCalls = 10, 25, 4
	refused := func(call Call, cause error) {
		t.Helper()
		c.settle()
		err := c.result(call).Err
		require.ErrorIs(t, err, ErrRefused)
		require.ErrorIs(t, err, cause)
	}
	refused(c.propose(1, "12345678901"), ErrTooLarge)
	c.propose(1, "1234567890")
	c.propose(1, "1234567890")
	refused(c.propose(1, "1234567890"), ErrOverloaded)
	c.propose(1, "")
	c.propose(1, "")
	refused(c.propose(1, ""), ErrOverloaded)
	require.Equal(t, 20, n.r.Status().Queued)
	c.run(101)
	require.Zero(t, n.r.Status().Waiting)
	require.Zero(t, n.r.Status().Queued, "calls that end give their bytes back")
}

// A client of a minority gets a clear answer, in time: no effect, if it is sure.
func TestMinority(t *testing.T) {
	bothCores(t, func(t *testing.T, core NewCore) {
		c := newCluster(t, core, 1, 2, 3)
		c.elect(1)
		c.lose = func(m wire.Message) bool { return m.From == 1 || m.To == 1 }
		early := c.propose(1, "early") // it still believes that it leads
		c.run(50)
		require.False(t, c.nodes[1].r.leads(), "it has stepped down")
		late := c.propose(1, "late")
		c.calls++
		read := c.calls
		c.nodes[1].r.ReadWith(read, ReadOptions{}, c.now+100*tick)
		c.run(101)
		require.ErrorIs(t, c.result(early).Err, ErrUnknown)
		require.ErrorIs(t, c.result(early).Err, ErrTimeout)
		for _, call := range []Call{late, read} {
			err := c.result(call).Err
			require.ErrorIs(t, err, ErrRefused)
			require.ErrorIs(t, err, ErrNoLeader)
			require.ErrorContains(t, err, "cut off from a majority")
		}
		c.lose = func(wire.Message) bool { return false }
		c.run(50)
		require.Empty(t, c.agree())
		require.Zero(t, c.nodes[1].r.Status().Queued)
	})
}

// A node that waits to be added is told so, and not that an election may be under way.
func TestCallAtANodeThatIsNoMemberSaysSo(t *testing.T) {
	c := newCluster(t, Weft)
	c.add(4, nil)
	call := c.propose(4, "a command")
	c.run(101)
	err := c.result(call).Err
	require.ErrorIs(t, err, ErrRefused)
	require.ErrorContains(t, err, "this node is no member of the group, as far as it knows: add it at a member")
}

// The fate of a batch that an old leader lost follows from the log, and the batch
// is sent again without anybody asking.
func TestLeaderLosesBatch(t *testing.T) {
	bothCores(t, func(t *testing.T, core NewCore) {
		c := newCluster(t, core, 1, 2, 3)
		c.elect(1)
		// The leader appends what node 3 sends, and nobody else hears of it.
		c.lose = func(m wire.Message) bool { return m.From == 1 && m.Class() == wire.ClassAppend }
		call := c.propose(3, "x")
		c.run(2)
		require.True(t, c.nodes[3].r.outbox.batches[0].accepted)
		c.lose = func(m wire.Message) bool { return m.From == 1 || m.To == 1 }
		c.run(120) // the others elect; votes may split
		require.NoError(t, c.result(call).Err)
		c.lose = func(wire.Message) bool { return false }
		c.run(40)
		require.Equal(t, []string{"x"}, c.agree())
	})
}

// A frame that is lost on the way, and one whose answer is, are both sent again
// in the leader's own term, and apply once.
func TestFramesGetLost(t *testing.T) {
	for _, kind := range []wire.Kind{wire.KindProposal, wire.KindVerdict} {
		t.Run(kind.String(), func(t *testing.T) {
			c := newCluster(t, Weft, 1, 2, 3)
			c.elect(1)
			c.lose = func(m wire.Message) bool {
				return m.Kind() == kind || m.To == 3 && m.Class() == wire.ClassAppend
			}
			call := c.propose(3, "x")
			c.settle()
			require.NotContains(t, c.done, call)
			c.lose = func(wire.Message) bool { return false }
			c.run(12)
			require.Equal(t, "did x", c.result(call).Result)
			require.Equal(t, []string{"x"}, c.agree())
		})
	}
}

// A batch that nobody waits for any more is withdrawn: an entry that does
// nothing takes its id.
func TestWithdrawnBatch(t *testing.T) {
	c := newCluster(t, Weft, 1, 2, 3)
	c.elect(1)
	var held []wire.Message
	c.lose = func(m wire.Message) bool {
		if m.Kind() == wire.KindProposal {
			held = append(held, m)
			return true
		}
		return false
	}
	call := c.propose(3, "x")
	c.settle()
	require.Len(t, held, 1)
	c.nodes[3].r.Cancel(call, ErrStopped)
	c.settle()
	require.ErrorIs(t, c.result(call).Err, ErrUnknown)
	c.lose = func(wire.Message) bool { return false }
	c.run(15)
	require.Empty(t, c.nodes[3].r.outbox.batches)
	// The original comes after all. Its number alone would stop it; the table of
	// origins does, too, at the leader, and in the log of one that did not ask it.
	require.NoError(t, c.nodes[1].r.Receive(held[0]))
	original := held[0].Body.(wire.Proposal)
	original.Number = 100
	held[0].Body = original
	last := c.nodes[1].r.last
	require.NoError(t, c.nodes[1].r.Receive(held[0]))
	c.settle()
	require.Equal(t, last, c.nodes[1].r.last)
	require.NoError(t, c.nodes[1].r.core.Propose(original.Data))
	c.nodes[1].r.dirty = true
	c.settle()
	c.run(2)
	require.Empty(t, c.agree())
	require.Equal(t, uint64(1), c.nodes[1].r.count.DuplicateBatches)
}

func TestReadsShareARound(t *testing.T) {
	bothCores(t, func(t *testing.T, core NewCore) {
		c := newCluster(t, core, 1, 2, 3)
		c.elect(1)
		write := c.propose(1, "x")
		c.settle()
		require.NoError(t, c.result(write).Err)
		for i := range 20 {
			c.nodes[3].r.ReadWith(Call(100+i), ReadOptions{}, c.now+100*tick)
		}
		c.settle()
		c.run(1)
		for i := range 20 {
			d := c.result(Call(100 + i))
			require.NoError(t, d.Err)
			require.GreaterOrEqual(t, d.Index, c.result(write).Index)
			require.GreaterOrEqual(t, c.nodes[3].sm.index, d.Index)
		}
		require.Equal(t, uint64(1), c.nodes[3].r.count.ReadRounds)
	})
}

// A read waits for the state machine, not for the log.
func TestReadWaitsForApply(t *testing.T) {
	c := newCluster(t, Weft, 1)
	n := c.elect(1)
	c.propose(1, "x")
	n.held = true
	// The write commits and is handed out, but not applied.
	for range 5 {
		c.turn(n)
		for _, a := range n.appends {
			require.NoError(t, n.log.Append(a.Write, nil))
			n.r.AppendDone(a)
		}
		n.appends = nil
	}
	require.NotEmpty(t, n.applies)
	n.r.ReadWith(50, ReadOptions{}, c.now+100*tick)
	c.turn(n)
	c.turn(n)
	require.NotContains(t, c.done, Call(50))
	n.held = false
	c.settle()
	require.NoError(t, c.result(50).Err)
}

func TestMembership(t *testing.T) {
	bothCores(t, func(t *testing.T, core NewCore) {
		c := newCluster(t, core, 1, 2, 3)
		c.elect(1)
		for i := range 10 {
			c.propose(1, fmt.Sprint(i))
		}
		c.settle()
		c.add(4, nil)
		change := func(id uint64, changes ...*pb.ConfChangeSingle) Done {
			t.Helper()
			c.calls++
			c.nodes[id].r.ProposeConfChange(c.calls, &pb.ConfChangeV2{Changes: changes, Context: []byte("mine")}, c.now+100*tick)
			call := c.calls
			c.settle()
			c.run(5)
			return c.result(call)
		}
		single := func(typ pb.ConfChangeType, id uint64) *pb.ConfChangeSingle {
			return &pb.ConfChangeSingle{Type: typ.Enum(), NodeId: new(id)}
		}
		d := change(3, single(pb.ConfChangeAddLearnerNode, 4))
		require.NoError(t, d.Err)
		require.Equal(t, []uint64{4}, d.Result.(*pb.ConfState).GetLearners())
		require.Equal(t, []uint64{4}, c.nodes[4].r.host.conf.GetLearners(), "it came up by a snapshot")
		require.NotZero(t, c.nodes[4].r.count.SnapshotsInstalled)

		// Promote it, and remove another, in one joint change.
		d = change(2, single(pb.ConfChangeAddNode, 4), single(pb.ConfChangeRemoveNode, 3))
		require.NoError(t, d.Err)
		delete(c.nodes, 3)
		c.run(10)
		require.Equal(t, []uint64{1, 2, 4}, c.nodes[1].r.host.conf.GetVoters())
		require.Empty(t, c.nodes[1].r.host.conf.GetVotersOutgoing(), "the joint configuration is left")
		write := c.propose(4, "from the new one")
		c.settle()
		c.run(2)
		require.NoError(t, c.result(write).Err)
		require.Len(t, c.agree(), 11)

		// What fits no configuration is refused before it does harm.
		d = change(2, single(pb.ConfChangeRemoveNode, 1), single(pb.ConfChangeRemoveNode, 2), single(pb.ConfChangeRemoveNode, 4))
		require.ErrorIs(t, d.Err, ErrRefused)
		require.ErrorIs(t, d.Err, ErrConfChange)
		require.ErrorContains(t, d.Err, "removed all voters")
		// Leaving a configuration that is not joint: the leader sees it.
		d = change(1)
		require.ErrorIs(t, d.Err, ErrConfChange)
	})
}

func TestTransferLeader(t *testing.T) {
	bothCores(t, func(t *testing.T, core NewCore) {
		c := newCluster(t, core, 1, 2, 3)
		c.elect(1)
		c.nodes[3].r.TransferLeader(1000, 2, c.now+50*tick) // asked at a third node
		c.nodes[3].r.TransferLeader(1001, 9, c.now+50*tick)
		c.settle()
		c.run(2)
		require.NoError(t, c.result(1000).Err)
		require.True(t, c.nodes[2].r.leads())
		require.ErrorIs(t, c.result(1001).Err, ErrNotMember)
	})
}

// A follower that lags behind the log comes up by a snapshot, and its own call
// that the snapshot passed over ends.
func TestSnapshotPassesOver(t *testing.T) {
	bothCores(t, func(t *testing.T, core NewCore) {
		c := newCluster(t, core, 1, 2, 3)
		for _, n := range c.nodes {
			n.r.cfg.RetainEntries = 5
		}
		c.elect(1)
		c.lose = func(m wire.Message) bool { return m.To == 3 && m.Class() == wire.ClassAppend }
		mine := c.propose(3, "mine")
		for i := range 50 {
			c.propose(1, fmt.Sprint(i))
			c.settle()
		}
		first, err := c.nodes[1].log.FirstIndex()
		require.NoError(t, err)
		require.Greater(t, first, uint64(30), "the log is compacted")
		c.lose = func(wire.Message) bool { return false }
		c.run(30)
		require.Len(t, c.agree(), 51)
		require.NotZero(t, c.nodes[3].r.count.SnapshotsInstalled)
		require.ErrorIs(t, c.result(mine).Err, ErrUnknown)
		require.ErrorIs(t, c.result(mine).Err, ErrSuperseded)
	})
}

// A snapshot that the core has no use for any more leaves the state machine
// ahead; the entries up to there are left out, and nothing applies twice.
func TestStateAheadOfCore(t *testing.T) {
	bothCores(t, func(t *testing.T, core NewCore) {
		c := newCluster(t, core, 1, 2, 3)
		c.elect(1)
		n, from := c.nodes[3], c.nodes[1]
		c.lose = func(m wire.Message) bool { return m.To == 3 && m.Class() == wire.ClassAppend }
		for i := range 5 {
			c.propose(1, fmt.Sprint(i))
			c.settle()
		}
		snap, err := from.sm.Snapshot()
		require.NoError(t, err)
		msg := &pb.Message{Type: pb.MsgSnap.Enum(), From: new(uint64(1)), To: new(uint64(3)), Term: new(from.r.state.Term)}
		header, err := SnapshotHeader(SnapshotSend{To: 3, Message: msg}, snap.Meta())
		require.NoError(t, err)
		require.NoError(t, n.r.OfferSnapshot(1, header))
		require.ErrorIs(t, n.r.OfferSnapshot(1, header), ErrRestoring)
		// While it is restored, the log catches up and goes beyond.
		c.lose = func(wire.Message) bool { return false }
		n.held = true
		c.propose(1, "beyond")
		for range 30 {
			c.now += tick
			from.r.Tick(c.now)
			c.settle()
			for _, a := range n.appends {
				require.NoError(t, n.log.Append(a.Write, nil))
				n.r.AppendDone(a)
			}
			n.appends = nil
		}
		require.NotEmpty(t, n.applies)
		require.NoError(t, n.sm.Restore(SnapshotMeta{Index: snap.Meta().Index, Host: snap.Meta().Host}, snap))
		n.r.SnapshotRestored(header, nil)
		n.held = false
		c.run(5)
		require.Equal(t, []string{"0", "1", "2", "3", "4", "beyond"}, c.agree())
	})
}

// An origin whose boot number is not new finds out, and nothing is lost.
func TestOriginWithTakenBootNumberLosesNothing(t *testing.T) {
	c := newCluster(t, Weft, 1, 2, 3)
	c.elect(1)
	n := c.nodes[3]
	// An entry of a later boot of node 3 gets into the log behind its back.
	entry := encodeBatch(wire.CommandID{Origin: 3, Boot: 99, Sequence: 1}, 1, [][]byte{[]byte("earlier life")})
	require.NoError(t, c.nodes[1].r.core.Propose(entry))
	c.nodes[1].r.dirty = true
	c.nodes[1].r.last++
	call := c.propose(3, "x")
	c.settle()
	c.run(3)
	require.Equal(t, uint64(99+1+1), n.r.outbox.boot, "with the own boot, which is 1")
	require.NoError(t, c.result(call).Err)
	require.Equal(t, []string{"earlier life", "x"}, c.agree())
}

func TestRestart(t *testing.T) {
	bothCores(t, func(t *testing.T, core NewCore) {
		c := newCluster(t, core, 1, 2, 3)
		c.elect(1)
		c.propose(2, "a")
		c.settle()
		c.run(1)
		for _, id := range c.ids() {
			c.start(c.nodes[id]) // all at once
		}
		c.elect(2)
		c.propose(2, "b")
		c.settle()
		c.run(2)
		require.Equal(t, []string{"a", "b"}, c.agree())
	})
}

// At a restart the configuration, and the commit index, are those of the applied
// state: the log's own may be older, as they are written later or not synced.
func TestRestartFromAppliedState(t *testing.T) {
	bothCores(t, func(t *testing.T, core NewCore) {
		c := newCluster(t, core, 1, 2, 3)
		c.elect(1)
		c.calls++
		c.nodes[1].r.ProposeConfChange(c.calls, &pb.ConfChangeV2{Changes: []*pb.ConfChangeSingle{{Type: pb.ConfChangeAddLearnerNode.Enum(), NodeId: new(uint64(4))}}}, c.now+100*tick)
		c.settle()
		c.propose(1, "x")
		c.settle()
		c.run(2)
		for _, id := range c.ids() {
			n := c.nodes[id]
			hs, _, err := n.log.InitialState()
			require.NoError(t, err)
			require.NoError(t, n.log.SetHardState(&pb.HardState{Term: hs.Term, Vote: hs.Vote, Commit: new(hs.GetCommit() - 2)}))
			c.start(n)
			require.Equal(t, n.sm.index, n.r.state.Commit)
			conf, _ := n.r.core.Members()
			require.Contains(t, conf.Learners, uint64(4))
		}
		c.elect(2)
		c.propose(3, "y")
		c.settle()
		c.run(2)
		require.Equal(t, []string{"x", "y"}, c.agree())
	})
}

// A state machine that a snapshot has taken beyond its log, when the node
// stopped, gets a log that begins there.
func TestPrepareLog(t *testing.T) {
	h := &hostState{at: logMark{term: 3, index: 50}, conf: pb.EnsureConfState(&pb.ConfState{Voters: []uint64{1, 2}}), origins: originTable{}}
	log := newMemLog()
	require.NoError(t, log.Append(*beginning([]uint64{1, 2}), nil))
	cfg := Config{Settings: Settings{ID: 1, Log: log, Peers: []uint64{1, 2}}, Applied: 50, HostState: h.encode()}
	w, err := PrepareLog(cfg)
	require.NoError(t, err)
	require.Equal(t, uint64(50), w.Snapshot.GetMetadata().GetIndex())
	require.Equal(t, uint64(3), w.HardState.GetTerm())
	require.NoError(t, log.Append(*w, nil))
	w, err = PrepareLog(cfg)
	require.NoError(t, err)
	require.Nil(t, w)
	_, err = New(cfg)
	require.NoError(t, err)

	begun := newMemLog()
	require.NoError(t, begun.Append(storage.Write{HardState: RestoreBegun()}, nil))
	for want, cfg := range map[string]Config{
		"a restore was begun here":               {Settings: Settings{ID: 1, Log: begun, Peers: []uint64{1, 2}}},
		"and has not ended: call Restore again":  {Settings: Settings{Log: begun}, Applied: 50, HostState: h.encode()},
		"the log is empty":                       {Settings: Settings{Log: newMemLog()}, Applied: 50, HostState: h.encode()},
		"the state machine is empty":             {Settings: Settings{Log: log}},
		"the state machine is at index 20":       {Settings: Settings{Log: log}, Applied: 20, HostState: h.encode()},
		"must keep both together":                {Settings: Settings{Log: log}, Applied: 51, HostState: h.encode()},
		"the host's bytes are missing":           {Settings: Settings{Log: log}, Applied: 51},
		"have version 9":                         {Settings: Settings{Log: log}, Applied: 51, HostState: []byte{9}},
		"the host's bytes are cut off":           {Settings: Settings{Log: log}, Applied: 51, HostState: h.encode()[:2]},
		"the table of origins is damaged":        {Settings: Settings{Log: log}, Applied: 50, HostState: append(h.encode(), 7)},
		"have a damaged configuration":           {Settings: Settings{Log: log}, Applied: 50, HostState: []byte{1, 50, 3, 1, 0xff}},
		"host's bytes are cut off in the config": {Settings: Settings{Log: log}, Applied: 50, HostState: []byte{1, 50, 3, 9, 0xff}},
	} {
		_, err := PrepareLog(cfg)
		require.ErrorIs(t, err, ErrState, want)
		require.ErrorContains(t, err, want)
	}
}

func TestUnreadableEntryStops(t *testing.T) {
	c := newCluster(t, Weft, 1)
	n := c.elect(1)
	call := c.propose(1, "waits")
	require.NoError(t, n.r.core.Propose([]byte{0x7f, 1, 2}))
	n.r.dirty = true
	for range 4 {
		out := n.r.Flush(c.now)
		for _, a := range out.Appends {
			require.NoError(t, n.log.Append(a.Write, nil))
			n.r.AppendDone(a)
		}
		for _, d := range out.Done {
			c.done[d.Call] = d
		}
	}
	require.ErrorIs(t, n.r.Err(), errEntryFormat)
	require.ErrorContains(t, n.r.Err(), "begins with 0x7f")
	require.ErrorIs(t, c.result(call).Err, ErrFailed)
	out := n.r.Flush(c.now)
	require.True(t, out.Empty(), "nothing leaves a failed replica")
}

func TestConfigNamesEveryMistake(t *testing.T) {
	cfg := Config{Settings: Settings{ID: raft.LocalAppendThread, Boot: 1 << 63, Budget: NewBudget(0), ElectionTick: 1, HeartbeatTick: 2, Peers: []uint64{2, 2, 0}, MaxQueueBytes: 5, MaxInflightBytes: 1, MaxBatches: -1, MaxBatchBytes: 50 << 20, ReadOnly: raft.ReadOnlyLeaseBased}}
	err := cfg.Validate()
	for _, want := range []string{"ID is 18446744073709551615", "Boot is 9223372036854775808, want less than 9223372036854775808", "Budget is 0, want 1 byte or more", "Log is", "ElectionTick is 1, want more than HeartbeatTick (2)", "lack this node", "contain 0", "name a node twice",
		"MaxQueueBytes is 5", "MaxInflightBytes is 1", "MaxBatches is -1", "MaxBatchBytes is 52428800, want 1 to 50331648", "ReadOnly is 1"} {
		require.ErrorContains(t, err, want)
	}
	require.ErrorIs(t, err, ErrInvalid)
}

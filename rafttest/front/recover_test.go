// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package front_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft"
	"github.com/weftraft/weft/rawnode/state"
)

// recoverGroup recovers the group at a member that is stopped.
func (m *member) recoverGroup(t testing.TB, lost ...uint64) (weft.Recovered, error) {
	return weft.Recover(within(t), m.options, 1, newJournal(t, filepath.Join(m.options.Dir, "state")), lost)
}

// planned returns err once the plan of a recovery is written.
func (m *member) planned(err error) error {
	if _, none := os.Stat(filepath.Join(m.options.Dir, "recovery")); none != nil {
		return nil
	}
	return err
}

func TestLostMajorityIsRecoveredWithWhatTheSurvivorHas(t *testing.T) {
	all := startCluster(t, 3)
	knowEachOther(t, all)
	load := startWriters(t, map[uint64]*member{1: all[1]}, 4)
	eventually(t, func() bool { return len(load.of(load.acked)) > 200 }, "200 lines")
	all[2].stop(t)
	all[3].stop(t)
	load.end()
	acked, begun := load.of(load.acked), load.of(load.begun)
	all[1].stop(t)

	i, err := weft.Inspect(all[1].options, 1)
	require.NoError(t, err)
	require.Equal(t, all[3].options.Peers[3], i.Addresses[3])
	require.Len(t, i.Members, 3)
	require.Equal(t, weft.Member{ID: 3, Address: all[3].options.Peers[3], Voter: true}, i.Members[2])
	done, err := all[1].recoverGroup(t, 2, 3)
	require.NoError(t, err)
	require.Equal(t, i.LastIndex+1, done.Index)
	require.FileExists(t, done.Copy)

	all[1].start(t)
	lines := all[1].read(t)
	require.Subset(t, lines, acked, "all that was acknowledged here")
	require.Subset(t, begun, lines)
	seen := map[string]bool{}
	for _, line := range lines {
		require.False(t, seen[line], "%s is there twice", line)
		seen[line] = true
	}
	voters, _ := all[1].ids()
	require.Equal(t, []uint64{1}, voters)

	// The group grows again, with ids that were never used.
	require.ErrorIs(t, all[1].group.AddVoter(within(t), 2, addressesOf(t, 2)[2]), weft.ErrRemoved)
	for _, id := range []uint64{4, 5} {
		all[id] = joiner(t, id, all[1])
		all[id].start(t)
		changed(t, func(ctx context.Context) error { return all[1].group.AddVoter(ctx, id, all[id].options.Listen) })
	}
	require.Equal(t, len(lines)+1, all[1].propose(t, "goes on"))
	require.Len(t, all[5].read(t), len(lines)+1)

	// One that was lost comes back: it belongs to a group that is no more.
	all[2].start(t)
	states := watch(t, all[2])
	await(t, states, "the lost member hears that it is out", func(s weft.State) bool { return s.Removed })
	eventually(t, func() bool {
		_, err = all[2].group.Propose(brief(t), []byte("of a lost member"))
		return errors.Is(err, weft.ErrRemoved)
	}, "the lost member refuses commands")
	require.NotContains(t, all[1].read(t), "of a lost member")

	all[1].stop(t)
	i, err = weft.Inspect(all[1].options, 1)
	require.NoError(t, err)
	ids := []uint64{}
	for _, m := range i.Members {
		ids = append(ids, m.ID)
	}
	require.Equal(t, []uint64{1, 4, 5}, ids)
}

func TestRecoverIsRefusedUnlessAllOthersAreLost(t *testing.T) {
	all := startCluster(t, 3)
	all[1].propose(t, "a line")
	knowEachOther(t, all)

	_, err := all[1].recoverGroup(t, 2, 3)
	require.ErrorIs(t, err, weft.ErrLocked, "the node is open")
	all[1].stop(t)
	_, err = all[1].recoverGroup(t, 2, 3)
	require.ErrorIs(t, err, weft.ErrMajority)
	require.ErrorContains(t, err, "open this node")
	for _, lost := range [][]uint64{nil, {2}, {1, 2, 3}, {2, 3, 4}} {
		_, err = all[1].recoverGroup(t, lost...)
		require.ErrorIs(t, err, weft.ErrInvalid, "lost: %v", lost)
		require.ErrorContains(t, err, "[2 3]")
	}
	// Nothing was changed: the three go on.
	all[1].start(t)
	require.Equal(t, 2, all[1].propose(t, "goes on"))
	changed(t, func(ctx context.Context) error { return all[1].group.Remove(ctx, 2) })
	changed(t, func(ctx context.Context) error { return all[1].group.Remove(ctx, 3) })
	all[1].stop(t)
	_, err = all[1].recoverGroup(t)
	require.ErrorIs(t, err, weft.ErrMajority, "it is alone, and a majority")
}

func TestRecoverIsRefusedWhileAnotherSurvivorRuns(t *testing.T) {
	all := startCluster(t, 5)
	all[1].propose(t, "a line")
	knowEachOther(t, all)
	for _, id := range []uint64{3, 4, 5, 1} {
		all[id].stop(t)
	}
	_, err := all[1].recoverGroup(t, 2, 3, 4, 5)
	require.ErrorIs(t, err, weft.ErrMajority)
	require.ErrorContains(t, err, "compare them")
	all[2].stop(t)
	_, err = all[1].recoverGroup(t, 2, 3, 4, 5)
	require.NoError(t, err)
}

// Recover fails in the middle: until it is called again, the node does not open, and then
// nothing is lost.
func TestInterruptedRecoveryGoesOn(t *testing.T) {
	all := startCluster(t, 3)
	for range 25 {
		all[1].propose(t, "a line")
	}
	knowEachOther(t, all)
	for _, m := range all {
		m.stop(t)
	}
	full := errors.New("the disk is full")
	for name, hook := range map[string]func(*journal){
		"snapshot": func(j *journal) { j.snapshot = func() error { return all[1].planned(full) } },
		"restore":  func(j *journal) { j.restore = func() error { return full } },
	} {
		j := newJournal(t, filepath.Join(all[1].options.Dir, "state"))
		hook(j)
		_, err := weft.Recover(within(t), all[1].options, 1, j, []uint64{2, 3})
		require.ErrorIs(t, err, full, name)
		_, err = weft.Open(all[1].options)
		require.ErrorIs(t, err, weft.ErrUnfinished, name)
		_, err = all[1].recoverGroup(t, 2)
		require.ErrorIs(t, err, weft.ErrUnfinished, name)
	}
	done, err := all[1].recoverGroup(t, 2, 3)
	require.NoError(t, err)
	all[1].start(t)
	require.Len(t, all[1].read(t), 25)
	all[1].stop(t)

	// The copy is a snapshot like any other.
	file, err := os.ReadFile(done.Copy)
	require.NoError(t, err)
	require.Len(t, restoreCluster(t, 3, file)[2].read(t), 25)
}

// An operator has changed the addresses of the others for this node, and mistyped them: the others
// are there, at the addresses that are replicated.
func TestRecoverAsksAtEveryAddress(t *testing.T) {
	all := startCluster(t, 3)
	all[1].propose(t, "a line")
	knowEachOther(t, all)
	right := all[1].options.Peers
	wrong := addressesOf(t, 1, 2, 3)
	wrong[1] = right[1]
	all[1].stop(t)
	all[1].options.Peers = wrong
	_, err := all[1].recoverGroup(t, 2, 3)
	require.ErrorIs(t, err, weft.ErrMajority)
	require.ErrorContains(t, err, right[2]+" (node 2)")
	all[1].start(t) // which takes the wrong addresses for newer ones
	all[1].stop(t)
	_, err = all[1].recoverGroup(t, 2, 3)
	require.ErrorIs(t, err, weft.ErrMajority, "they are not forgotten")

	// A mistyped SetAddress, at a member that was down, does not hide it either.
	all[1].options.Peers = right
	all[1].start(t)
	all[2].stop(t)
	changed(t, func(ctx context.Context) error { return all[1].group.SetAddress(ctx, 2, addressesOf(t, 2)[2]) })
	all[3].stop(t)
	all[1].stop(t)
	listener, err := net.Listen("tcp", right[2])
	require.NoError(t, err)
	_, err = all[1].recoverGroup(t, 2, 3)
	require.ErrorIs(t, err, weft.ErrMajority)
	require.ErrorContains(t, err, right[2])
	require.NoError(t, listener.Close())
	done, err := all[1].recoverGroup(t, 2, 3)
	require.NoError(t, err)
	asked := map[string]uint64{}
	for _, a := range done.Asked {
		require.Error(t, a.Err)
		asked[a.Address] = a.ID
	}
	for _, id := range []uint64{2, 3} {
		require.Equal(t, id, asked[right[id]])
		require.Equal(t, id, asked[wrong[id]])
	}
}

// Two members move while the third is down, and the third is recovered as if they were lost.
// They have a leader and a majority all the time, and go on, also after a restart.
func TestMembersInServiceDoNotObeyARecovery(t *testing.T) {
	all := startCluster(t, 3)
	all[1].propose(t, "before")
	knowEachOther(t, all)
	all[1].stop(t)
	log := &said{}
	for _, id := range []uint64{2, 3} {
		all[id].stop(t)
		moved := maps.Clone(all[id].options.Peers)
		moved[id] = addressesOf(t, id)[id]
		all[id].options.Peers = moved
		all[id].options.Logger = slog.New(slog.NewTextHandler(log, nil))
		all[id].start(t)
		all[id].propose(t, "moved")
	}
	knowEachOther(t, map[uint64]*member{2: all[2], 3: all[3]})
	all[2].propose(t, "acknowledged by the majority")
	since := time.Now()
	done, err := all[1].recoverGroup(t, 2, 3)
	require.NoError(t, err)
	require.NotEmpty(t, done.Asked)
	eventually(t, func() bool {
		all[3].propose(t, "in service")
		return time.Since(since) > 4*time.Second
	}, "in service for more than 30 election timeouts")
	all[1].start(t)
	eventually(t, func() bool { return strings.Count(log.String(), "this node goes on") == 2 }, "both members refuse to be lost")
	for round := range 2 {
		for _, id := range []uint64{2, 3} {
			all[id].propose(t, fmt.Sprint("round ", round))
			require.False(t, all[id].group.State().Removed, "node %d", id)
		}
		require.Contains(t, all[3].read(t), "acknowledged by the majority")
		for _, id := range []uint64{2, 3} {
			all[id].stop(t)
		}
		for _, id := range []uint64{2, 3} {
			all[id].start(t)
		}
	}

	// The recovered node is replaced, as its message says.
	all[1].stop(t)
	all[4] = joiner(t, 4, all[2])
	all[4].options.Peers = map[uint64]string{2: all[2].node.Address()}
	all[4].start(t)
	changed(t, func(ctx context.Context) error { return all[2].group.Replace(ctx, 1, 4, all[4].options.Listen) })
	all[4].propose(t, "three again")
	require.NotContains(t, log.String(), "refuses calls from now on")
}

// said is what was logged.
type said struct {
	mu   sync.Mutex
	text strings.Builder
}

func (s *said) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(p)
}

func (s *said) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

// A recovery is interrupted, and another member turns out to be alive. The node goes back to its
// old group, without what it applied for the recovery.
func TestRecoveryIsTakenBack(t *testing.T) {
	all := startCluster(t, 3)
	for range 25 {
		all[1].propose(t, "a line")
	}
	knowEachOther(t, all)
	all[1].stop(t)
	for _, step := range []string{"snapshot", "restore", "restored"} {
		all[2].propose(t, step)
		for _, id := range []uint64{2, 3} {
			all[id].stop(t)
		}
		full := errors.New("the disk is full")
		j := newJournal(t, filepath.Join(all[1].options.Dir, "state"))
		ctx, cancel := context.WithCancel(t.Context())
		switch step {
		case "snapshot":
			j.snapshot = func() error { return all[1].planned(full) }
		case "restore":
			j.restore = func() error { return full }
		case "restored":
			j.restore = func() error { j.lateLoad = func() error { return full }; return nil }
		}
		_, err := weft.Recover(ctx, all[1].options, 1, j, []uint64{2, 3})
		require.ErrorIs(t, err, full, step)
		cancel()
		before := newJournal(t, filepath.Join(all[1].options.Dir, "state")).lines()
		for _, id := range []uint64{2, 3} {
			all[id].start(t)
		}
		_, err = all[1].recoverGroup(t, 2, 3)
		require.ErrorIs(t, err, weft.ErrMajority, "asked again: %s", step)
		_, err = weft.Open(all[1].options)
		require.ErrorIs(t, err, weft.ErrUnfinished, step)
		require.ErrorContains(t, err, "TakeBack")
		require.NoError(t, weft.TakeBack(all[1].options, 1, newJournal(t, filepath.Join(all[1].options.Dir, "state"))), step)
		all[1].start(t)
		lines := all[1].read(t)
		require.Equal(t, all[2].read(t), lines)
		require.Subset(t, lines, before)
		all[1].propose(t, "a member again")
		all[1].stop(t)
	}
	err := weft.TakeBack(all[1].options, 1, newJournal(t, filepath.Join(all[1].options.Dir, "state")))
	require.ErrorIs(t, err, weft.ErrInvalid, "nothing is under way")
}

// The log of the last of two members ends with the removal of the other one, which is not committed:
// the node cannot lead without the other.
func TestLastOfTwoIsRecoveredBehindAnUncommittedRemoval(t *testing.T) {
	all := startCluster(t, 2)
	all[1].propose(t, "a line")
	knowEachOther(t, all)
	var lines int
	remove := &pb.ConfChange{Type: pb.ConfChangeRemoveNode.Enum(), NodeId: new(uint64(2))}
	for {
		eventually(t, func() bool {
			_ = all[1].group.TransferLeader(brief(t), 1)
			return all[1].group.Leader() == 1
		}, "node 1 leads")
		lines = all[1].propose(t, "a line of its term") // before, a leader appends an empty entry in place of a change
		all[2].stop(t)
		_, err := all[1].group.Host().ForceConfChange(brief(t), remove)
		if strings.Contains(err.Error(), "a majority to store the command, which the leader has appended") {
			break
		}
		all[2].start(t) // node 1 had stepped down, or node 2 led again
	}
	all[1].stop(t)
	_, err := all[1].recoverGroup(t)
	require.ErrorIs(t, err, weft.ErrMajority)
	require.ErrorContains(t, err, "name [2] as lost")
	_, err = all[1].recoverGroup(t, 2)
	require.NoError(t, err)
	all[1].start(t)
	require.Equal(t, lines+1, all[1].propose(t, "goes on"))
}

// unrestored is a state in memory whose Restore fails.
type unrestored struct {
	*state.Memory[words]
	reason error
}

func (u unrestored) Restore(weft.ViewMeta, io.Reader) error { return u.reason }

// The same with a state of Replicate, which at the beginning of the recovery has no checkpoint, or has one.
func TestRecoveryOfAStateInMemoryIsTakenBack(t *testing.T) {
	peers := addressesOf(t, 1, 2)
	all, nodes := map[uint64]*member{}, map[uint64]*weft.Replicated[words]{}
	start := func() {
		for id := range peers {
			var err error
			all[id].node, err = weft.Open(all[id].options)
			require.NoError(t, err)
			nodes[id], err = weft.Replicate(all[id].node, 1, func() words { return words{} })
			require.NoError(t, err)
			all[id].group = nodes[id].Group
		}
	}
	for id := range peers {
		all[id] = newMember(t, id, peers)
	}
	start()
	for i := range 3 {
		for ctx := within(t); ; {
			_, err := all[1].group.Propose(ctx, []byte("a word"))
			if err == nil {
				break
			}
			require.ErrorIs(t, err, weft.ErrRefused)
		}
		for id := range peers {
			all[id].stop(t)
		}
		memory := func() *state.Memory[words] {
			m, err := weft.OpenMemory(all[1].options, 1, func() words { return words{} })
			require.NoError(t, err)
			return m
		}
		m, full := memory(), errors.New("the disk is full")
		_, err := weft.Recover(within(t), all[1].options, 1, unrestored{m, full}, []uint64{2})
		require.ErrorIs(t, err, full)
		require.NoError(t, m.Close())
		m = memory()
		require.NoError(t, weft.TakeBack(all[1].options, 1, m))
		require.NoError(t, m.Close())
		start()
		require.NoError(t, nodes[1].View(within(t), func(w words) { require.Equal(t, i+1, w["a word"]) }))
	}
	for id := range peers {
		all[id].stop(t)
	}
}

// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package weft_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weftraft/weft"
)

// recoverGroup recovers the group at a member that is stopped.
func (m *member) recoverGroup(t testing.TB, lost ...uint64) (weft.Recovered, error) {
	return weft.Recover(within(t), m.options, 1, newJournal(t, filepath.Join(m.options.Dir, "state")), lost)
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
		require.NoError(t, all[1].group.AddVoter(within(t), id, all[id].options.Listen))
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
	require.NoError(t, all[1].group.Remove(within(t), 2))
	require.NoError(t, all[1].group.Remove(within(t), 3))
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
		"snapshot": func(j *journal) { j.snapshot = func() error { return full } },
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

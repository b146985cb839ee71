// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package front_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weftraft/weft"
)

// killedCluster starts nodes as processes that propose lines, kills all at some moment, and
// returns the processes.
func killedCluster(t testing.TB, n int, before func(map[uint64]*child)) (map[uint64]*member, map[uint64]*child) {
	var ids []uint64
	for id := range uint64(n) {
		ids = append(ids, id+1)
	}
	peers := addressesOf(t, ids...)
	all, processes := map[uint64]*member{}, map[uint64]*child{}
	for _, id := range ids {
		all[id] = newMember(t, id, peers)
		processes[id] = errand{Options: all[id].options}.start(t)
	}
	for _, id := range ids {
		eventually(t, func() bool { return len(processes[id].said(t, "acked")) > 100 }, "100 lines at node %d", id)
	}
	before(processes)
	for _, id := range ids {
		require.NoError(t, processes[id].Kill())
	}
	return all, processes
}

func allSaid(t testing.TB, processes map[uint64]*child, word string) (all []string) {
	for _, p := range processes {
		all = append(all, p.said(t, word)...)
	}
	return all
}

// checkRecovered looks at the lines of a recovered group.
func checkRecovered(t testing.TB, lines, acked, begun []string) {
	t.Helper()
	require.Subset(t, lines, acked, "all that was acknowledged at the survivor")
	require.Subset(t, begun, lines)
	sorted := slices.Clone(lines)
	slices.Sort(sorted)
	require.Len(t, slices.Compact(sorted), len(lines), "no line is there twice")
}

// All nodes are killed under load, one at a time when others go on. The end of the survivor's log is
// torn, as by a machine that lost power in the middle of a write that was never synced.
func TestKilledSurvivorIsRecovered(t *testing.T) {
	if testing.Short() {
		t.Skip("starts processes")
	}
	for name, before := range map[string]func(map[uint64]*child){
		"all at once":     func(map[uint64]*child) {},
		"survivor first":  func(p map[uint64]*child) { require.NoError(t, p[1].Kill()); more(t, p[2], 50) },
		"survivor behind": func(p map[uint64]*child) { require.NoError(t, p[1].Pause()); more(t, p[2], 300) },
	} {
		t.Run(name, func(t *testing.T) {
			all, processes := killedCluster(t, 3, before)
			tearLog(t, all[1].options.Dir)
			done, err := all[1].recoverGroup(t, 2, 3)
			require.NoError(t, err)
			require.FileExists(t, done.Copy)
			all[1].start(t)
			lines := all[1].read(t)
			checkRecovered(t, lines, processes[1].said(t, "acked"), allSaid(t, processes, "begun"))
			all[4] = joiner(t, 4, all[1])
			all[4].start(t)
			changed(t, func(ctx context.Context) error { return all[1].group.AddVoter(ctx, 4, all[4].options.Listen) })
			require.Equal(t, len(lines)+1, all[4].propose(t, "goes on"))
		})
	}
}

func more(t testing.TB, c *child, n int) {
	had := len(c.said(t, "acked"))
	eventually(t, func() bool { return len(c.said(t, "acked")) > had+n }, "%d lines more", n)
}

// tearLog puts the beginning of a frame that was never finished behind the end of the log.
func tearLog(t testing.TB, dir string) {
	files, err := filepath.Glob(filepath.Join(dir, "log", "*.seg"))
	require.NoError(t, err)
	last := slices.Max(files)
	log, err := os.ReadFile(last)
	require.NoError(t, err)
	end := len(bytes.TrimRight(log, "\x00"))
	end += -end & 7 // frames begin at multiples of 8
	torn := append(log[:end:end], log[:60]...)
	torn = append(torn, make([]byte, max(len(log)-len(torn), 0))...)
	require.NoError(t, os.WriteFile(last, torn, 0o600))
}

// A recovery is killed at a call of the state machine, called again and killed at the same
// call, and called a third time.
func TestRecoveryKilledAtEachStepGoesOn(t *testing.T) {
	if testing.Short() {
		t.Skip("starts processes")
	}
	steps := map[string]int{}
	missing := func() bool {
		return slices.ContainsFunc([]string{"Load", "Apply", "Snapshot", "Restore"}, func(step string) bool { return steps[step] == 0 })
	}
	for clusters := 0; clusters < 5 && missing(); clusters++ { // a node that was killed at rest has nothing left to apply
		killRecoveries(t, steps)
	}
	require.False(t, missing(), "%v", steps)
}

// killRecoveries kills a recovery at each of its calls, and counts the calls.
func killRecoveries(t *testing.T, steps map[string]int) {
	all, processes := killedCluster(t, 3, func(map[uint64]*child) {})
	acked, begun := processes[1].said(t, "acked"), allSaid(t, processes, "begun")
	for call := 1; ; call++ {
		m := copyOf(t, all[1])
		halts := recoverUntil(t, m, call)
		recovered := len(halts) == 0
		if !recovered {
			steps[halts[0]]++
			recovered = len(recoverUntil(t, m, call)) == 0
		}
		if !recovered {
			if _, err := os.Stat(filepath.Join(m.options.Dir, "recovery")); err == nil {
				_, err := weft.Open(m.options)
				require.ErrorIs(t, err, weft.ErrUnfinished)
			}
			_, err := m.recoverGroup(t, 2, 3)
			require.NoError(t, err, "halted at call %d", call)
		}
		m.start(t)
		checkRecovered(t, m.read(t), acked, begun)
		m.stop(t)
		if len(halts) == 0 {
			return
		}
	}
}

// copyOf returns a member with a copy of a directory.
func copyOf(t testing.TB, m *member) *member {
	c := &member{options: m.options}
	c.options.Dir = filepath.Join(t.TempDir(), "copy")
	require.NoError(t, os.CopyFS(c.options.Dir, os.DirFS(m.options.Dir)))
	return c
}

// recoverUntil recovers without the members 2 and 3, in a process that is killed at a call of the
// state machine. It returns that call, or nothing if there are fewer.
func recoverUntil(t testing.TB, m *member, call int) (halts []string) {
	p := errand{Options: m.options, Lost: []uint64{2, 3}, Halt: call}.start(t)
	eventually(t, func() bool { return !p.Running() || len(p.said(t, "halted")) > 0 }, "a halt")
	require.NoError(t, p.Kill())
	halts = p.said(t, "halted")
	if len(halts) == 0 {
		require.Len(t, p.said(t, "recovered"), 1, "%s", p.Unexpected())
	}
	return halts
}

// A crash behind the last call of the state machine leaves the plan, and the addresses as
// before.
func TestRecoveryThatCrashedBeforeItsEndGoesOn(t *testing.T) {
	all := startCluster(t, 3)
	for range 25 {
		all[1].propose(t, "a line")
	}
	knowEachOther(t, all)
	for _, m := range all {
		m.stop(t)
	}
	interrupted := newJournal(t, filepath.Join(all[1].options.Dir, "state"))
	interrupted.snapshot = func() error { return all[1].planned(errBroken) }
	_, err := weft.Recover(within(t), all[1].options, 1, interrupted, []uint64{2, 3})
	require.ErrorIs(t, err, errBroken)
	before := map[string][]byte{}
	for _, name := range []string{"recovery", "addresses"} {
		before[name], err = os.ReadFile(filepath.Join(all[1].options.Dir, name))
		require.NoError(t, err)
	}
	first, err := all[1].recoverGroup(t, 2, 3)
	require.NoError(t, err)
	for name, data := range before {
		require.NoError(t, os.WriteFile(filepath.Join(all[1].options.Dir, name), data, 0o600))
	}
	_, err = weft.Open(all[1].options)
	require.ErrorIs(t, err, weft.ErrUnfinished)
	again, err := all[1].recoverGroup(t, 2, 3)
	require.NoError(t, err)
	require.NotEmpty(t, first.Asked)
	first.Asked = nil // the second call came behind the new beginning
	require.Equal(t, first, again)
	all[1].start(t)
	require.Len(t, all[1].read(t), 25)
	require.ErrorIs(t, all[1].group.AddLearner(within(t), 2, addressesOf(t, 2)[2]), weft.ErrRemoved)
}

// Both lost members come back, and are a majority of the group that is no more: clients
// of theirs must not be told that a command is replicated.
func TestLostMajorityThatComesBackServesNobody(t *testing.T) {
	all := startCluster(t, 3)
	all[1].propose(t, "before")
	knowEachOther(t, all)
	for _, m := range all {
		require.Len(t, m.read(t), 1, "a node without an entry would not even join the old group")
	}
	for _, m := range all {
		m.stop(t)
	}
	_, err := all[1].recoverGroup(t, 2, 3)
	require.NoError(t, err)
	all[1].start(t)
	all[1].propose(t, "after")
	for round := range 2 { // also after a restart, without the recovered group
		for _, id := range []uint64{2, 3} {
			all[id].start(t)
		}
		for _, id := range []uint64{2, 3} {
			g := all[id].group
			eventually(t, func() bool {
				_, err := g.Propose(brief(t), []byte("of a lost member"))
				return errors.Is(err, weft.ErrRemoved)
			}, "the lost member %d hears that it is out", id)
			for call, err := range map[string]error{
				"Propose":     ignore(g.Propose(within(t), []byte("again"))),
				"Read":        ignore(g.Read(within(t))),
				"Quorum read": ignore(g.Read(within(t), weft.Quorum())),
				"Snapshot":    ignore(g.Snapshot(within(t), io.Discard)),
				"AddLearner":  g.AddLearner(within(t), 9, addressesOf(t, 9)[9]),
				"Transfer":    g.TransferLeader(within(t), 2),
			} {
				require.ErrorIs(t, err, weft.ErrRemoved, call)
				require.ErrorIs(t, err, weft.ErrRefused, call)
			}
			require.NoError(t, ignore(g.Read(within(t), weft.Local())), "a look at what is left")
		}
		for _, id := range []uint64{2, 3} {
			all[id].stop(t)
		}
		if round == 0 {
			require.Equal(t, 3, all[1].propose(t, "goes on"))
			all[1].stop(t)
		}
	}
}

// Two survivors are recovered, by mistake. Both groups go on, apart from each other, and neither
// takes the other's word that a node is lost; so the operator can choose.
func TestTwoSurvivorsThatAreRecoveredStayApart(t *testing.T) {
	all := startCluster(t, 3)
	all[1].propose(t, "before")
	knowEachOther(t, all)
	for _, m := range all {
		m.stop(t)
	}
	for id, lost := range map[uint64][]uint64{1: {2, 3}, 2: {1, 3}} {
		_, err := all[id].recoverGroup(t, lost...)
		require.NoError(t, err)
	}
	for _, moves := range []uint64{1, 2} {
		all[moves].options.Listen = addressesOf(t, moves)[moves]
		all[moves].options.Advertise = all[moves].options.Listen
		for _, id := range []uint64{1, 2} {
			all[id].start(t)
		}
		// The note with the new address also says who is lost.
		knowEachOther(t, map[uint64]*member{1: all[1], 2: all[2]})
		for _, id := range []uint64{1, 2} {
			all[id].propose(t, fmt.Sprint("of node ", id))
			require.False(t, all[id].group.State().Removed, "node %d", id)
		}
		for _, id := range []uint64{1, 2} {
			require.NotContains(t, all[id].read(t), fmt.Sprint("of node ", 3-id))
			all[id].stop(t)
		}
	}
}

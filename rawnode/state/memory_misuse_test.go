// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package state_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"github.com/weftraft/weft/rawnode"
	"github.com/weftraft/weft/rawnode/session"
	"github.com/weftraft/weft/rawnode/state"
)

// A panic of a machine that says so is the result of its command, also when the command is tried
// again in its session, and also after a restart.
func TestPanicOfAnUnharmedMachineIsAResult(t *testing.T) {
	fs, lines := vfs.NewMem(), ""
	o := state.Options{FS: fs, Dir: "state", Sessions: &session.DefaultLimits, Logf: func(f string, args ...any) { lines += fmt.Sprintf(f+"\n", args...) }}
	newMachine := func() *fragile { return &fragile{*newTally()} }
	m, err := state.OpenMemory(newMachine, o)
	require.NoError(t, err)
	results, err := m.Apply(rawnode.Batch{Index: 3, Commands: [][]byte{
		state.OpenSession(), state.InSession(1, 1, 0, []byte("panic")), state.InSession(1, 2, 0, []byte("a")), state.Plain([]byte("panic")),
	}})
	require.NoError(t, err)
	require.Equal(t, []any{session.ID(1), state.ErrPanicked, "1", state.ErrPanicked}, results)
	require.Contains(t, lines, "a word that is not known")
	require.Contains(t, lines, `begins with "panic"`)
	require.NoError(t, m.Checkpoint())
	require.NoError(t, m.Close())
	m, err = state.OpenMemory(newMachine, o)
	require.NoError(t, err)
	results, err = m.Apply(rawnode.Batch{Index: 4, Commands: [][]byte{state.InSession(1, 1, 0, []byte("panic"))}})
	require.NoError(t, err)
	require.Equal(t, []any{state.ErrPanicked}, results)
	require.NoError(t, m.Close())
}

// Of another machine a panic goes on, behind a line that tells where it was.
func TestPanicOfAMachineGoesOn(t *testing.T) {
	lines := ""
	m := open(t, vfs.NewMem(), state.Options{Dir: "state", Logf: func(f string, args ...any) { lines += fmt.Sprintf(f+"\n", args...) }})
	m.View(func(t *tally) { t.words = nil })
	require.Panics(t, func() { _, _ = m.Apply(rawnode.Batch{Index: 7, Commands: [][]byte{[]byte("a word")}}) })
	require.Contains(t, lines, `begins with "a word", behind index 0`)
}

// echo is a machine that returns commands.
type echo struct{ tally }

func (e *echo) Apply(command []byte) any { return command }

// A session keeps no large result, so that checkpoints and snapshots go on.
func TestLargeResultOfASessionIsRefused(t *testing.T) {
	o := state.Options{FS: vfs.NewMem(), Dir: "state", Sessions: &session.DefaultLimits}
	m, err := state.OpenMemory(func() *echo { return &echo{*newTally()} }, o)
	require.NoError(t, err)
	large := make([]byte, 33<<20)
	results, err := m.Apply(rawnode.Batch{Index: 3, Commands: [][]byte{
		state.OpenSession(), state.InSession(1, 1, 0, large), state.InSession(1, 1, 0, large), state.InSession(1, 2, 0, large[:1<<20]), state.Plain(large),
	}})
	require.NoError(t, err)
	require.ErrorIs(t, results[1].(error), state.ErrResult)
	require.ErrorContains(t, results[1].(error), "34603008 bytes")
	require.ErrorIs(t, results[2].(error), state.ErrResult)
	require.Len(t, results[3], 1<<20)
	require.Len(t, results[4], 33<<20, "outside a session there is no bound")
	require.NoError(t, m.Checkpoint())
	require.NoError(t, m.Close())

	o.Sessions = &session.Limits{Sessions: 1, Results: 1, ResultBytes: 9 << 20}
	_, err = state.OpenMemory(newTally, o)
	require.ErrorContains(t, err, "ResultBytes is 9437184, want at most 8388608")
	for _, none := range []func() *tally{nil, func() *tally { return nil }} {
		_, err = state.OpenMemory(none, state.Options{FS: o.FS, Dir: "none"})
		require.ErrorIs(t, err, state.ErrInvalid)
	}
}

// The log behind a checkpoint is replayed with the limits that the checkpoint was made with.
func TestOtherLimitsOfSessionsThanBeforeAreRefused(t *testing.T) {
	few := &session.Limits{Sessions: 1, Results: 1, ResultBytes: 100}
	o := state.Options{FS: vfs.NewMem(), Dir: "state", Sessions: few}
	m := open(t, o.FS, o)
	require.NoError(t, m.Close())
	o.Sessions = &session.DefaultLimits // nothing was written with the limits of before
	m = open(t, o.FS, o)
	_, err := m.Apply(rawnode.Batch{Index: 3, Commands: [][]byte{state.OpenSession()}})
	require.NoError(t, err)
	require.NoError(t, m.Checkpoint())
	snap, err := m.Snapshot()
	require.NoError(t, err)
	require.NoError(t, m.Close())

	for _, other := range []*session.Limits{nil, few} {
		o.Sessions = other
		_, err = state.OpenMemory(newTally, o)
		require.ErrorIs(t, err, state.ErrLimits)
		require.ErrorContains(t, err, `with which this state was written "10000 sessions of 16 results in 65536 bytes"`)
	}
	o.Sessions = &session.DefaultLimits
	require.NoError(t, open(t, o.FS, o).Close())

	other := open(t, vfs.NewMem(), state.Options{Dir: "state", Sessions: few})
	require.NoError(t, other.Restore(snap.Meta(), snap), "a new group may have other limits")
	require.NoError(t, snap.Close())
	require.Equal(t, []rawnode.Setting{{Name: "session limits", Value: "1 sessions of 1 results in 100 bytes"}}, other.Settings())
	require.NoError(t, other.Close())
}

// contextual answers queries in the form of rawnode.Querier, with a context, which no machine in memory has.
type contextual struct{ *tally }

func (contextual) Query(context.Context, []byte) ([]byte, error) { return nil, nil }

func TestErrorOfAMachineWithoutQueriesNamesTheFormOfQuery(t *testing.T) {
	m, err := state.OpenMemory(func() contextual { return contextual{newTally()} }, state.Options{FS: vfs.NewMem(), Dir: "state"})
	require.NoError(t, err)
	_, _, err = m.Load()
	require.NoError(t, err)
	_, err = m.Query(t.Context(), nil)
	require.ErrorIs(t, err, rawnode.ErrNoQueries)
	require.ErrorContains(t, err, "state.Querier")
	require.NoError(t, m.Close())
}

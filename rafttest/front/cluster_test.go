// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package front_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weftraft/weft"
	"github.com/weftraft/weft/internal/ports"
)

// journal is a state machine: the list of all commands, kept in a file that is written
// after each tenth entry.
type journal struct {
	path string

	mu    sync.Mutex
	state journalState
	saved uint64
	hooks
}

// hooks let tests make a journal misbehave.
type hooks struct {
	apply    func()       // before each Apply
	results  func() []any // in place of the results
	snapshot func() error
	restore  func() error
	lateLoad func() error
}

type journalState struct {
	Applied uint64
	Host    []byte
	Lines   []string
}

func newJournal(t testing.TB, dir string) *journal {
	j, err := openJournal(dir)
	require.NoError(t, err)
	return j
}

func openJournal(dir string) (*journal, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	j := &journal{path: filepath.Join(dir, "journal.json")}
	data, err := os.ReadFile(j.path)
	if errors.Is(err, os.ErrNotExist) {
		return j, nil
	}
	return j, errors.Join(err, json.Unmarshal(data, &j.state))
}

func (j *journal) lines() []string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return slices.Clone(j.state.Lines)
}

func (j *journal) Load() (uint64, []byte, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.lateLoad != nil {
		return 0, nil, j.lateLoad()
	}
	j.saved = j.state.Applied
	return j.state.Applied, j.state.Host, nil
}

func (j *journal) Durable() (uint64, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.saved, nil
}

func (j *journal) Apply(b weft.Batch) ([]any, error) {
	if j.apply != nil {
		j.apply()
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	var results []any
	for _, c := range b.Commands {
		j.state.Lines = append(j.state.Lines, string(c))
		results = append(results, len(j.state.Lines))
	}
	if j.results != nil {
		results = j.results()
	}
	j.state.Applied = b.Index
	if b.Host != nil {
		j.state.Host = b.Host
	}
	if b.Index < j.saved+10 {
		return results, nil
	}
	return results, j.save(j.state)
}

func (j *journal) save(s journalState) error {
	data, err := json.Marshal(s)
	if err != nil {
		return err
	}
	if err := os.WriteFile(j.path+".next", data, 0o600); err != nil {
		return err
	}
	j.saved = s.Applied
	return os.Rename(j.path+".next", j.path)
}

func (j *journal) Snapshot() (weft.View, error) {
	if j.snapshot != nil {
		if err := j.snapshot(); err != nil {
			return nil, err
		}
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	data, err := json.Marshal(j.state.Lines)
	return &view{Reader: bytes.NewReader(data), meta: weft.ViewMeta{Index: j.state.Applied, Host: j.state.Host}}, err
}

func (j *journal) Restore(meta weft.ViewMeta, body io.Reader) error {
	if j.restore != nil {
		if err := j.restore(); err != nil {
			return err
		}
	}
	data, err := io.ReadAll(body)
	if err != nil {
		return err
	}
	s := journalState{Applied: meta.Index, Host: meta.Host}
	if err := json.Unmarshal(data, &s.Lines); err != nil {
		return err
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if err := j.save(s); err != nil {
		return err
	}
	j.state = s
	return nil
}

type view struct {
	*bytes.Reader
	meta weft.ViewMeta
}

func (v *view) Meta() weft.ViewMeta { return v.meta }
func (v *view) Close() error        { return nil }

// member is a node of a test with one group.
type member struct {
	options weft.Options
	state   *journal
	node    *weft.Node
	group   *weft.Group
}

// patience is what a test waits for a condition at most.
const patience = 30 * time.Second

func within(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return ctx
}

// clusters are numbered, so that two tests never meet.
const testCluster = 4100

// addressesOf returns free addresses for nodes.
func addressesOf(t testing.TB, ids ...uint64) map[uint64]string {
	free, err := ports.Free(len(ids))
	require.NoError(t, err)
	all := map[uint64]string{}
	for i, id := range ids {
		all[id] = free[i]
	}
	return all
}

// newMember returns a member that is not started.
func newMember(t testing.TB, id uint64, peers map[uint64]string) *member {
	return &member{options: weft.Options{
		Cluster: testCluster, ID: id, Dir: t.TempDir(), Peers: peers, TickInterval: 10 * time.Millisecond,
	}}
}

// start opens node and group.
func (m *member) start(t testing.TB, options ...weft.GroupOption) {
	var err error
	m.node, err = weft.Open(m.options)
	require.NoError(t, err)
	m.state = newJournal(t, filepath.Join(m.options.Dir, "state"))
	m.group, err = m.node.Group(1, m.state, options...)
	require.NoError(t, err)
	node := m.node
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		require.NoError(t, node.Close(ctx))
	})
}

func (m *member) stop(t testing.TB) { require.NoError(t, m.node.Close(within(t))) }

// startCluster starts the nodes 1 to n with one group.
func startCluster(t testing.TB, n int) map[uint64]*member {
	var ids []uint64
	for id := range uint64(n) {
		ids = append(ids, id+1)
	}
	peers := addressesOf(t, ids...)
	all := map[uint64]*member{}
	for _, id := range ids {
		all[id] = newMember(t, id, peers)
		all[id].start(t)
	}
	return all
}

func sortedIDs[V any](m map[uint64]V) []uint64 { return slices.Sorted(maps.Keys(m)) }

// eventually waits for a condition.
func eventually(t testing.TB, ok func() bool, what string, args ...any) {
	t.Helper()
	for deadline := time.Now().Add(patience); !ok(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not within %v: "+what, append([]any{patience}, args...)...)
		}
	}
}

// propose proposes a line and repeats what was refused.
func (m *member) propose(t testing.TB, line string) int {
	t.Helper()
	ctx := within(t)
	for {
		r, err := m.group.Propose(ctx, []byte(line))
		if err == nil {
			return r.Value.(int)
		}
		require.ErrorIs(t, err, weft.ErrRefused)
		require.NoError(t, ctx.Err(), "%v", err)
	}
}

// changed makes a change, and repeats what is refused because a disk is late: on a busy machine one may be, for longer than an
// election timeout.
func changed(t testing.TB, change func(context.Context) error, what ...any) {
	t.Helper()
	ctx := within(t)
	err := change(ctx)
	for errors.Is(err, weft.ErrStalled) && ctx.Err() == nil {
		time.Sleep(2 * time.Millisecond)
		err = change(ctx)
	}
	require.NoError(t, err, what...)
}

// read returns the lines behind a linearizable read.
func (m *member) read(t testing.TB) []string {
	t.Helper()
	_, err := m.group.Read(within(t))
	require.NoError(t, err)
	return m.state.lines()
}

func TestCommandsAreReplicatedAndSurviveRestartsOfAllNodes(t *testing.T) {
	all := startCluster(t, 3)
	var want []string
	for i := range 30 {
		line := fmt.Sprint("line ", i)
		want = append(want, line)
		require.Equal(t, i+1, all[uint64(i%3+1)].propose(t, line))
	}
	for id := range all {
		require.Equal(t, want, all[id].read(t), "node %d", id)
	}
	for _, m := range all {
		m.stop(t)
	}
	for _, m := range all {
		m.start(t)
	}
	for id := range all {
		require.Equal(t, want, all[id].read(t), "node %d", id)
	}
	require.Equal(t, 31, all[2].propose(t, "after the restart"))
}

func TestReadsByEachPolicySeeWhatWasAcknowledged(t *testing.T) {
	all := startCluster(t, 3)
	all[1].propose(t, "a line")
	for name, options := range map[string][]weft.ReadOption{
		"default": nil, "responder": {weft.AtResponder()}, "leader lease": {weft.LeaderLease()}, "quorum": {weft.Quorum()},
	} {
		_, err := all[2].group.Read(within(t), options...)
		require.NoError(t, err, name)
		require.Equal(t, []string{"a line"}, all[2].state.lines(), name)
	}
	for _, option := range []weft.ReadOption{weft.Stale(time.Second), weft.Local()} {
		_, err := all[3].group.Read(within(t), option)
		require.NoError(t, err)
	}
}

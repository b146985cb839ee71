// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package kv

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

var testIdentity = Identity{Cluster: 7, Node: 3}

// machine drives a store and a model of it: a map for each log index that the
// store could come back to.
type machine struct {
	fs      *vfs.MemFS
	store   *Store
	states  map[uint64]map[string]string // by applied index
	hosts   map[uint64]string
	index   uint64
	durable uint64 // the store said that it keeps this much
	crashes uint64
}

func (m *machine) options() Options {
	return Options{Identity: testIdentity, FS: m.fs, MemTableBytes: 64 << 10, CacheBytes: 1 << 20}
}

func (m *machine) open(t require.TestingT) {
	var err error
	m.store, err = Open("state", m.options())
	require.NoError(t, err)
}

// apply draws a batch and applies it to both.
func (m *machine) apply(t *rapid.T) {
	state := maps.Clone(m.states[m.index])
	host := m.hosts[m.index]
	var commands [][]byte
	var want []Result
	for range rapid.IntRange(0, 6).Draw(t, "commands") {
		key := rapid.SampledFrom([]string{"a", "a/b", "a/b/c", "b", "ÿ", "zz"}).Draw(t, "key")
		switch rapid.IntRange(0, 9).Draw(t, "op") {
		case 0:
			commands = append(commands, []byte{9, 9, 9})
			want = append(want, Result{Err: ErrInvalid})
		case 1, 2, 3:
			_, had := state[key]
			delete(state, key)
			commands = append(commands, Command{Op: OpDelete, Key: key}.Encode())
			want = append(want, Result{Existed: had})
		default:
			value := strings.Repeat(key, rapid.IntRange(0, 9000).Draw(t, "repeat"))
			state[key] = value
			commands = append(commands, Command{Op: OpPut, Key: key, Value: []byte(value)}.Encode())
			want = append(want, Result{})
		}
	}
	var hostBytes []byte
	if rapid.Bool().Draw(t, "host") {
		host = fmt.Sprint("host ", m.index)
		hostBytes = []byte(host)
	}
	m.index += rapid.Uint64Range(1, 3).Draw(t, "step")
	got, err := m.store.Apply(m.index, commands, hostBytes)
	require.NoError(t, err)
	require.Len(t, got, len(want))
	for i := range want {
		require.ErrorIs(t, got[i].Err, want[i].Err)
		require.Equal(t, want[i].Existed, got[i].Existed)
	}
	m.states[m.index], m.hosts[m.index] = state, host
}

// crash drops what is not synced, wholly or partly, and opens again.
func (m *machine) crash(t *rapid.T) {
	d, err := m.store.Durable()
	require.NoError(t, err)
	m.durable = max(m.durable, d)
	m.crashes++
	cfg := vfs.CrashCloneCfg{
		UnsyncedDataPercent: rapid.SampledFrom([]int{0, 0, 50, 100}).Draw(t, "kept"),
		RNG:                 rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), m.crashes)),
	}
	left := m.fs.CrashClone(cfg)
	require.NoError(t, m.store.Close())
	m.fs = left
	m.open(t)
	m.comeBack(t)
}

// comeBack checks that the store opened at a state it once had, no older than
// it promised, and goes on from there.
func (m *machine) comeBack(t require.TestingT) {
	m.index = m.store.Applied()
	require.GreaterOrEqual(t, m.index, m.durable)
	require.Contains(t, m.states, m.index, "the store came back at an index that no batch ended at")
	maps.DeleteFunc(m.states, func(i uint64, _ map[string]string) bool { return i > m.index })
}

// check compares every answer of the store with the model.
func (m *machine) check(t require.TestingT) {
	state := m.states[m.index]
	require.Equal(t, m.index, m.store.Applied())
	d, err := m.store.Durable()
	require.NoError(t, err)
	require.LessOrEqual(t, m.durable, d)
	require.LessOrEqual(t, d, m.index)
	host, err := m.store.Host()
	require.NoError(t, err)
	require.Equal(t, m.hosts[m.index], string(host))
	keys := slices.Sorted(maps.Keys(state))
	var after string
	for {
		page, err := m.store.List(Query{After: after, Limit: 2, Digests: true})
		require.NoError(t, err)
		for _, item := range page.Items {
			require.NotEmpty(t, keys)
			digest := sha256.Sum256([]byte(state[keys[0]]))
			require.Equal(t, Item{Key: keys[0], Size: len(state[keys[0]]), SHA256: digest[:]}, item)
			keys = keys[1:]
		}
		if after = page.Next; after == "" {
			break
		}
	}
	require.Empty(t, keys)
	for _, key := range []string{"a", "a/b", "nothing"} {
		got, _, err := m.store.Get(key)
		if want, ok := state[key]; ok {
			require.NoError(t, err)
			require.Equal(t, want, string(got))
		} else {
			require.ErrorIs(t, err, ErrNotFound)
		}
	}
}

// restore takes a snapshot of another store at a later index.
func (m *machine) restore(t *rapid.T) {
	state := map[string]string{"restored": fmt.Sprint(m.index)}
	m.index += rapid.Uint64Range(1, 9).Draw(t, "step")
	b := snapshotOf(t, m.index, state)
	if rapid.Bool().Draw(t, "damaged") {
		damaged := bytes.Clone(b)
		damaged[rapid.IntRange(0, len(b)-1).Draw(t, "byte")] ^= 0x20
		require.ErrorIs(t, m.store.Restore(m.index, []byte("host of a snapshot"), bytes.NewReader(damaged)), ErrSnapshot)
	}
	require.NoError(t, m.store.Restore(m.index, []byte("host of a snapshot"), bytes.NewReader(b)))
	m.states[m.index], m.hosts[m.index] = state, "host of a snapshot"
	m.durable = m.index
}

// snapshotOf returns the snapshot of a store that holds state.
func snapshotOf(t require.TestingT, index uint64, state map[string]string) []byte {
	m := machine{fs: vfs.NewCrashableMem()}
	m.open(t)
	var commands [][]byte
	for key, value := range state {
		commands = append(commands, Command{Op: OpPut, Key: key, Value: []byte(value)}.Encode())
	}
	_, err := m.store.Apply(index, commands, []byte("sent apart"))
	require.NoError(t, err)
	snap, err := m.store.Snapshot()
	require.NoError(t, err)
	b, err := io.ReadAll(snap)
	require.NoError(t, err)
	require.Equal(t, index, snap.Index())
	require.Equal(t, "sent apart", string(snap.Host()))
	require.NoError(t, snap.Close())
	require.NoError(t, m.store.Close())
	return b
}

// The store agrees with a map through batches, flushes, snapshots, crashes that
// lose unsynced data, and orderly restarts.
func TestModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := &machine{
			fs:     vfs.NewCrashableMem(),
			states: map[uint64]map[string]string{0: {}},
			hosts:  map[uint64]string{},
		}
		m.open(t)
		defer func() { _ = m.store.Close() }()
		t.Repeat(map[string]func(*rapid.T){
			"apply":  m.apply,
			"apply2": m.apply,
			"crash":  m.crash,
			"flush":  func(t *rapid.T) { require.NoError(t, m.store.Flush()); m.durable = m.index },
			"reopen": func(t *rapid.T) {
				require.NoError(t, m.store.Close())
				m.durable = m.index // Close flushes
				m.open(t)
				m.comeBack(t)
			},
			"restore": m.restore,
			"":        func(t *rapid.T) { m.check(t) },
		})
	})
}

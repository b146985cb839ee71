// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// sizes has the names and sizes of a directory's files.
func sizes(t *testing.T, dir string) (list []string) {
	require.NoError(t, filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			var info os.FileInfo
			if info, err = d.Info(); err == nil {
				list = append(list, fmt.Sprint(path, " ", info.Size()))
			}
		}
		return err
	}))
	return list
}

// All nodes are killed, and one directory is all that is left of the cluster: a backup of the
// survivor whose log ends last has every acknowledged write.
func TestBackupOfASurvivorHasWhatItsLogHas(t *testing.T) {
	if testing.Short() {
		t.Skip("starts processes")
	}
	// Of several groups, one survivor has the last entry of each only if it is the only voter.
	for nodes, groups := range map[int]int{3: 1, 1: 2} {
		t.Run(fmt.Sprintf("%d nodes, %d groups", nodes, groups), func(t *testing.T) { survive(t, nodes, groups) })
	}
}

func survive(t *testing.T, nodes, groups int) {
	f := newFleet(t, nodes, nodes, "--tick", "10ms", "--groups", fmt.Sprint(groups), "--flush-interval", "1h", "--coding", "off")
	f.do("put", "lock", "ann", "--ttl", "10m")
	f.healthy() // each node has a log, however late it was started
	for i := range 40 {
		f.do("put", fmt.Sprintf("key %d", i), fmt.Sprint(i))
	}
	data := func(id int) string { return filepath.Join(f.dir, fmt.Sprint(id)) }
	r := kvdemo(t.Context(), "", "backup", filepath.Join(t.TempDir(), "running.backup"), "--data", data(1))
	require.NotZero(t, r.code, "a node runs on the directory")
	for id := 1; id <= nodes; id++ {
		f.kill(id)
	}
	type survivor struct {
		file string
		backupResult
	}
	var all []survivor
	for id := 1; id <= nodes; id++ {
		s := survivor{file: filepath.Join(t.TempDir(), "survivor.backup")}
		before := sizes(t, filepath.Join(data(id), "state"))
		r := kvdemo(t.Context(), "", "backup", s.file, "--data", data(id), "--json")
		require.Zero(t, r.code, r.err)
		require.Equal(t, before, sizes(t, filepath.Join(data(id), "state")))
		require.NoError(t, json.Unmarshal([]byte(r.out), &s))
		require.Len(t, s.Ends, groups)
		all = append(all, s)
	}
	best := slices.MaxFunc(all, func(a, b survivor) int {
		return cmp.Or(cmp.Compare(a.Ends[0].Term, b.Ends[0].Term), cmp.Compare(a.Ends[0].Index, b.Ends[0].Index))
	})
	require.Equal(t, uint64(41), best.Keys)
	a := newAlone(t)
	a.while(func() {
		r := a.do("restore", best.file)
		require.Zero(t, r.code, r.err)
		for i := range 40 {
			require.Equal(t, result{0, fmt.Sprint(i), ""}, a.do("get", fmt.Sprintf("key %d", i)))
		}
		require.Equal(t, result{0, "ann", ""}, a.do("get", "lock"))
	})
}

// A log with a coded entry that the state lacks cannot be read by one node: the error says so, and
// --incomplete leaves the end out.
func TestBackupOfASurvivorWithCodedEntries(t *testing.T) {
	if testing.Short() {
		t.Skip("starts processes")
	}
	// By orders all large values are coded: the adaptive policy sends full copies where processors are busy with other tests.
	f := newFleet(t, 3, 3, "--tick", "10ms", "--flush-interval", "1h", "--coding", "on", "--orders")
	f.do("put", "small", "v")
	f.healthy() // each node has this, else one may be killed before its first write
	large := filepath.Join(t.TempDir(), "large")
	require.NoError(t, os.WriteFile(large, make([]byte, 200<<10), 0o600))
	f.do("put", "large", "--file", large)
	for id := 1; id <= 3; id++ {
		f.kill(id)
	}
	partial := 0
	for id := 1; id <= 3; id++ {
		data, file := filepath.Join(f.dir, fmt.Sprint(id)), filepath.Join(t.TempDir(), "survivor.backup")
		r := kvdemo(t.Context(), "", "backup", file, "--data", data)
		if r.code == 0 {
			continue // this one led, or has all units
		}
		partial++
		require.Contains(t, r.err, "the log cannot be read to its end by this node alone")
		require.NoFileExists(t, file)
		r = kvdemo(t.Context(), "", "backup", file, "--data", data, "--incomplete")
		require.Zero(t, r.code, r.err)
		require.Contains(t, r.out, "1 keys of cluster 9")
		require.Regexp(t, `the last [1-9]\d* entries are not in the backup`, r.out)
	}
	require.Positive(t, partial)
}

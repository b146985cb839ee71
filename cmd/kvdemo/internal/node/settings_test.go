// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package node

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/cmd/kvdemo/internal/kv"
	"github.com/weftraft/weft/storage"
)

// A data directory is made once, belongs to one node, and is not taken for
// something else.
func TestSettings(t *testing.T) {
	cfg := Config{Cluster: 5, ID: 2, Groups: 3, Data: filepath.Join(t.TempDir(), "new")}
	require.NoError(t, checkSettings(cfg))
	require.NoError(t, checkSettings(cfg))
	path := filepath.Join(cfg.Data, settingsFile)
	good, err := os.ReadFile(path)
	require.NoError(t, err)
	for want, change := range map[string]func(*Config){
		"belongs to cluster 5, node 2; this is cluster 6, node 2": func(c *Config) { c.Cluster = 6 },
		"belongs to cluster 5, node 2; this is cluster 5, node 1": func(c *Config) { c.ID = 1 },
		"was made with --groups 3, which cannot be changed to 4":  func(c *Config) { c.Groups = 4 },
	} {
		other := cfg
		change(&other)
		err := checkSettings(other)
		require.ErrorIs(t, err, errSettings)
		require.ErrorContains(t, err, want)
	}
	for want, text := range map[string]string{
		"has version 2, this kvdemo reads 1": "kvdemo data, version 2\nwhatever\n",
		"is damaged":                         string(good) + "x",
		"SETTINGS is damaged":                "",
	} {
		require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
		require.ErrorContains(t, checkSettings(cfg), want)
		now, err := os.ReadFile(path)
		require.NoError(t, err)
		require.Equal(t, text, string(now), "nothing was changed")
	}
	require.NoError(t, os.WriteFile(path, good, 0o644))
	require.NoError(t, checkSettings(cfg))

	removed := settings{Cluster: 5, Node: 2, Groups: 3, Removed: true}
	require.NoError(t, removed.write(cfg.Data))
	require.ErrorContains(t, checkSettings(cfg), "node 2 was removed from its cluster")

	// A log without settings was made by something else; settings without a log
	// mean that the log is gone.
	require.NoError(t, os.WriteFile(filepath.Join(cfg.Data, "log", "IDENTITY"), nil, 0o644))
	require.NoError(t, os.Remove(path))
	require.ErrorContains(t, checkSettings(cfg), "has a log and no file SETTINGS")
	require.NoError(t, os.WriteFile(path, good, 0o644))
	require.NoError(t, os.RemoveAll(filepath.Join(cfg.Data, "log")))
	require.ErrorContains(t, checkSettings(cfg), "has no log")
}

func TestTable(t *testing.T) {
	got, err := parseTable(map[string][]byte{"groups": []byte("4"), "member/1": []byte("of an earlier version"), "later": []byte("x")})
	require.NoError(t, err)
	require.Equal(t, table{groups: 4}, got)
	for key, value := range map[string]string{"groups": "x", "responders": "{", "want-level": "x"} {
		_, err := parseTable(map[string][]byte{key: []byte(value)})
		require.ErrorContains(t, err, key)
	}
}

// Pages of several groups become one that leaves nothing out: read to the end,
// they give every key once, in order, whatever the sizes of pages.
func TestMergePages(t *testing.T) {
	groups := [][]string{{"a", "d", "e", "k"}, {"b"}, {}, {"c", "f", "g", "h", "i"}}
	page := func(keys []string, after string, limit int) (p kv.Page) {
		for _, k := range keys {
			if k <= after {
				continue
			}
			if len(p.Items) == limit {
				p.Next = p.Items[limit-1].Key
				break
			}
			p.Items = append(p.Items, kv.Item{Key: k})
		}
		return p
	}
	for limit := 1; limit < 12; limit++ {
		for short := 1; short <= limit; short++ { // the third group's pages end early
			var got []string
			for after, rounds := "", 0; ; rounds++ {
				require.Less(t, rounds, 20)
				var pages []kv.Page
				for i, keys := range groups {
					n := limit
					if i == 3 {
						n = short
					}
					pages = append(pages, page(keys, after, n))
				}
				merged := mergePages(pages, limit)
				require.LessOrEqual(t, len(merged.Items), limit)
				for _, item := range merged.Items {
					got = append(got, item.Key)
				}
				if after = merged.Next; after == "" {
					break
				}
			}
			require.Equal(t, []string{"a", "b", "c", "d", "e", "f", "g", "h", "i", "k"}, got, "limit %d, short %d", limit, short)
		}
	}
}

// A survivor's log tells how many groups there are, too: a backup with fewer, as the settings have a flipped bit, would not
// be whole. And a directory that has lost its log gets none, which would hide the loss from the node's next start.
func TestSurvivorIsAllThatTheLogHas(t *testing.T) {
	dir := t.TempDir()
	s := settings{Cluster: 5, Node: 2, Groups: 2}
	require.NoError(t, s.write(dir))
	_, err := OpenSurvivor(t.Context(), dir, t.TempDir(), false)
	require.ErrorContains(t, err, "has no log")
	require.NoDirExists(t, logDir(dir))
	require.NoError(t, os.Mkdir(logDir(dir), 0o755))
	for range 2 { // the first call has begun nothing
		_, err = OpenSurvivor(t.Context(), dir, t.TempDir(), false)
		require.ErrorIs(t, err, storage.ErrDamaged)
	}

	e, err := storage.Open(logDir(dir), storage.Options{Identity: storage.Identity{Cluster: 5, Node: 2}})
	require.NoError(t, err)
	g, err := e.Group(3)
	require.NoError(t, err)
	require.NoError(t, g.AppendWait(t.Context(), storage.Write{HardState: &pb.HardState{Term: new(uint64(1))}}))
	require.NoError(t, e.Close())
	_, err = OpenSurvivor(t.Context(), dir, t.TempDir(), false)
	require.ErrorIs(t, err, errSettings)
	require.ErrorContains(t, err, "says that there are 2 groups, and the log has group 3")
}

// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weftraft/weft/cmd/kvdemo/internal/backup"
	"github.com/weftraft/weft/cmd/kvdemo/internal/client"
	"github.com/weftraft/weft/cmd/kvdemo/internal/kv"
	"github.com/weftraft/weft/cmd/kvdemo/kvpb"
)

// keysInGroups returns a key for each of some groups.
func keysInGroups(groups int) []string {
	keys := make([]string, groups)
	for i, missing := 0, groups; missing > 0; i++ {
		key := fmt.Sprint("counter/", i)
		if at := kv.GroupOf(key, groups) - 1; keys[at] == "" {
			keys[at] = key
			missing--
		}
	}
	return keys
}

// A backup that is made while clients write is the state of all groups at one moment, and a
// restore brings exactly this state to a cluster of another size.
func TestBackupUnderLoadIsOneMoment(t *testing.T) {
	if testing.Short() {
		t.Skip("starts processes")
	}
	const groups = 2
	s := startServers(t, "--groups", fmt.Sprint(groups))
	s.leader()
	c, err := client.New(client.Config{Endpoints: s.endpoints[:], Timeout: limit})
	require.NoError(t, err)
	defer func() { require.NoError(t, c.Close()) }()
	ctx := t.Context()
	large := bytes.Repeat([]byte("large"), 500_000)
	_, err = c.Put(ctx, "large", large)
	require.NoError(t, err)
	_, err = c.PutTTL(ctx, "long", []byte("l"), 10_000_000)
	require.NoError(t, err)
	_, err = c.PutTTL(ctx, "short", []byte("s"), 10_000_000)
	require.NoError(t, err)
	for i := range 500 {
		s := fmt.Sprint("key ", i)
		_, err := c.Put(ctx, s, []byte(s))
		require.NoError(t, err)
	}

	// Each writer raises a counter in one group, then a counter in the other group. So at any
	// moment the second counter is equal to the first, or one less.
	load, stop := context.WithCancel(ctx)
	var writers sync.WaitGroup
	const pairs = 3
	var counted [pairs]atomic.Int64
	keys := keysInGroups(groups)
	name := func(w, i int) string { return fmt.Sprintf("%s/%d", keys[i], w) }
	for w := range pairs {
		writers.Go(func() {
			for n := int64(1); load.Err() == nil; n++ {
				for i := range keys {
					if _, err := c.Put(ctx, name(w, i), []byte(strconv.FormatInt(n, 10))); err != nil {
						t.Error(err)
						return
					}
				}
				counted[w].Store(n)
			}
		})
	}
	defer writers.Wait()
	defer stop()
	file := filepath.Join(t.TempDir(), "a.backup")
	for range 3 { // several moments
		before := [pairs]int64{}
		eventually(t, "writes", func() bool {
			for w := range counted {
				before[w] = counted[w].Load()
			}
			return before[0] > 5 && before[1] > 5 && before[2] > 5
		})
		r := s.do(s.all(), "backup", file)
		require.Zero(t, r.code, r.err)
		require.Contains(t, r.out, "keys of cluster 9 in ")
		a := newAlone(t)
		a.args = append(a.args, "--groups", "3")
		a.while(func() {
			eventually(t, "the new cluster to serve", func() bool { return a.do("ls").code == 0 })
			r := a.do("restore", file)
			require.Zero(t, r.code, r.err)
			require.Contains(t, r.out, "keys restored from "+file+", and compared")
			get := func(key string) string {
				r := a.do("get", key)
				require.Zero(t, r.code, "%s: %s", key, r.err)
				return r.out
			}
			for w := range pairs {
				first, err := strconv.ParseInt(get(name(w, 0)), 10, 64)
				require.NoError(t, err)
				second, err := strconv.ParseInt(get(name(w, 1)), 10, 64)
				require.NoError(t, err)
				require.True(t, second == first || second == first-1, "writer %d: %d, then %d", w, first, second)
				require.GreaterOrEqual(t, second, before[w], "what was acknowledged before")
				require.LessOrEqual(t, second, counted[w].Load()+1)
			}
			require.Equal(t, string(large), get("large"))
			require.Equal(t, "key 499", get("key 499"))
			require.Equal(t, 500+2*pairs+3, strings.Count(a.do("ls").out, "\n")-1)
			own, err := client.New(client.Config{Endpoints: []string{a.endpoint}, Timeout: limit})
			require.NoError(t, err)
			ttl, err := own.Txn(ctx, &kvpb.TxnRequest{Then: []*kvpb.Action{{Kind: kvpb.Action_TTL, Key: "long"}}})
			require.NoError(t, err)
			require.InDelta(t, time.Now().UnixMilli()+10_000_000, ttl.GetResults()[0].GetDeadlineMs(), 120_000)
			require.NoError(t, own.Close())

			r = a.do("restore", file)
			require.Equal(t, exitUsage, r.code)
			require.Contains(t, r.err, "the cluster has keys")
			r = a.do("restore", file, "--force")
			require.Zero(t, r.code, r.err)
		})
	}
	stop()
	writers.Wait()
	checkDamagedBackup(t, file)
	s.stop()
}

// checkDamagedBackup damages a backup, which must not be restored.
func checkDamagedBackup(t *testing.T, file string) {
	b, err := os.ReadFile(file)
	require.NoError(t, err)
	b[len(b)/2] ^= 1
	require.NoError(t, os.WriteFile(file, b, 0o644))
	r := kvdemo(t.Context(), "", "restore", file, "--endpoints", freePort(t))
	require.Equal(t, exitFailure, r.code)
	require.Contains(t, r.err, "the backup is damaged: at byte")
	require.Contains(t, r.err, "nothing was restored")
	r = kvdemo(t.Context(), "", "backup", file, "--endpoints", freePort(t), "--timeout", "2s")
	require.Equal(t, exitUnreachable, r.code)
	left, err := filepath.Glob(filepath.Join(filepath.Dir(file), ".kvdemo-*"))
	require.NoError(t, err)
	require.Empty(t, left)
}

// A restore that was cut short can leave a value whose deadline is not set yet. Begun again
// behind the deadline, it removes the value, which would stay without an end.
func TestRestoreBegunAgainRemovesWhatHasExpired(t *testing.T) {
	large := bytes.Repeat([]byte("large"), 500_000)
	file := filepath.Join(t.TempDir(), "a.backup")
	f, err := os.Create(file)
	require.NoError(t, err)
	w, err := backup.NewWriter(f, backup.Header{Cluster: 1, Groups: []uint64{1}, Made: time.Now()})
	require.NoError(t, err)
	soon, past := time.Now().Add(time.Hour).UnixMilli(), time.Now().Add(-time.Second).UnixMilli()
	for _, e := range []struct {
		key      string
		value    []byte
		deadline int64
	}{{"large, later", large, soon}, {"large, past", large, past}, {"small, past", []byte("s"), past}, {"stays", []byte("v"), 0}} {
		require.NoError(t, w.Begin(backup.Entry{Key: e.key, Size: int64(len(e.value)), Deadline: e.deadline, Type: kv.TypeString}))
		_, err := w.Write(e.value)
		require.NoError(t, err)
	}
	_, err = w.Close()
	require.NoError(t, err)
	require.NoError(t, f.Close())

	a := newAlone(t)
	a.while(func() {
		eventually(t, "the cluster to serve", func() bool { return a.do("ls").code == 0 })
		c, err := client.New(client.Config{Endpoints: []string{a.endpoint}, Timeout: limit})
		require.NoError(t, err)
		defer func() { require.NoError(t, c.Close()) }()
		for _, key := range []string{"large, later", "large, past", "small, past"} { // as the first restore left them
			_, err := c.PutFrom(t.Context(), key, bytes.NewReader(large), int64(len(large)))
			require.NoError(t, err)
		}
		r := a.do("restore", file, "--force")
		require.Zero(t, r.code, r.err)
		require.Contains(t, r.out, "2 keys restored from ")
		require.Contains(t, r.out, "2 were left out because their deadlines have passed")
		require.Equal(t, "large, later\nstays\n", regexp.MustCompile(` +\d+\n`).ReplaceAllString(strings.SplitAfterN(a.do("ls").out, "\n", 2)[1], "\n"))
		ttl, err := c.Txn(t.Context(), &kvpb.TxnRequest{Then: []*kvpb.Action{{Kind: kvpb.Action_TTL, Key: "large, later"}}})
		require.NoError(t, err)
		require.InDelta(t, soon, ttl.GetResults()[0].GetDeadlineMs(), 60_000)
	})
}

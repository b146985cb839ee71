// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/weftraft/weft/internal/docs"
	"github.com/weftraft/weft/internal/ports"
)

// TestAdoptEtcd executes docs/adopt-etcd.md as one session of bash, with other ports, while a
// client writes through all members: a cluster of etcd as released moves to Weft, codes, and moves
// back.
func TestAdoptEtcd(t *testing.T) {
	if testing.Short() {
		t.Skip("builds etcd, and runs clusters of it")
	}
	w, err := newWorkdir("")
	require.NoError(t, err)
	require.NoError(t, w.prepare(t.Context(), false))
	released := w.path("released")
	require.NoError(t, w.buildPrograms(t.Context(), coreUpstream, released))
	snippets, err := docs.Snippets(filepath.Join(w.weft, "docs", "adopt-etcd.md"))
	require.NoError(t, err)
	script, urls := session(t, snippets)

	dir := t.TempDir()
	t.Cleanup(func() { killAll(t, dir) })
	writer := startWriter(t, urls)
	ctx, cancel := context.WithTimeout(t.Context(), 8*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "bash", "-c", script)
	cmd.Dir, cmd.WaitDelay = dir, 10*time.Second
	cmd.Env = append(os.Environ(), "WEFT="+w.weft, "RELEASED="+released)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	require.NoError(t, err, "it printed\n%s\n%s", out, stderr.String())
	compareSession(t, snippets, string(out))
	writer.verify(t)
}

// divider follows the output of each snippet.
const divider = "--- the next snippet ---\n"

var shownAddress = regexp.MustCompile(`127\.0\.0\.1:\d+`)

// session makes one script of the commands of a document, replaces the document's ports by free
// ports, and returns the clients' URLs.
func session(t *testing.T, snippets []docs.Snippet) (script string, urls []string) {
	t.Helper()
	var b strings.Builder
	b.WriteString("set -euo pipefail\n")
	for _, s := range snippets {
		if s.Lang == "sh" {
			b.WriteString(s.Text + "echo '" + strings.TrimSpace(divider) + "'\n")
		}
	}
	free, err := ports.Free(6)
	require.NoError(t, err)
	used := map[string]string{}
	script = shownAddress.ReplaceAllStringFunc(b.String(), func(shown string) string {
		if used[shown] == "" {
			used[shown] = free[len(used)]
		}
		return used[shown]
	})
	require.Len(t, used, len(free), "three members with two addresses each")
	for shown, address := range used {
		if strings.HasSuffix(shown, "2379") {
			urls = append(urls, "http://"+address)
		}
	}
	require.Len(t, urls, 3)
	return script, urls
}

// compareSession compares the output of each snippet with the output in the document, in which
// "..." stands for a number.
func compareSession(t *testing.T, snippets []docs.Snippet, out string) {
	t.Helper()
	printed := strings.Split(out, divider)
	for i, s := range snippets {
		if s.Lang != "sh" {
			continue
		}
		require.Less(t, i+1, len(snippets), s.Pos())
		require.Equal(t, "text", snippets[i+1].Lang, "%s: what does it print?", s.Pos())
		pattern := strings.ReplaceAll(regexp.QuoteMeta(snippets[i+1].Text), regexp.QuoteMeta("..."), `\d+`)
		require.Regexp(t, "(^|\n)"+pattern+"$", printed[0], s.Pos())
		printed = printed[1:]
	}
	require.Equal(t, []string{""}, printed)
}

// killAll kills the members that a session has left running.
func killAll(t *testing.T, dir string) {
	files, err := filepath.Glob(filepath.Join(dir, "*.pid"))
	require.NoError(t, err)
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
		require.NoError(t, err)
		_ = syscall.Kill(pid, syscall.SIGKILL) // the member may have ended
		if t.Failed() {
			log, _ := os.ReadFile(strings.TrimSuffix(file, ".pid") + ".log")
			t.Logf("%s:\n%s", file, log[max(0, len(log)-4096):])
		}
	}
}

// writer is a client that writes through all members until stop is called.
type writer struct {
	urls []string
	api  *clientv3.Client
	stop context.CancelFunc
	done sync.WaitGroup
	// values are the acknowledged values, by key.
	values map[string]string
}

func startWriter(t *testing.T, urls []string) *writer {
	t.Helper()
	api, err := clientv3.New(clientv3.Config{Endpoints: urls, DialTimeout: time.Second, Logger: zap.NewNop()})
	require.NoError(t, err)
	ctx, stop := context.WithCancel(t.Context())
	w := &writer{urls: urls, api: api, stop: stop, values: map[string]string{}}
	w.done.Go(func() { w.write(ctx) })
	t.Cleanup(func() {
		stop()
		w.done.Wait()
		require.NoError(t, api.Close())
	})
	return w
}

// write puts values of all sizes up to 32 KB, each under a new key.
func (w *writer) write(ctx context.Context) {
	rng := rand.New(rand.NewPCG(1, 2))
	for i := 0; ctx.Err() == nil; i++ {
		value := make([]byte, 1<<rng.IntN(16))
		for k := range value {
			value[k] = byte(rng.Uint32())
		}
		key := fmt.Sprintf("writer/%06d", i)
		callCtx, cancel := context.WithTimeout(ctx, 10*time.Second)
		_, err := w.api.Put(callCtx, key, string(value))
		cancel()
		if err == nil {
			w.values[key] = string(value)
		}
		select {
		case <-ctx.Done():
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// verify stops the writer and checks that every member has all acknowledged values.
func (w *writer) verify(t *testing.T) {
	t.Helper()
	w.stop()
	w.done.Wait()
	t.Logf("%d writes were acknowledged", len(w.values))
	require.Greater(t, len(w.values), 100)
	for _, url := range w.urls {
		api, err := clientv3.New(clientv3.Config{Endpoints: []string{url}, DialTimeout: time.Minute, Logger: zap.NewNop()})
		require.NoError(t, err)
		_, err = api.Get(t.Context(), "writer") // linearizable: the member has applied all acknowledged writes
		require.NoError(t, err)
		got, err := api.Get(t.Context(), "writer/", clientv3.WithPrefix(), clientv3.WithSerializable())
		require.NoError(t, err)
		have := map[string]string{}
		for _, kv := range got.Kvs {
			have[string(kv.Key)] = string(kv.Value)
		}
		for key, value := range w.values {
			if have[key] != value {
				t.Fatalf("%s does not have what was acknowledged as %s", url, key)
			}
		}
		require.NoError(t, api.Close())
	}
}

// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// The disk of the leader's process hangs. The other nodes go on; /readyz of the node turns, and the process
// ends after --exit-after-hang, so that a supervisor can start the node again.
func TestProcessWhoseDiskHangsHoldsNobodyAndEnds(t *testing.T) {
	if testing.Short() {
		t.Skip("starts processes")
	}
	f := newFleet(t, 0, 3, "--tick", "20ms")
	stuck, web := filepath.Join(f.dir, "stuck"), map[int]string{}
	for id := 1; id <= 3; id++ {
		f.nodes[id], web[id] = &ship{peer: freePort(t)}, freePort(t)
	}
	start := func(id int, extra ...string) {
		f.start(id, append(extra, "--http-listen", web[id], "--stuck-disk", fmt.Sprint(stuck, id), "--exit-after-hang", "4s")...)
	}
	for id := 1; id <= 3; id++ {
		start(id)
	}
	f.do("put", "k", "before")
	old := f.leader()
	other, gate := old%3+1, fmt.Sprint(stuck, old)
	require.NoError(t, os.WriteFile(gate, nil, 0o644))

	at := func(id int, verb ...string) result {
		return kvdemo(t.Context(), "", append(verb, "--endpoints", f.sure[id], "--timeout", limit.String())...)
	}
	began := time.Now()
	wrote := make(chan result, 1)
	go func() { wrote <- at(other, "put", "k", "while it hangs") }() // for as long as it takes: the process will end
	page := func(path string) (int, string) {
		response, err := http.Get("http://" + web[old] + path)
		if err != nil {
			return 0, err.Error()
		}
		text, _ := io.ReadAll(response.Body)
		_ = response.Body.Close()
		return response.StatusCode, string(text)
	}
	eventually(t, "the node is not ready, as the disk is late", func() bool {
		status, text := page("/readyz")
		return status == http.StatusServiceUnavailable && strings.Contains(text, "the disk is late")
	})
	_, text := page("/metrics")
	require.Contains(t, text, `weft_group_late{group="1"} 1`)
	r := <-wrote
	require.Zero(t, r.code, r.err)
	t.Logf("a write took %v", time.Since(began))

	require.Error(t, f.nodes[old].cmd.Wait(), "it ends by itself, with status 1")
	require.Equal(t, 1, f.nodes[old].cmd.ProcessState.ExitCode())
	log, err := os.ReadFile(f.nodes[old].log)
	require.NoError(t, err)
	require.Regexp(t, `the disk hangs: writes wait, and none has ended for ([4-9]|[1-9]\d)`, string(log)) // 4 s, or later on a busy machine
	require.NoError(t, os.Remove(gate))
	start(old)
	eventually(t, "the node is back", func() bool { r := at(old, "get", "k"); return r.code == 0 && strings.Contains(r.out, "while it hangs") })
	f.stop()
}

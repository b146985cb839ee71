// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package front_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weftraft/weft"
	"github.com/weftraft/weft/ecraft"
	"github.com/weftraft/weft/internal/process"
	"github.com/weftraft/weft/raft"
	"github.com/weftraft/weft/rawnode"
)

// errand is what a process started by a test does.
type errand struct {
	Options weft.Options
	// Lost: recover group 1 without these members. Nobody: run a node, and propose lines.
	Lost []uint64
	// Halt is the call of the state machine, counted from 1, at which a recovery waits to be
	// killed; 0 means none.
	Halt int
	// Coded has the node code every large entry.
	Coded bool
}

// coded has a group code every large entry, whatever processors and links do.
func coded(c *rawnode.Config) { c.Replica.Coding = &raft.Coding{Policy: ecraft.Levelled{}} }

const errandVariable = "WEFT_TEST_ERRAND"

// TestMain lets the test binary run nodes and recoveries that can be killed.
func TestMain(m *testing.M) {
	text := os.Getenv(errandVariable)
	if text == "" {
		os.Exit(m.Run())
	}
	var e errand
	err := json.Unmarshal([]byte(text), &e)
	if err == nil && len(e.Lost) > 0 {
		err = e.recover()
	} else if err == nil {
		err = e.serve()
	}
	if err != nil {
		fmt.Println("failed:", err)
		os.Exit(1)
	}
}

// child is such a process.
type child struct {
	*process.Process
	log string
}

func (e errand) start(t testing.TB) *child {
	t.Helper()
	e.Options.Logger = nil
	text, err := json.Marshal(e)
	require.NoError(t, err)
	self, err := os.Executable()
	require.NoError(t, err)
	c := &child{log: filepath.Join(t.TempDir(), "log")}
	c.Process, err = process.Start([]string{"/usr/bin/env", errandVariable + "=" + string(text), self}, c.log)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.Kill()) })
	return c
}

// said returns what stands behind a word on the lines that begin with it. A line that the
// process was killed in does not count.
func (c *child) said(t testing.TB, word string) (rest []string) {
	text, err := os.ReadFile(c.log)
	require.NoError(t, err)
	lines := strings.Split(string(text), "\n")
	for _, line := range lines[:len(lines)-1] {
		if s, ok := strings.CutPrefix(line, word+" "); ok {
			rest = append(rest, s)
		}
	}
	return rest
}

// serve runs a node, and proposes lines until the process is killed. It prints each line
// before, as begun, and when it is acknowledged. Entries are applied once they are durable in the node's own log,
// so that a survivor has all that it has acknowledged.
func (e errand) serve() error {
	node, err := weft.Open(e.Options)
	if err != nil {
		return err
	}
	state, err := openJournal(filepath.Join(e.Options.Dir, "state"))
	if err != nil {
		return err
	}
	late := weft.Configure(func(c *rawnode.Config) {
		if c.Replica.MaxEarlyApplyBytes = -1; e.Coded {
			coded(c)
		}
	})
	group, err := node.Group(1, state, late)
	if err != nil {
		return err
	}
	for writer := range 4 {
		go func() {
			for k := 0; ; k++ {
				line := fmt.Sprintf("node %d writer %d line %d", e.Options.ID, writer, k)
				fmt.Println("begun", line)
				if _, err := group.Propose(context.Background(), []byte(line)); err == nil {
					fmt.Println("acked", line)
				}
			}
		}()
	}
	select {}
}

// halting is a journal that waits for the end of the process at one of its calls.
type halting struct {
	*journal
	mu   sync.Mutex
	left int
}

func (h *halting) call(name string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.left--; h.left == 0 {
		fmt.Println("halted", name)
		select {}
	}
}

func (h *halting) Load() (uint64, []byte, error) {
	h.call("Load")
	return h.journal.Load()
}

func (h *halting) Apply(b weft.Batch) ([]any, error) {
	h.call("Apply")
	return h.journal.Apply(b)
}

func (h *halting) Snapshot() (weft.View, error) {
	h.call("Snapshot")
	return h.journal.Snapshot()
}

// recover recovers group 1.
func (e errand) recover() error {
	state, err := openJournal(filepath.Join(e.Options.Dir, "state"))
	if err != nil {
		return err
	}
	h := &halting{journal: state, left: e.Halt}
	state.restore = func() error { h.call("Restore"); return nil }
	done, err := weft.Recover(context.Background(), e.Options, 1, h, e.Lost)
	if err == nil {
		fmt.Println("recovered", done.Index)
	}
	return err
}

// words is a machine in memory.
type words map[string]int

func (w words) Apply(command []byte) any  { w[string(command)]++; return w[string(command)] }
func (w words) Write(to io.Writer) error  { return json.NewEncoder(to).Encode(w) }
func (w words) Read(from io.Reader) error { return json.NewDecoder(from).Decode(&w) }

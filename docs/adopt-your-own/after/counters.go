// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"os"
	"path/filepath"
	"sync"

	"github.com/weftraft/weft/rawnode"
)

// saveEvery is after how many log entries the state is saved. The log has what
// came after.
const saveEvery = 100

// table is the state and what belongs to it, as saved and as sent in snapshots.
type table struct {
	Applied  uint64         // log index
	Host     []byte         // Host's own bytes, kept with the index
	Counters map[string]int // the state
}

// counters is the state machine.
type counters struct {
	path string

	mu    sync.Mutex
	table table
	saved uint64
}

var _ rawnode.StateMachine = (*counters)(nil)

// openCounters reads what was saved.
func openCounters(path string) (*counters, error) {
	c := &counters{path: path, table: table{Counters: map[string]int{}}}
	data, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return c, nil
	}
	if err == nil {
		err = json.Unmarshal(data, &c.table)
	}
	if err == nil {
		err = syncDir(path) // a process may have been killed before it did that
	}
	c.saved = c.table.Applied
	return c, err
}

// syncDir makes the name of a file durable.
func syncDir(path string) error {
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}

func (c *counters) get(name string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.table.Counters[name]
}

// Load implements rawnode.StateMachine: where the log has to begin.
func (c *counters) Load() (uint64, []byte, error) { return c.table.Applied, c.table.Host, nil }

// Durable implements rawnode.StateMachine: what the log may forget.
func (c *counters) Durable() (uint64, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.saved, nil
}

// Apply implements rawnode.StateMachine. All replicas must come to the same.
func (c *counters) Apply(b rawnode.Batch) ([]any, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var results []any
	for _, command := range b.Commands {
		var a add
		if err := json.Unmarshal(command, &a); err != nil {
			results = append(results, fmt.Errorf("not a command: %w", err))
			continue
		}
		c.table.Counters[a.Name] += a.N
		results = append(results, c.table.Counters[a.Name])
	}
	c.table.Applied = b.Index
	if b.Host != nil {
		c.table.Host = b.Host
	}
	if b.Index < c.saved+saveEvery {
		return results, nil
	}
	return results, c.save(c.table)
}

// save writes the state beside the old one and puts it in its place.
func (c *counters) save(t table) error {
	data, err := json.Marshal(t)
	if err != nil {
		return err
	}
	f, err := os.Create(c.path + ".tmp")
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := os.Rename(c.path+".tmp", c.path); err != nil {
		return err
	}
	if err := syncDir(c.path); err != nil {
		return err
	}
	c.saved = t.Applied
	return nil
}

// Snapshot implements rawnode.StateMachine: a view that stays as it is.
func (c *counters) Snapshot() (rawnode.Snapshot, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	t := c.table
	t.Counters = maps.Clone(t.Counters)
	data, err := json.Marshal(t)
	return &snapshot{Reader: bytes.NewReader(data), meta: rawnode.SnapshotMeta{Index: t.Applied, Host: t.Host}}, err
}

// Restore implements rawnode.StateMachine: the old state or the new one,
// whatever happens in between.
func (c *counters) Restore(meta rawnode.SnapshotMeta, body io.Reader) error {
	data, err := io.ReadAll(body) // up to its end, or nobody knows that it is whole
	if err != nil {
		return err
	}
	var t table
	if err := json.Unmarshal(data, &t); err != nil {
		return err
	}
	t.Applied, t.Host = meta.Index, meta.Host
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.save(t); err != nil {
		return err
	}
	c.table = t
	return nil
}

// snapshot is an open view.
type snapshot struct {
	*bytes.Reader
	meta rawnode.SnapshotMeta
}

// Meta implements rawnode.Snapshot.
func (s *snapshot) Meta() rawnode.SnapshotMeta { return s.meta }

// Close implements io.Closer.
func (s *snapshot) Close() error { return nil }

// freeAddresses returns addresses for nodes of this process. Yours stand in a
// configuration.
func freeAddresses(n int) (map[uint64]string, error) {
	all := map[uint64]string{}
	for id := range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		defer func() { _ = l.Close() }() // nobody has connected
		all[uint64(id+1)] = l.Addr().String()
	}
	return all, nil
}

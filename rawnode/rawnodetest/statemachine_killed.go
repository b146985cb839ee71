// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package rawnodetest

import (
	"errors"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/weftraft/weft/internal/gate"
)

// kills is the number of moments at which ruleLoadDurable kills a process.
const kills = 20

// ruleLoadDurable kills the process between two operations on the disk. The next process finds what was not synced,
// because the operating system has it. The power fails after its Load. Likewise the next host of the same process finds
// what was not written.
func ruleLoadDurable(s *stage) {
	if s.f.OnDisk {
		return // there the power does not fail
	}
	t := s.tell(20)
	_, operations := s.killed(t, 0)
	for range kills {
		at := 1 + s.rng.Int64N(operations)
		fs, _ := s.killed(t, at)
		when(func() {
			m, index, host := s.open(Dir{fs, stateDir})
			m.survived(t, index, host)
			m, found, host := m.crashed(false)
			if found < index {
				breaks("method Load returned index %d, and index %d after power failed behind it", index, found)
			}
			m.survived(t, found, host)
		}, "after the process was killed behind operation %d on the disk", at)
	}
	m := s.fresh()
	m.apply(t, 0, len(t.batches))
	index, _, err := m.sm.Load()
	calls("method Load for another host", err)
	if _, found, _ := m.crashed(false); found < index {
		breaks("method Load returned index %d to another host of the process, and index %d after power failed behind it", index, found)
	}
}

// killed returns the disk of a process that was killed behind a number of operations on it; 0: when it had applied the
// story. It returns the number of the operations.
func (s *stage) killed(t *story, at int64) (*vfs.MemFS, int64) {
	fs := vfs.NewCrashableMem()
	must(makeDir(fs, stateDir))
	dies := errors.New("the process is killed")
	// Behind a gate that is shut, whoever wants to change the disk waits without end, as a process that is no more.
	g := gate.New(gate.Options{Logf: func(string, ...any) {}, Full: dies, Failed: dies})
	var operations atomic.Int64
	counted := errorfs.Wrap(fs, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if op.Kind.ReadOrWrite() == errorfs.OpIsWrite && operations.Add(1) == at {
			g.Shut(dies)
		}
		return nil
	}))
	ended := make(chan error, 1)
	go func() {
		ended <- guarded(func() {
			alone := &stage{f: s.f} // whose state machines nobody closes
			m, _, _ := alone.open(Dir{g.FS(counted), stateDir})
			m.apply(t, 0, len(t.batches))
			m.flush()
		})
	}()
	select {
	case err := <-ended:
		g.Shut(dies)
		g.Settle()
		must(err)
	case <-g.Dead():
		g.Settle()
	}
	return fs, operations.Load()
}

// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package rawnodetest

import (
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/weftraft/weft/internal/gate"
)

// kills is the number of moments at which ruleLoadDurable kills a process.
const kills = 20

// ruleLoadDurable kills the process between two operations on the disk. The next process finds what was not synced,
// because the operating system has it. The power fails after its Load.
func ruleLoadDurable(s *stage) error {
	if s.f.OnDisk {
		return nil // there the power does not fail
	}
	t, err := s.tell(20)
	if err != nil {
		return err
	}
	_, operations, err := s.killed(t, 0)
	if err != nil {
		return err
	}
	for range kills {
		at := 1 + s.rng.Int64N(operations)
		fs, _, err := s.killed(t, at)
		if err != nil {
			return err
		}
		m, index, host, err := s.open(Dir{fs, stateDir})
		if err == nil {
			_, err = m.survived(t, index, host)
		}
		if err != nil {
			return fmt.Errorf("after the process was killed behind operation %d on the disk: %w", at, err)
		}
		m, found, host, err := m.crashed(false)
		if err != nil {
			return err
		}
		if found < index {
			return fmt.Errorf("method Load returned index %d after the process was killed behind operation %d on the disk, and index %d after power failed behind it", index, at, found)
		}
		if _, err := m.survived(t, found, host); err != nil {
			return err
		}
	}
	return nil
}

// killed returns the disk of a process that was killed behind a number of operations on it; 0: when it had applied the
// story. It returns the number of the operations.
func (s *stage) killed(t *story, at int64) (*vfs.MemFS, int64, error) {
	fs := vfs.NewCrashableMem()
	if err := makeDir(fs, stateDir); err != nil {
		return nil, 0, err
	}
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
		alone := &stage{f: s.f} // whose state machines nobody closes
		m, _, _, err := alone.open(Dir{g.FS(counted), stateDir})
		if err == nil {
			err = errors.Join(m.apply(t, 0, len(t.batches)), m.flush())
		}
		ended <- err
	}()
	var err error
	select {
	case err = <-ended:
		g.Shut(dies)
	case <-g.Dead():
	}
	g.Settle()
	return fs, operations.Load(), err
}

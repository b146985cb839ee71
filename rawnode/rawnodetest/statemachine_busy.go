// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package rawnodetest

import (
	"bytes"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/weftraft/weft/rawnode"
)

func ruleConcurrent(s *stage) error {
	t, m, err := s.applied(60, 0)
	if err != nil {
		return err
	}
	var wg sync.WaitGroup
	quit := make(chan struct{})
	type copied struct {
		meta rawnode.SnapshotMeta
		body []byte
	}
	var taken []copied
	var failed error
	wg.Go(func() {
		failed = guarded(func() error {
			for {
				select {
				case <-quit:
					return nil
				default:
				}
				snap, err := m.sm.Snapshot()
				if err != nil {
					return fmt.Errorf("method Snapshot: %w", err)
				}
				meta := snap.Meta()
				body, err := drain(snap)
				if err != nil {
					return err
				}
				if meta.Index > 0 {
					taken = append(taken, copied{meta, body})
				}
				if _, err := m.sm.Durable(); err != nil {
					return fmt.Errorf("method Durable: %w", err)
				}
			}
		})
	})
	err = m.apply(t, 0, 60)
	close(quit)
	wg.Wait()
	if err := errors.Join(err, failed); err != nil {
		return err
	}
	for i, c := range taken {
		if i%max(1, len(taken)/8) != 0 {
			continue
		}
		n, ok := t.at(c.meta.Index)
		if !ok {
			return fmt.Errorf("a snapshot taken during Apply is of index %d, where no batch ended", c.meta.Index)
		}
		if err := metaIs(c.meta, t, n); err != nil {
			return fmt.Errorf("taken during Apply: %w", err)
		}
		other, err := s.restored(c.meta, bytes.NewReader(c.body), t, n)
		if err != nil {
			return fmt.Errorf("a snapshot taken during Apply: %w", err)
		}
		other.end()
	}
	return m.is(t, 60)
}

// within returns an error if f does not return within patience.
func within(what string, f func()) error {
	done := make(chan struct{})
	go func() { defer close(done); f() }()
	select {
	case <-done:
		return nil
	case <-time.After(patience):
		return fmt.Errorf("%s does not return", what)
	}
}

// ruleInterrupt interrupts a state machine at the end of a host, and continues with another host.
func ruleInterrupt(s *stage) error {
	t, m, err := s.applied(20, 0)
	if err != nil {
		return err
	}
	i, ok := m.sm.(rawnode.Interruptible)
	if !ok {
		return nil // without Interruptible, a state machine promises not to wait
	}
	if err := m.apply(t, 0, 10); err != nil {
		return err
	}
	if err := within("Interrupt", func() { i.Interrupt(errors.New("the host has stopped")) }); err != nil {
		return err
	}
	if err := within("Apply after Interrupt", func() { _, _ = m.sm.Apply(copyBatch(t.batches[10])) }); err != nil {
		return err
	}
	var index uint64
	var host []byte
	if err := within("Load after Interrupt", func() { index, host, err = m.sm.Load() }); err != nil {
		return err
	}
	if err != nil {
		return fmt.Errorf("method Load after Interrupt: %w", err)
	}
	n, err := m.survived(t, index, host)
	if err != nil {
		return fmt.Errorf("after Interrupt: %w", err)
	}
	if err := m.apply(t, n, 20); err != nil {
		return fmt.Errorf("for the next host: %w", err)
	}
	return m.is(t, 20)
}

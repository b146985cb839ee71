// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package rawnodetest

import (
	"bytes"
	"errors"
	"sync"

	"github.com/weftraft/weft/rawnode"
)

func ruleConcurrent(s *stage) {
	t, m := s.applied(60, 0)
	var wg sync.WaitGroup
	quit := make(chan struct{})
	type copied struct {
		meta rawnode.SnapshotMeta
		body []byte
	}
	var taken []copied
	var failed error
	wg.Go(func() {
		failed = guarded(func() {
			for {
				select {
				case <-quit:
					return
				default:
				}
				snap, err := m.sm.Snapshot()
				calls("method Snapshot", err)
				c := copied{snap.Meta(), drain(snap)}
				if c.meta.Index > 0 {
					taken = append(taken, c)
				}
				m.durable()
			}
		})
	})
	err := guarded(func() { m.apply(t, 0, 60) })
	close(quit)
	wg.Wait()
	must(errors.Join(err, failed))
	for i, c := range taken {
		if i%max(1, len(taken)/8) != 0 {
			continue
		}
		when(func() {
			n, ok := t.at(c.meta.Index)
			if !ok {
				breaks("it is of index %d, where no batch ended", c.meta.Index)
			}
			metaIs(c.meta, t, n)
			s.restored(c.meta, bytes.NewReader(c.body), t, n).end()
		}, "a snapshot taken during Apply")
	}
	m.is(t, 60)
}

// ruleInterrupt interrupts a state machine at the end of a host, and continues with another host.
func ruleInterrupt(s *stage) {
	t, m := s.applied(20, 0)
	i, ok := m.sm.(rawnode.Interruptible)
	if !ok {
		return // without Interruptible, a state machine promises not to wait
	}
	m.apply(t, 0, 10)
	within(patience, "Interrupt", func() { i.Interrupt(errors.New("the host has stopped")) })
	within(patience, "Apply after Interrupt", func() { _, _ = m.sm.Apply(copyBatch(t.batches[10])) })
	var index uint64
	var host []byte
	var err error
	within(patience, "Load after Interrupt", func() { index, host, err = m.sm.Load() })
	calls("method Load after Interrupt", err)
	when(func() { m.replay(t, index, host, 20) }, "after Interrupt, for the next host")
}

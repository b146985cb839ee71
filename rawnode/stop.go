// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package rawnode

import (
	"context"
	"fmt"
	"time"

	"github.com/weftraft/weft/raft"
)

// Stop ends the host. It refuses new calls, lets those under way end, hands
// leadership to another voter if it has it, and then stops all goroutines. When
// ctx ends, what has not ended by itself is cut short, and ctx's error is
// returned; the host is stopped all the same. Log, state machine and transport
// are not closed.
func (h *Host) Stop(ctx context.Context) error {
	h.stopping.Store(true)
	err := h.wind(ctx)
	h.stopOnce.Do(func() { close(h.stopLoop) })
	<-h.finished
	return err
}

// wind waits for calls to end and for leadership to move.
func (h *Host) wind(ctx context.Context) error {
	if err := h.until(ctx, func(s Status) bool { return s.Waiting == 0 }); err != nil {
		return fmt.Errorf("stop: wait for calls to end: %w", err)
	}
	successor := h.successor()
	if successor == raft.None {
		return nil
	}
	// A transfer that does not succeed costs the others an election, no more.
	limit := time.Duration(h.cfg.Replica.ElectionTick) * h.cfg.TickInterval
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	h.inbox.post(func(r *Replica) {
		r.TransferLeader(noCall, successor, limit+h.now())
	})
	_ = h.until(limited, func(s Status) bool { return s.Role != raft.StateLeader })
	return ctx.Err()
}

// successor returns the voter that is best fit to lead, or none if this node
// does not lead or is alone.
func (h *Host) successor() (best uint64) {
	s := h.Status()
	var match uint64
	for _, id := range s.Members.GetVoters() {
		p, ok := s.Progress[id]
		if ok && id != s.ID && p.RecentActive && p.Match >= match {
			best, match = id, p.Match
		}
	}
	return best
}

// until waits for a condition on the status, looking once a tick.
func (h *Host) until(ctx context.Context, ok func(Status) bool) error {
	ticker := time.NewTicker(h.cfg.TickInterval)
	defer ticker.Stop()
	for !ok(h.Status().Status) {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-h.Done():
			return nil
		case <-ticker.C:
		}
	}
	return nil
}

// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package rawnode

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/weftraft/weft/internal/replica"
	"github.com/weftraft/weft/raft"
)

// Stop ends the host. Stop refuses new calls, lets calls under way end, hands over leadership if
// this node leads, and then stops all goroutines. Gateways are turned away first. When ctx ends, Stop
// cuts the remaining work short, and returns ctx's error; the host is stopped in this case, too. Log,
// state machine and transport are not closed.
//
// Stop does not wait for a state machine or a log that hangs: the error then also wraps
// [ErrNotEnded], and names the part that hangs. The part is in use until its method returns; a Stop
// after that returns nil, as does a second Stop of a host that has ended. Goroutines that were told
// to end get 1 second more than ctx, only at the first Stop.
func (h *Host) Stop(ctx context.Context) error {
	if ctx == nil {
		return errNoContext
	}
	if h.hasEnded() {
		return nil
	}
	h.stopping.Store(true)
	h.local.Close()
	h.inbox.post((*replica.Replica).TurnGatewaysAway)
	err := h.wind(ctx)
	h.stopOnce.Do(func() { close(h.stopLoop) })
	select {
	case <-h.finished:
		return err
	case <-ctx.Done():
	}
	h.cutOnce.Do(func() { time.AfterFunc(cutGrace, func() { close(h.cutShort) }) })
	select {
	case <-h.finished:
		return err
	case <-h.cutShort:
		return fmt.Errorf("stop: %w: %s: %w", ErrNotEnded, h.hanging(), ctx.Err())
	}
}

// cutGrace is the time for goroutines to end after the order to end.
const cutGrace = time.Second

// loopName names the loop where it hangs. A turn asks the core, and the core reads the log.
const loopName = "the loop, which reads the log and gives the transport messages"

func (h *Host) hasEnded() bool {
	select {
	case <-h.finished:
		return true
	default:
		return false
	}
}

// hanging names the parts that have not ended.
func (h *Host) hanging() string {
	var parts []string
	for _, p := range []struct {
		hangs bool
		name  string
	}{
		{h.context.Err() == nil, loopName},
		{h.applies.busy(), "the state machine, in Apply, Restore or Durable"},
		{h.appends.busy(), "the log, in Append, SetSnapshot or Compact"},
		{h.queries.Load() > 0, "the state machine, in Query"},
		{h.out.busy(), "a snapshot of the state machine that is being read"},
	} {
		if p.hangs {
			parts = append(parts, p.name)
		}
	}
	return cmp.Or(strings.Join(parts, "; "), "the state machine, in Interrupt")
}

// wind waits for calls to end and for leadership to move.
func (h *Host) wind(ctx context.Context) error {
	if err := h.until(ctx, func(s Status) bool { return s.Waiting == 0 }); err != nil {
		return fmt.Errorf("stop: wait for calls to end: %w", err)
	}
	successor := h.successor(ctx)
	if successor == raft.None {
		return nil
	}
	// A transfer that fails costs the other nodes an election only.
	limit := time.Duration(h.cfg.Replica.ElectionTick) * h.cfg.TickInterval
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	h.inbox.post(func(r *replica.Replica) {
		r.TransferLeader(noCall, successor, limit+h.now())
	})
	_ = h.until(limited, func(s Status) bool { return s.Role != raft.StateLeader })
	return ctx.Err()
}

// successor returns the voter best fit to lead, or none if this node does not lead or is the only
// voter.
func (h *Host) successor(ctx context.Context) uint64 {
	s, err := h.ask(ctx)
	if err != nil {
		return raft.None
	}
	return fittest(s)
}

func fittest(s Status) (best uint64) {
	for _, id := range s.Members.GetVoters() {
		p, ok := s.Progress[id]
		if !ok || id == s.ID || !p.RecentActive || p.LogLost {
			continue
		}
		if b := s.Progress[best]; best == raft.None || b.Worse && !p.Worse || b.Worse == p.Worse && p.Match >= b.Match {
			best = id
		}
	}
	return best
}

// until waits for a condition on the status, and looks at the status once a tick.
func (h *Host) until(ctx context.Context, ok func(Status) bool) error {
	ticker := time.NewTicker(h.cfg.TickInterval)
	defer ticker.Stop()
	for {
		if s, err := h.ask(ctx); err != nil || ok(s) {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-h.Done():
			return nil
		case <-ticker.C:
		}
	}
}

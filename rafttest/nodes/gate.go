// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package nodes

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/weftraft/weft/internal/replica"
	"github.com/weftraft/weft/internal/wire"
	"github.com/weftraft/weft/internal/world"
)

// gate is a machine with a gateway of each group: a processor that takes no time, a clock, and links.
type gate struct {
	process
	groups map[uint64]*gateway // of this life
}

// gateway is the gateway of a group in one life of its process: the real replica.Gateway.
type gateway struct {
	gt        *gate
	g         *group
	r         *replica.Gateway
	scheduled bool
	calls     map[replica.Call]pendingCall
	last      replica.Call
}

func (gt *gate) String() string { return fmt.Sprintf("gateway %d", gt.id) }

// start starts the process.
func (gt *gate) start() {
	if gt.up || gt.w.failure != nil {
		return
	}
	gt.life++
	gt.up, gt.paused, gt.waking = true, false, nil
	gt.groups = map[uint64]*gateway{}
	gt.w.tell(gt.id, "gateway starts %d", gt.life)
	p := &gt.w.plan
	for _, g := range gt.w.groups {
		r, err := replica.NewGateway(replica.Settings{
			ID: gt.id, Group: g.id, Boot: p.start(gt.life), ElectionTick: electionTicks, MaxCommandBytes: p.maxCommand(),
			MaxBatchBytes: p.batchBytes, MaxBatches: p.batches, MaxQueueBytes: p.queueBytes, MaxCalls: p.calls,
		})
		if err != nil {
			gt.w.fail(noFailure, "%v does not start: %v", gt, err)
			return
		}
		gt.groups[g.id] = &gateway{gt: gt, g: g, r: r, calls: map[replica.Call]pendingCall{}}
	}
	gt.tick(gt.life)
}

// tick is the clock of the process. A pause swallows ticks.
func (gt *gate) tick(life uint64) {
	gt.w.After(tickTime, func() {
		if gt.life != life || !gt.up {
			return
		}
		gt.tick(life)
		if gt.paused {
			return
		}
		for _, g := range gt.w.groups {
			gw := gt.groups[g.id]
			zone := gt.w.plan.naming.zone
			var homes, near []uint64
			for id := uint64(1); id <= maxNodes; id++ {
				if p := &gt.w.plan.gates; !p.knows(id) || !p.book && !g.knows(id) {
					continue
				}
				if homes = append(homes, id); zone(id) != "" && zone(id) == zone(gt.id) {
					near = append(near, id)
				}
			}
			gw.r.SetHomes(homes, near)
			gw.r.Tick(gt.w.Now())
			gw.kick()
		}
	})
}

func (gt *gate) pause(d time.Duration) {
	if gt.paused {
		return
	}
	gt.paused = true
	gt.w.tell(gt.id, "pause")
	gt.w.After(d, gt.resume)
}

func (gt *gate) resume() {
	if !gt.up || !gt.paused {
		return
	}
	gt.paused = false
	gt.wake()
}

// crash ends the process, with its calls.
func (gt *gate) crash() {
	gt.count()
	gt.up, gt.paused, gt.waking = false, false, nil
	gt.w.tell(gt.id, "gateway down")
}

// count adds up what the gateways of this life came to.
func (gt *gate) count() {
	if !gt.up {
		return
	}
	for _, gw := range gt.groups {
		c, r := gw.r.Status().Counters, &gt.w.gateReach
		r.Batches += c.Batches
		r.Resent += c.Resent
		r.Homes += c.Homes
		r.Nearer += c.Nearer
		r.Superseded += c.Superseded
		r.Gaps += c.Gaps
		r.Queries += c.Queries
		r.QueriesAgain += c.QueriesAgain
	}
}

// kick has a turn follow.
func (gw *gateway) kick() {
	if gw.scheduled {
		return
	}
	gw.scheduled = true
	gw.gt.w.After(10*time.Microsecond, gw.gt.bound(gw.turn))
}

// turn does what the gateway wants done.
func (gw *gateway) turn() {
	gw.scheduled = false
	w := gw.gt.w
	out := gw.r.Flush(w.Now())
	for _, m := range out.Sends {
		gw.gt.send(m)
	}
	for _, d := range out.Done {
		gw.ended(d)
	}
	st := gw.r.Status()
	if st.Queued > w.plan.queueBytes || st.Waiting > w.plan.calls {
		w.fail(budgets, "%v, group %d: %d bytes and %d calls, the bounds are %d and %d", gw.gt, gw.g.id, st.Queued, st.Waiting, w.plan.queueBytes, w.plan.calls)
	}
}

// send carries a message to a node.
func (gt *gate) send(m wire.Message) {
	w := gt.w
	lost := gt.bound(func() {
		if gw := gt.groups[m.Group]; gw != nil {
			gw.r.Unreachable(m.To)
			gw.kick()
		}
	})
	lostLater := func() {
		if !w.nets.Chance(w.plan.silent) {
			w.After(w.plan.costs.Delay, lost)
		}
	}
	if !w.plan.gates.knows(m.To) {
		lostLater() // it refuses the connection
		return
	}
	if m, ok := w.net.encoded(m); ok {
		w.net.Send(gt.id, m.To, world.Frame{Bytes: m.Size(), Lane: int(m.Class()), Ordered: true, Lost: lostLater, Arrive: func(bool) { gt.reach(m, lostLater) }})
	}
}

// reach hands a message of a gateway to its member. A full inbox is tried again.
func (gt *gate) reach(m wire.Message, lost func()) {
	n := gt.w.node(m.To)
	if n == nil || !n.up {
		lost()
		return
	}
	if mm := n.members[m.Group]; mm != nil && mm.here() && !mm.receive(m) {
		gt.w.After(time.Millisecond, func() { gt.reach(m, lost) })
	}
}

// receive takes a message of a node.
func (gt *gate) receive(m wire.Message) {
	gt.bound(func() {
		gw := gt.groups[m.Group]
		if err := gw.r.Receive(m); err != nil {
			gt.w.fail(noFailure, "%v refuses a message of node %d: %v", gt, m.From, err)
		}
		gw.kick()
	})()
}

// call makes a call of a user.
func (gw *gateway) call(deadline time.Duration, do func(*replica.Gateway, replica.Call, replica.Deadline), end func(replica.Done)) {
	gw.last++
	by := gw.gt.w.Now() + deadline
	gw.calls[gw.last] = pendingCall{deadline: by, end: end}
	gw.r.At(gw.gt.w.Now())
	do(gw.r, gw.last, by)
	gw.kick()
}

// ended takes the end of a call: there is exactly one, and a definite one or not.
func (gw *gateway) ended(d replica.Done) {
	w := gw.gt.w
	c, ok := gw.calls[d.Call]
	if !ok {
		w.fail(verdicts, "%v ends call %d twice", gw.gt, d.Call)
		return
	}
	delete(gw.calls, d.Call)
	switch {
	case d.Err == nil:
	case errors.Is(d.Err, replica.ErrRefused):
		w.gateReach.Refused++
	case errors.Is(d.Err, replica.ErrUnknown):
		w.gateReach.Unknown++
	default:
		w.fail(verdicts, "%v: a call ends with an error that has no verdict: %v", gw.gt, d.Err)
	}
	c.end(d)
}

// propose proposes a try of an operation.
func (gw *gateway) propose(op *operation, deadline time.Duration, end func(answer, error)) {
	cmd := gw.gt.w.history.try(op)
	gw.call(deadline, func(r *replica.Gateway, id replica.Call, by replica.Deadline) { r.Propose(id, cmd.encode(), by) }, func(d replica.Done) {
		if errors.Is(d.Err, replica.ErrRefused) {
			gw.g.wasRefused(gw.gt, cmd.attempt)
		}
		var a answer
		if d.Err == nil {
			a = decodeAnswer(d.Result.([]byte))
			gw.gt.w.gateReach.Commands++
		}
		end(a, d.Err)
	})
}

// query asks for the value of a key.
func (gw *gateway) query(key uint8, deadline time.Duration, end func(value uint32, err error)) {
	policy := world.Pick[replica.ReadPolicy](gw.gt.w.gated, replica.ReadIndex{}, replica.ReadIndex{}, replica.AtResponder{}, replica.LeaderLease{}, replica.QuorumRead{})
	gw.call(deadline, func(r *replica.Gateway, id replica.Call, by replica.Deadline) {
		r.Query(id, []byte{key}, replica.ReadOptions{Policy: policy}, by)
	}, func(d replica.Done) {
		if d.Err != nil {
			end(0, d.Err)
			return
		}
		end(binary.LittleEndian.Uint32(d.Result.([]byte)), nil)
	})
}

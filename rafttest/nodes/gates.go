// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package nodes

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/weftraft/weft/internal/replica"
	"github.com/weftraft/weft/internal/wire"
	"github.com/weftraft/weft/internal/world"
	"github.com/weftraft/weft/rawnode/session"
)

// gatePlan is what a seed draws of gateways.
type gatePlan struct {
	gates                int
	share                float64       // of the tries of clients that go to gateways
	crash, cutOff, pause time.Duration // mean times between faults; 0: none
	// earlier has the bits of the nodes of an earlier version, which know nothing of gateways until
	// the calm.
	earlier uint64
	busy    bool // the processors of members are busy
}

// drawGates draws the gateways of a run.
func drawGates(d world.Draws) gatePlan {
	p := gatePlan{gates: 1 + d.IntN(2), share: world.Pick(d, 0.5, 0.8, 1)}
	p.crash = d.Every(0.5, 100*time.Millisecond, time.Second)
	p.cutOff = d.Every(0.6, 100*time.Millisecond, time.Second)
	p.pause = d.Every(0.4, 100*time.Millisecond, time.Second)
	if d.Chance(0.2) {
		p.earlier = 1 << (1 + d.IntN(5))
	}
	p.busy = d.Chance(0.3)
	return p
}

// shorten makes a run with gateways brief: one small group with small commands, and all that happens a number of times as often as in
// other runs, for a time that is shorter by the same number.
func (p *plan) shorten(d world.Draws) {
	const times = 4
	p.duration /= times
	p.groups, p.voters, p.clients = 1, world.Pick(d, 1, 3, 3, 3, 3, 4), 2+d.IntN(2)
	p.largest = min(p.largest, 1<<10)
	for _, t := range []*time.Duration{
		&p.deadline, &p.outage, &p.crash, &p.kill, &p.tornWrite, &p.partition, &p.isolate, &p.oneWay, &p.slowLink, &p.holdLink,
		&p.slowDisk, &p.fullDisk, &p.hungDisk, &p.slowMachine, &p.damage, &p.pause, &p.transfer, &p.campaign,
		&p.gates.crash, &p.gates.cutOff, &p.gates.pause,
	} {
		*t /= times
	}
	p.think, p.deadline = p.think/2, max(p.deadline, electionTime)
}

// gateReach counts what gateways came to. None may be zero.
type gateReach struct {
	Batches, Commands, Resent, Homes, Superseded, Gaps uint64
	Nearer                                             uint64 // moves into the zone of the gateway
	Queries, QueriesAgain, AtReaders                   uint64 // AtReaders: queries answered by learners
	Refused, Unknown                                   uint64 // calls
	Crashes, CutOffs, Pauses, EarlierNodes             uint64
	ReportsAgain                                       uint64 // by homes
	Held                                               uint64 // times that batches waited for a round of a busy leader
}

// Add adds the counts of another run.
func (r *gateReach) Add(o gateReach) { world.AddCounts(r, o) }

// gate is a machine with a gateway of each group: a processor that takes no time, a clock, and links.
type gate struct {
	w      *sim
	id     uint64
	life   uint64
	up     bool
	paused bool
	waking []func()
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

// beginGates starts the gateways, and plans their faults.
func (w *sim) beginGates() {
	p := &w.plan.gates
	for i := range p.gates {
		gt := &gate{w: w, id: maxNodes + 1 + uint64(i)}
		w.gates = append(w.gates, gt)
		gt.start()
	}
	some := func(happen func(*gate)) func() {
		return func() {
			if gt := w.gates[w.gated.IntN(len(w.gates))]; gt.up {
				happen(gt)
			}
		}
	}
	if p.gates == 0 {
		return
	}
	w.every(p.crash, some(func(gt *gate) {
		w.gateReach.Crashes++
		gt.crash()
		w.After(w.outage(), gt.start)
	}))
	w.every(p.cutOff, some(func(gt *gate) {
		w.gateReach.CutOffs++
		w.tell(gt.id, "cut off")
		// From all nodes, or from one.
		mends := w.net.Isolate(gt.id, true, true)
		if w.gated.Chance(0.6) {
			for _, mend := range mends {
				mend()
			}
			node := 1 + uint64(w.gated.IntN(w.plan.voters))
			mends = []func(){w.net.Cut(gt.id, node), w.net.Cut(node, gt.id)}
		}
		w.mendLater("cut", w.outage(), mends)
	}))
	w.every(p.pause, some(func(gt *gate) {
		w.gateReach.Pauses++
		gt.pause(w.outage())
	}))
	if p.earlier != 0 {
		w.gateReach.EarlierNodes++
	}
}

// knows reports whether a node is of a version that knows gateways.
func (p *gatePlan) knows(node uint64) bool { return p.earlier>>node&1 == 0 }

func (w *sim) gate(id uint64) *gate {
	if id <= maxNodes || id > maxNodes+uint64(len(w.gates)) {
		return nil
	}
	return w.gates[id-maxNodes-1]
}

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
			ID: gt.id, Group: g.id, Boot: gt.life, ElectionTick: electionTicks, MaxCommandBytes: p.maxCommand(),
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
				if !g.knows(id) || !gt.w.plan.gates.knows(id) {
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

// bound is a call at the process, in this life; a paused process runs it after the pause.
func (gt *gate) bound(happen func()) func() {
	life := gt.life
	return func() {
		switch {
		case gt.life != life || !gt.up:
		case gt.paused:
			gt.waking = append(gt.waking, happen)
		default:
			happen()
		}
	}
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
	waking := gt.waking
	gt.waking = nil
	for _, happen := range waking {
		gt.bound(happen)()
	}
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

// countReports counts what the replicas of a node told gateways again.
func (n *node) countReports() {
	for _, m := range n.members {
		if m != nil && len(n.w.gates) > 0 {
			c := m.r.Status().Counters
			n.w.gateReach.ReportsAgain += c.ReportsAgain
			n.w.gateReach.Held += c.HeldIn
		}
	}
}

// Asked answers a query of a gateway.
func (m *member) Asked(q replica.Query) {
	if slices.Contains(m.conf().GetLearners(), m.n.id) {
		m.n.w.gateReach.AtReaders++
	}
	m.n.cpu.Add(func() (time.Duration, func()) {
		return m.n.w.plan.costs.Call, func() {
			data := binary.LittleEndian.AppendUint32(nil, m.state.registers[q.Request[0]].value)
			m.drive.Post(0, func(r *replica.Replica) { r.Answered(q, wire.Reply{Code: wire.Answered, Data: data}) })
		}
	})
}

// tryAtGate sends a try to a gateway, if the client goes to one.
func (c *client) tryAtGate(op *operation, again func()) bool {
	w := c.w
	if len(w.gates) == 0 || !w.gated.Chance(w.plan.gates.share) {
		return false
	}
	gt := w.gates[w.gated.IntN(len(w.gates))]
	w.After(w.plan.costs.Delay, func() {
		if gt.up {
			gt.bound(func() { c.sendToGate(op, gt.groups[c.g.id], again) })()
		}
	})
	return true
}

func (c *client) sendToGate(op *operation, gw *gateway, again func()) {
	w := c.w
	soon := func() { w.After(w.cli.Wait(2*tickTime), again) }
	if op.verb == verbGet {
		gw.query(op.key, w.plan.deadline, func(value uint32, err error) {
			if err != nil {
				if !errors.Is(err, replica.ErrRefused) {
					w.fail(verdicts, "%v: a query ends with %v", gw.gt, err)
				}
				soon()
				return
			}
			c.answered(op, gw.gt.id, answer{value: value})
		})
		return
	}
	gw.propose(op, w.plan.deadline, func(a answer, err error) {
		if err != nil {
			soon()
			return
		}
		c.answered(op, gw.gt.id, a)
	})
}

// encodeAnswer makes bytes of a result, for gateways.
func encodeAnswer(result any) ([]byte, error) {
	a := result.(answer)
	b := binary.LittleEndian.AppendUint64([]byte{byte(a.verdict), 0}, uint64(a.session))
	if a.done {
		b[1] = 1
	}
	return binary.LittleEndian.AppendUint32(b, a.value), nil
}

func decodeAnswer(b []byte) answer {
	return answer{verdict: session.Verdict(b[0]), done: b[1] == 1, session: session.ID(binary.LittleEndian.Uint64(b[2:])), value: binary.LittleEndian.Uint32(b[10:])}
}

// calmGates ends the faults of gateways; nodes of an earlier version are replaced.
func (w *sim) calmGates() {
	w.plan.gates.earlier = 0
	for _, gt := range w.gates {
		gt.resume()
		gt.start()
	}
}

// missingAtGates names unfinished work of a group at gateways, and asks for work.
func (f *finale) missingAtGates(g *group) string {
	for _, gt := range f.w.gates {
		gw := gt.groups[g.id]
		pr := f.probe(probeID{g.id, gt.id}, func(op *operation, end func(answer, error)) {
			gt.bound(func() { gw.propose(op, 3*electionTime, end) })()
		})
		switch st := gw.r.Status(); {
		case !pr.answered:
			return fmt.Sprintf("%v has no answer to what was proposed there: %+v", gt, st)
		case len(gw.calls) > 0 || st.Waiting > 0:
			return fmt.Sprintf("%v has calls that do not end", gt)
		case st.Queued > 0:
			return fmt.Sprintf("%v has %d bytes for which nobody waits", gt, st.Queued)
		}
	}
	return ""
}

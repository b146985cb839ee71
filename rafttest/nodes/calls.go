// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package nodes

import (
	"encoding/binary"
	"errors"
	"slices"
	"time"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/internal/replica"
	"github.com/weftraft/weft/internal/wire"
	"github.com/weftraft/weft/internal/world"
	"github.com/weftraft/weft/leases"
)

// call makes a call of a user.
func (m *member) call(deadline time.Duration, bytes int, do func(*replica.Replica, replica.Call, replica.Deadline), end func(replica.Done)) {
	w, p := m.n.w, &m.n.w.plan
	if m.atDoor.calls >= p.calls || m.atDoor.bytes > 0 && m.atDoor.bytes+bytes > p.queueBytes {
		if w.opts.Bug != noQueueBudget {
			w.reach.Refused++
			w.reach.AtDoor++
			end(replica.Done{Err: &replica.CallError{Verdict: replica.ErrRefused, Cause: replica.ErrOverloaded}})
			return
		}
	}
	m.atDoor.calls++
	m.atDoor.bytes += bytes
	m.nextCall++
	id := m.nextCall
	m.calls[id] = pendingCall{deadline: w.Now() + deadline, end: end}
	c, by := &p.costs, w.Now()+deadline
	m.drive.Post(c.Call+per(bytes, c.LoopKiB), func(r *replica.Replica) { do(r, id, by) })
}

// Ended takes the end of a call: there is exactly one.
func (m *member) Ended(d replica.Done) {
	w := m.n.w
	c, ok := m.calls[d.Call]
	if !ok {
		w.fail(verdicts, "%v ends call %d twice", m.n, d.Call)
		return
	}
	delete(m.calls, d.Call)
	w.late = max(w.late, w.Now()-c.deadline)
	var ce *replica.CallError
	switch {
	case d.Err == nil:
	case !errors.As(d.Err, &ce):
		w.fail(verdicts, "%v: a call ends with an error that has no verdict: %v", m.n, d.Err)
	case errors.Is(d.Err, replica.ErrRefused):
		w.reach.Refused++
	default:
		w.reach.Unknown++
		if w.opts.Bug == refusedLate {
			d.Err = &replica.CallError{Op: ce.Op, Verdict: replica.ErrRefused, Cause: ce.Cause}
		}
	}
	if errors.Is(d.Err, replica.ErrOverloaded) {
		w.reach.Overloaded++
	}
	c.end(d)
}

// propose proposes a try of an operation.
func (m *member) propose(op *operation, deadline time.Duration, end func(answer, error)) {
	cmd := m.n.w.history.try(op)
	data := cmd.encode()
	m.call(deadline, len(data), func(r *replica.Replica, id replica.Call, by replica.Deadline) {
		r.Propose(id, data, by)
	}, func(d replica.Done) {
		if errors.Is(d.Err, replica.ErrRefused) {
			m.g.wasRefused(m.n, cmd.attempt)
		}
		a, _ := d.Result.(answer)
		end(a, d.Err)
	})
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

// read waits for a barrier.
func (m *member) read(key uint8, deadline time.Duration, end func(error)) {
	switch m.n.w.opts.Bug {
	case followerBarrier:
		barrier := m.core.State().Commit
		var wait func()
		wait = func() {
			if m.applied >= barrier {
				end(nil)
			} else {
				m.n.after(tickTime, wait)
			}
		}
		wait()
		return
	case noWait:
		m.drive.Post(0, func(r *replica.Replica) { end(nil) })
		return
	}
	w := m.n.w
	o, want := w.readOptions(key), m.g.fresh.acked[key]
	if m.reads++; m.reads%2 == 0 && m.readAtOnce(key, o, want) {
		end(nil)
		return
	}
	m.call(deadline, 0, func(r *replica.Replica, id replica.Call, by replica.Deadline) {
		r.ReadWith(id, o, by)
	}, func(d replica.Done) {
		if d.Err == nil {
			m.readEnds(key, o, d.Read, want)
		}
		end(d.Err)
	})
}

// query reads the value of a key, and in some runs an older value beside it.
func (m *member) query(key uint8, deadline time.Duration, end func(value uint32, err error)) {
	if w := m.n.w; w.plan.leasing.policies && w.lease.Chance(0.3) {
		m.readStale()
	}
	m.read(key, deadline, func(err error) { end(m.state.registers[key].value, err) })
}

// readOptions draws how a client reads a key.
func (w *sim) readOptions(key uint8) (o replica.ReadOptions) {
	l := w.plan.leasing
	if l.policies {
		o.Policy = world.Pick[replica.ReadPolicy](w.lease, nil, replica.AtResponder{}, replica.AtResponder{}, replica.LeaderLease{}, replica.QuorumRead{})
	}
	if l.spans && w.lease.Chance(0.7) {
		o.Spans = []leases.Span{spanOf(key)}
	}
	return o
}

// readAtOnce reads by the member's permit, as a goroutine beside its loop, and reports
// whether the permit answers. want is how many commands the state must have at least.
func (m *member) readAtOnce(key uint8, o replica.ReadOptions, want uint64) bool {
	res, ok := m.local.Read(&o)
	if ok {
		m.n.w.reach.PermitReads++
		m.readEnds(key, o, res, want)
	}
	return ok
}

// readEnds checks a read that was answered.
func (m *member) readEnds(key uint8, o replica.ReadOptions, res replica.ReadResult, want uint64) {
	w := m.n.w
	w.reach.countRead(res.By)
	if m.state.applied < want {
		w.fail(fresh, "group %d: %v answers a read of key %d (%T, served by %v) with %d commands applied, and a write at %d was acknowledged before",
			m.g.id, m.n, key, o.Policy, res.By, m.state.applied, want)
	}
}

// readStale reads at a member by a policy that allows an older state, and checks the age
// of the state.
func (m *member) readStale() {
	w, g := m.n.w, m.g
	most := w.lease.Span(tickTime, 3*electionTime)
	want := g.fresh.before(w.Now() - most)
	m.call(w.plan.deadline, 0, func(r *replica.Replica, id replica.Call, by replica.Deadline) {
		r.ReadWith(id, replica.ReadOptions{Policy: replica.BoundedStaleness{Max: most}}, by)
	}, func(d replica.Done) {
		if d.Err != nil {
			return
		}
		w.reach.countRead(d.Read.By)
		if m.state.applied < want {
			w.fail(fresh, "group %d: %v answers a read that may be %v old with %d commands applied, and %d were acknowledged by then", g.id, m.n, most, m.state.applied, want)
		}
	})
}

func (m *member) transfer(to uint64, end func(error)) {
	m.call(m.n.w.plan.deadline, 0, func(r *replica.Replica, id replica.Call, by replica.Deadline) {
		r.TransferLeader(id, to, by)
	}, func(d replica.Done) { end(d.Err) })
}

// change proposes a change of the members at a member.
func (m *member) change(deadline time.Duration, cc *pb.ConfChangeV2, end func(*pb.ConfState, error)) {
	m.n.w.reach.Changes++
	m.call(deadline, 0, func(r *replica.Replica, id replica.Call, by replica.Deadline) {
		r.ProposeConfChange(id, cc, by)
	}, func(d replica.Done) {
		conf, _ := d.Result.(*pb.ConfState)
		if d.Err == nil {
			m.n.w.reach.ChangesDone++
		}
		end(conf, d.Err)
	})
}

// campaignReplica has a replica try to become leader.
func campaignReplica(r *replica.Replica) {
	_ = r.Campaign() // a refusal is as well
}

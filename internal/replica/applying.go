// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package replica

import (
	"fmt"
	"slices"
	"time"

	"google.golang.org/protobuf/proto"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/internal/marked"
)

// emit hands committed entries to the apply stage, in steps; the responses leave with the last one. A
// step ends where the state machine may jump to by a snapshot. A step also ends behind an entry with a
// command of the module, so that all replicas have a state of that index between two calls of Apply:
// there replicas are compared.
func (r *Replica) emit(m *pb.Message) {
	entries := m.GetEntries()
	if stored := r.writes.stored(); entries[len(entries)-1].GetIndex() > stored {
		r.count.EarlyEntries += entries[len(entries)-1].GetIndex() - max(stored, entries[0].GetIndex()-1)
	}
	cut := slices.IndexFunc(entries, func(e *pb.Entry) bool { return e.GetIndex() > r.restoring })
	if r.restoring > 0 && cut > 0 {
		r.emitSteps(entries[:cut], nil)
		entries = entries[cut:]
	}
	r.emitSteps(entries, m.GetResponses())
}

func (r *Replica) emitSteps(entries []*pb.Entry, responses []*pb.Message) {
	for len(entries) > 0 && r.err == nil {
		entries = r.emitStep(entries, responses)
	}
}

// emitStep emits one step, and returns the entries behind the step.
func (r *Replica) emitStep(entries []*pb.Entry, responses []*pb.Message) (rest []*pb.Entry) {
	a := Apply{First: entries[0].GetIndex()}
	for i, e := range entries {
		first := len(a.Batch.Commands)
		if err := r.emitEntry(&a, e); err != nil {
			// Applying less, or something else, than other replicas do would
			// be worse than not going on.
			r.Fail(fmt.Errorf("index %d, term %d: %w", e.GetIndex(), e.GetTerm(), err))
			return nil
		}
		if slices.ContainsFunc(a.Batch.Commands[first:], marked.Is) {
			entries, rest = entries[:i+1], entries[i+1:]
			break
		}
	}
	if len(rest) == 0 {
		a.responses = responses
	}
	r.count.AppliedEntries += uint64(len(entries))
	r.count.AppliedCommands += uint64(len(a.Batch.Commands))
	a.Batch.Index = entries[len(entries)-1].GetIndex()
	if a.Batch.Index >= r.host.at.index {
		a.Batch.Host = r.host.encode()
	}
	r.pending = append(r.pending, r.host.mark())
	r.keep.configured()
	r.out.Applies = append(r.out.Applies, a)
	return rest
}

// emitEntry adds an entry to a step.
func (r *Replica) emitEntry(a *Apply, e *pb.Entry) error {
	at := logMark{term: e.GetTerm(), index: e.GetIndex()}
	r.emitted = at
	// A restored snapshot may be ahead. The entries it covers have been applied, but the core
	// still has to hear of the configuration changes among the entries.
	fresh := at.index > r.host.at.index
	if fresh {
		r.host.at, r.origins = at, r.host.origins
	}
	var err error
	switch e.GetType() {
	case pb.EntryNormal:
		if len(e.GetData()) > 0 {
			err = r.emitCommands(a, at, e.GetData(), fresh)
		}
	case pb.EntryConfChange, pb.EntryConfChangeV2:
		err = r.emitConfChange(a, e, at, fresh)
	default:
		err = fmt.Errorf("%w: entry type %v", errEntryFormat, e.GetType())
	}
	r.outbox.passed(at)
	return err
}

// emitCommands adds the commands of a normal entry to a step, unless the
// batch was applied before.
func (r *Replica) emitCommands(a *Apply, at logMark, data []byte, fresh bool) error {
	env, err := decodeEnvelope(data)
	if err != nil {
		return err
	}
	r.inbox.redeem(env.id.Origin, at.term, len(data))
	own := r.outbox.takeOwn(env.id)
	admitted := (env.kind == kindVerbatim || r.origins.admit(env.id, env.floor)) && fresh
	if env.id.Origin == r.cfg.ID {
		r.outbox.bootTaken(r.host.origins.boot(r.cfg.ID))
	}
	if !admitted {
		r.count.DuplicateBatches++
		r.outbox.superseded(own)
		return nil
	}
	first := len(a.Batch.Commands)
	a.Batch.Commands = append(a.Batch.Commands, env.commands...)
	r.home.emit(a, env.id, at, len(env.commands))
	if own == nil {
		return nil
	}
	for i, c := range own.calls {
		if len(own.calls) != len(env.commands) {
			break // a withdrawn batch: nobody waits
		}
		a.take(appliedCall{pendingCall: c, index: at.index, result: first + i}, r.now)
	}
	return nil
}

// take moves a call to a step of the state machine.
func (a *Apply) take(c appliedCall, now time.Duration) {
	c.open, c.waiting, c.committed = true, waitApply, now
	a.calls = append(a.calls, c)
}

// emitConfChange puts a change of the member set into force: in the core at once, and in the host's bytes,
// which the state machine keeps, at the end of the step.
func (r *Replica) emitConfChange(a *Apply, e *pb.Entry, at logMark, fresh bool) error {
	cc, err := confChange(e)
	if err != nil {
		return err
	}
	env, named := decodeConfContext(cc.GetContext())
	var own *batch
	if named {
		own = r.outbox.takeOwn(env.id)
		if !r.origins.admit(env.id, env.floor) {
			r.count.DuplicateBatches++
			r.outbox.superseded(own)
			return nil // all replicas leave the change out
		}
	}
	conf := pb.EnsureConfState(proto.Clone(r.core.ApplyConfChange(cc)).(*pb.ConfState))
	r.dirty, r.configuredAt = true, at.index
	r.holding.members(nil) // until the next tick: a learner may vote now
	if !fresh {
		r.outbox.superseded(own)
		return nil
	}
	r.host.conf = conf
	if own != nil {
		for _, c := range own.calls {
			a.take(appliedCall{pendingCall: c, index: at.index, result: -1, value: conf}, r.now)
		}
	}
	return nil
}

// confChange reads a change of either version.
func confChange(e *pb.Entry) (*pb.ConfChangeV2, error) {
	var err error
	var cc pb.ConfChangeI
	if e.GetType() == pb.EntryConfChange {
		v1 := &pb.ConfChange{}
		err, cc = proto.Unmarshal(e.GetData(), v1), v1
	} else {
		v2 := &pb.ConfChangeV2{}
		err, cc = proto.Unmarshal(e.GetData(), v2), v2
	}
	if err != nil {
		return nil, fmt.Errorf("%w: configuration change: %w", errEntryFormat, err)
	}
	return cc.AsV2(), nil
}

// ApplyDone says that a step of the state machine is done. results are what it
// returned for the commands, or nil if the step was left out, as the state was
// at or beyond its index already.
func (r *Replica) ApplyDone(a Apply, results []any) {
	if len(r.pending) > 0 {
		if p := r.pending[0]; p.at.index > r.applied.at.index {
			r.applied = p
		}
		r.pending = r.pending[1:]
	}
	for _, c := range a.calls {
		switch {
		case c.result < 0:
			r.finish(c.pendingCall, Done{Index: c.index, Result: c.value})
		case c.result < len(results):
			r.finish(c.pendingCall, Done{Index: c.index, Result: results[c.result], Sent: c.sent, Committed: c.committed})
		default:
			r.finishWith(c.pendingCall, ErrSuperseded)
		}
	}
	r.home.take(a, results)
	r.deliver(a.responses)
	r.reads.release()
}

// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package replica

import (
	"errors"
	"fmt"
	"slices"

	"google.golang.org/protobuf/proto"

	"github.com/weftraft/weft/internal/wire"
)

// receiveVerdict takes a leader's answer.
func (o *outbox) receiveVerdict(v wire.Verdict) {
	b := o.find(v.ID.Sequence)
	if b == nil || v.ID != o.id(b) || v.Number != b.number || b.accepted || b.sends == 0 {
		return // of an earlier sending
	}
	if v.Outcome == wire.Accepted {
		if v.Term != b.term {
			return
		}
		b.accepted, b.index = true, v.Index
		for _, c := range b.calls {
			c.waiting = waitMajority
		}
		return
	}
	b.notBefore = o.ticks + 1
	if v.Outcome == wire.Busy && v.Index < maxBoot {
		o.newest = max(o.newest, v.Index)
	}
	if b.sends > 1 { // an earlier sending may still arrive
		if o.newest > o.boot { // the leader takes nothing of this boot, and the next boot waits for the end of all sendings
			o.endBatch(b, errSetBack)
		}
		return
	}
	b.closed()
	if v.Outcome >= wire.Malformed {
		o.endBatch(b, malformed(b, v))
	}
}

var errSetBack = errors.New("the leader has had commands of a later start of this node: the clock was set back between two starts")

// malformed is the cause for a batch that the leader does not take.
func malformed(b *batch, v wire.Verdict) error {
	switch {
	case b.conf == nil:
		return fmt.Errorf("the leader does not take the entry: %s", v.Reason)
	case v.Outcome == wire.NoMember:
		return fmt.Errorf("%w: %w: %s", ErrConfChange, ErrNotMember, v.Reason)
	case v.Outcome == wire.Unsafe:
		return fmt.Errorf("%w: %w: %s", ErrConfChange, ErrUnsafeChange, v.Reason)
	}
	return fmt.Errorf("%w: %s", ErrConfChange, v.Reason)
}

func (o *outbox) find(seq uint64) *batch {
	i, ok := slices.BinarySearchFunc(o.batches, seq, func(b *batch, seq uint64) int {
		return int(int64(b.seq - seq))
	})
	if !ok {
		return nil
	}
	return o.batches[i]
}

// endBatch ends a batch with all its calls.
func (o *outbox) endBatch(b *batch, cause error) {
	for _, c := range b.calls {
		o.finishWith(c, cause)
	}
	o.remove(b)
}

func (o *outbox) remove(b *batch) {
	o.release(b.bytes)
	if i := slices.Index(o.batches, b); i >= 0 {
		o.batches = slices.Delete(o.batches, i, i+1)
	}
}

// passed looks at an entry handed to the apply stage, for news of batches whose fate is
// open. The caller has already taken out the entry's own batch.
func (o *outbox) passed(at logMark) {
	if at.term > o.lastTerm {
		o.lastTerm = at.term
		for _, b := range o.batches {
			if b.sends > 0 && b.term < at.term {
				b.closed()
			}
		}
	}
	for i := len(o.batches) - 1; i >= 0; i-- { // some may end
		b := o.batches[i]
		if !b.accepted || b.term != at.term || b.index > at.index {
			continue
		}
		// The leader had it there, and something else is there: a change that
		// did not fit, for which the core puts an empty entry.
		b.accepted, b.sentAt = false, o.ticks
		if b.sends == 1 {
			b.closed()
			o.endBatch(b, fmt.Errorf("%w: another change may be under way; the leader has put an empty entry in its place", ErrConfChange))
		}
	}
}

// takeOwn takes an own batch out of the outbox, if the entry is one.
func (o *outbox) takeOwn(id wire.CommandID) *batch {
	if id.Origin != o.cfg.ID || id.Boot != o.boot {
		return nil
	}
	b := o.find(id.Sequence)
	if b != nil {
		o.remove(b)
		if b.conf == nil {
			o.took(o.now - b.since)
			if o.gathers {
				if o.now >= o.gathersUntil() {
					o.expected = 0 // the others may have gone
				}
				o.expected, o.endedAt = max(o.expected, len(o.queue))+len(b.calls), o.now
			}
		}
	}
	return b
}

// superseded ends the calls of an own batch that was applied, so that nobody here ever sees the
// results.
func (o *outbox) superseded(own *batch) {
	if own == nil {
		return
	}
	for _, c := range own.calls {
		c.open = true
		o.finishWith(c, ErrSuperseded)
	}
}

// jumped settles the fate of batches as of an entry: the entries up to there were not looked
// at. t has the row of this origin.
func (o *outbox) jumped(t originTable, at logMark) {
	newest := t.boot(o.cfg.ID)
	for _, b := range slices.Clone(o.batches) {
		if t.applied(o.id(b)) || newest > o.boot && b.sends > 0 {
			o.superseded(b)
			o.remove(b)
		}
	}
	o.passed(at)
	o.bootTaken(newest)
}

// bootTaken corrects a boot number that turned out not to be the newest of this
// node. Entries of the old number are never applied, so everything begins anew.
func (o *outbox) bootTaken(newest uint64) {
	if newest <= o.boot {
		return
	}
	o.raiseBoot(newest)
	o.next, o.sendings = 1, 0
	for _, b := range o.batches {
		b.closed()
		b.seq = o.next
		o.next++
	}
	for _, b := range o.batches {
		o.reencode(b)
	}
}

// reencode gives a batch's entry the batch's present id.
func (o *outbox) reencode(b *batch) {
	if b.conf != nil {
		if env, ok := decodeConfContext(b.conf.GetContext()); ok {
			b.conf.Context = encodeConfContext(o.id(b), o.floor(), env.commands[0])
		}
		if entry, err := proto.Marshal(b.conf); err == nil {
			b.entry = entry
		}
		return
	}
	if env, err := decodeEnvelope(b.entry); err == nil {
		b.entry = encodeBatch(o.id(b), o.floor(), env.commands)
	}
}

// forgetEnded lets go of what nobody waits for and no log can hold.
func (o *outbox) forgetEnded() {
	o.queue = slices.DeleteFunc(o.queue, func(q queuedCall) bool {
		if q.ended {
			o.release(len(q.command))
			o.unbatched -= len(q.command)
		}
		return q.ended
	})
	o.batches = slices.DeleteFunc(o.batches, func(b *batch) bool {
		gone := b.sends == 0 && allEnded(b.calls)
		if gone {
			o.release(b.bytes)
		}
		return gone
	})
}

// withdraw replaces a batch that nobody waits for any more, and whose sending
// may still be on its way, by an entry of the same id that does nothing.
func (o *outbox) withdraw(b *batch) {
	if b.withdrawn || !allEnded(b.calls) {
		return
	}
	b.withdrawn = true
	o.release(b.bytes)
	b.bytes, b.conf = 0, nil
	b.entry = encodeBatch(o.id(b), o.floor(), nil)
}

// tidy lets go of what nobody waits for any more, after calls have ended.
func (o *outbox) tidy() {
	o.forgetEnded()
	for _, b := range o.batches {
		o.withdraw(b)
	}
}

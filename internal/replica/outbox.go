// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package replica

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"google.golang.org/protobuf/proto"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/internal/wire"
	"github.com/weftraft/weft/raft"
)

// The outbox takes a command from the user's call to the log.
//
// Commands wait in a queue; at the end of a turn everything that waits becomes
// one batch, up to a byte limit, and a batch is one entry. It is proposed here
// if this node leads, and else sent to the leader with the term in which that
// node is believed to lead. The leader appends it in that term or refuses it, so
// a batch that was sent for term T stands in the log with term T, or nowhere.
//
// From this follows what became of a batch without asking anybody. Entries are
// handed to the apply stage in the order of the log, and their terms never fall.
// As soon as this node hands out an entry of a term later than T, and has not
// met the batch, it never will: the sending is closed, and the batch may be sent
// again. While a sending is open, the batch's calls cannot be refused.
//
// Sending a batch again while an earlier sending is open is harmless, as the
// table of origins lets only the first one through.
type outbox struct {
	boot     uint64
	newest   uint64       // a leader has heard of this boot, if it is not 0
	sendings uint64       // so far, in this boot
	next     uint64       // sequence of the next batch
	queue    []queuedCall // not in a batch yet
	batches  []*batch     // by sequence; their fate is open
	queued   int          // bytes of commands in queue and batches
	// unbatched is the bytes in queue, and waitsSince the tick at which it was
	// last empty.
	unbatched  int
	waitsSince uint64
	// typical is about how long a batch is under way, from its making until it is
	// handed to the apply stage.
	typical time.Duration
	budget  *Budget // has the queued bytes, too; may be nil
	// Settings, which are at most math.MaxInt32: an idle group is small.
	maxBatch    int32  // bytes
	maxCommands int32  // of a batch
	window      int32  // batches
	eager       int32  // batches allowed to leave before they are full
	lastTerm    uint64 // of the last entry handed to the apply stage
}

// queuedCall is a command with its call.
type queuedCall struct {
	*pendingCall
	command []byte
}

// batch is an entry on its way.
type batch struct {
	seq   uint64
	since time.Duration // when it was made
	calls []*pendingCall
	bytes int              // of the commands
	entry []byte           // encoded; of a configuration change, its encoding
	conf  *pb.ConfChangeV2 // or nil
	force bool             // conf is to be made even if the leader finds it unsafe

	sends     int    // open sendings
	number    uint64 // of the last sending
	term      uint64 // the latest that a sending was for
	sentAt    uint64 // tick of the last sending
	notBefore uint64 // tick before which the batch is not sent again
	withdrawn bool   // the batch is an entry without effect
	accepted  bool   // the last sending is in the leader's log, at index
	index     uint64
}

func newOutbox(cfg Config, boot uint64) outbox {
	return outbox{boot: boot, next: 1, maxBatch: int32(cfg.MaxBatchBytes), maxCommands: maxBatchCommands,
		window: int32(cfg.MaxBatches), eager: int32(cfg.EagerBatches), budget: cfg.Budget}
}

// floor returns the least sequence whose fate is open.
func (o *outbox) floor() uint64 {
	if len(o.batches) > 0 {
		return o.batches[0].seq
	}
	return o.next
}

// release gives back bytes of commands that wait no more.
func (o *outbox) release(bytes int) {
	o.queued -= bytes
	o.budget.give(bytes)
}

// What calls wait for, in words.
const (
	waitLeader   = "a leader to accept the command"
	waitAnswer   = "the leader's answer"
	waitMajority = "a majority to store the command, which the leader has appended"
	waitCovered  = "the leader to append the change, once coded entries are safe under it"
	waitApply    = "the state machine to apply the command"
)

// Propose takes a command from a user. It ends with the state machine's result.
// The command must not be changed any more.
func (r *requests) Propose(call Call, command []byte, deadline Deadline) {
	const op = "propose"
	r.count.Proposals++
	err := r.admits(deadline)
	switch {
	case len(command) > r.cfg.MaxCommandBytes:
		err = fmt.Errorf("%w: %d bytes, the bound is %d; split it", ErrTooLarge, len(command), r.cfg.MaxCommandBytes)
	case r.outbox.queued+len(command) > r.cfg.MaxQueueBytes:
		err = fmt.Errorf("%w: %d bytes of commands, the bound is %d; try again later", ErrOverloaded, r.outbox.queued, r.cfg.MaxQueueBytes)
	default:
		err = cmp.Or(r.around.unable(), err)
	}
	if err == nil {
		err = r.outbox.budget.take(len(command))
	}
	if err != nil {
		r.refuseNow(call, op, err)
		return
	}
	c := r.begin(call, op, deadline, waitLeader)
	o := &r.outbox
	if len(o.queue) == 0 {
		o.waitsSince = r.ticks
	}
	o.queue = append(o.queue, queuedCall{c, command})
	o.queued += len(command)
	o.unbatched += len(command)
}

// ProposeConfChange takes a change of the member set from a user. It ends with
// the new configuration. The context of cc is kept.
//
// The leader makes no change after which the group may not go on
// ([ErrUnsafeChange]), nor one about a node that is no member ([ErrNotMember]). See
// [Host.ProposeConfChange].
func (r *requests) ProposeConfChange(call Call, cc *pb.ConfChangeV2, deadline Deadline) {
	r.proposeConfChange(call, cc, deadline, false)
}

// ForceConfChange is ProposeConfChange without the question whether the group
// will go on.
func (r *requests) ForceConfChange(call Call, cc *pb.ConfChangeV2, deadline Deadline) {
	r.proposeConfChange(call, cc, deadline, true)
}

func (r *requests) proposeConfChange(call Call, cc *pb.ConfChangeV2, deadline Deadline, force bool) {
	const op = "propose configuration change"
	err := cmp.Or(r.around.unable(), r.admits(deadline))
	if bad := readable(cc); bad != nil {
		err = fmt.Errorf("%w: %w", ErrConfChange, bad)
	}
	if err != nil {
		r.refuseNow(call, op, err)
		return
	}
	o := &r.outbox
	b := &batch{seq: o.next, force: force, conf: proto.Clone(cc).(*pb.ConfChangeV2)}
	o.next++
	o.batches = append(o.batches, b)
	b.conf.Context = encodeConfContext(r.id(b), o.floor(), cc.GetContext())
	if b.entry, err = proto.Marshal(b.conf); err != nil {
		b.entry = nil
	}
	b.calls = append(b.calls, r.begin(call, op, deadline, "the leader to accept the change"))
}

func (r *requests) id(b *batch) wire.CommandID {
	return wire.CommandID{Origin: r.cfg.ID, Boot: r.outbox.boot, Sequence: b.seq}
}

// sendBatches closes batches and sends those that are due.
func (r *requests) sendBatches() {
	if lead, _ := r.around.leader(); lead == raft.None {
		return
	}
	// Under the present boot nothing may be in a log: it would be applied, too.
	if o := &r.outbox; o.newest > o.boot && !slices.ContainsFunc(o.batches, func(b *batch) bool { return b.sends > 0 }) {
		r.bootTaken(o.newest)
	}
	for r.outbox.closes(r.ticks) {
		r.closeBatch()
	}
	for i := 0; i < len(r.outbox.batches); {
		b := r.outbox.batches[i]
		if r.due(b) && !r.sendBatch(b) {
			return // the core takes nothing now, so nothing behind it either
		}
		if i < len(r.outbox.batches) && r.outbox.batches[i] == b { // else it has ended
			i++
		}
	}
}

// closes reports whether the waiting commands are to become a batch now. While few batches
// are under way, nothing waits. With more, the next batch leaves when full, when another
// batch ends, or after a tick: each entry costs every member about the same, with few
// commands or with many, and a busy log makes the entry wait anyway.
func (o *outbox) closes(ticks uint64) bool {
	n := int32(len(o.batches))
	return len(o.queue) > 0 && n < o.window && (n < o.eager || o.unbatched >= int(o.maxBatch) || ticks > o.waitsSince)
}

// closeBatch makes a batch of the commands that wait, up to the limit.
func (r *requests) closeBatch() {
	o := &r.outbox
	b := &batch{seq: o.next, since: r.now}
	var commands [][]byte
	n := 0
	for _, q := range o.queue {
		if len(commands) > 0 && b.bytes+len(q.command) > int(o.maxBatch) || len(commands) == int(o.maxCommands) {
			break
		}
		n++
		o.unbatched -= len(q.command)
		r.refuseLate(q.pendingCall)
		if q.ended {
			o.release(len(q.command))
			continue
		}
		b.bytes += len(q.command)
		commands = append(commands, q.command)
		b.calls = append(b.calls, q.pendingCall)
	}
	o.queue = slices.Delete(o.queue, 0, n)
	o.waitsSince = r.ticks
	if len(commands) == 0 {
		return
	}
	o.next++
	o.batches = append(o.batches, b)
	b.entry = encodeBatch(r.id(b), o.floor(), commands)
	r.count.Batches++
}

// refuseLate refuses a command whose deadline is likely to pass before the command is
// applied, while others are under way. Under overload all commands wait that long: to send
// all of them would be wasted work.
func (r *requests) refuseLate(c *pendingCall) {
	if left := c.deadline - r.now; !c.ended && len(r.outbox.batches) > 0 && left < r.outbox.typical {
		r.count.RefusedLate++
		r.finishWith(c, fmt.Errorf("%w: %v are left until the deadline, and a command takes about %v; try again later", ErrOverloaded, left, r.outbox.typical))
	}
}

// took notes how long a batch was under way.
func (o *outbox) took(d time.Duration) { o.typical += (d - o.typical) / 8 }

// due reports whether a batch is to be sent now.
func (r *requests) due(b *batch) bool {
	switch {
	case r.ticks < b.notBefore:
		return false
	case b.sends == 0:
		return !allEnded(b.calls)
	case b.accepted:
		return false // its fate comes with the log
	}
	if _, term := r.around.leader(); b.term != term {
		return false // likewise
	}
	// No word from the leader in its own term: the frame or its answer is lost.
	return r.ticks-b.sentAt >= uint64(r.cfg.ElectionTick)
}

// sendBatch proposes a batch here or sends the batch to the leader, and returns false if
// the core dropped the batch.
func (r *requests) sendBatch(b *batch) bool {
	if b.sends > 0 {
		r.count.Resent++
	} else {
		r.leaveOutEnded(b)
	}
	r.outbox.sendings++
	b.number, b.sentAt = r.outbox.sendings, r.ticks
	lead, term := r.around.leader()
	p := wire.Proposal{ID: r.id(b), Number: b.number, Term: term, ConfChange: b.conf != nil, Force: b.force, Data: b.entry}
	if !r.leads() {
		r.opened(b, p.Term, waitAnswer)
		r.count.ForwardedOut++
		r.around.post(lead, p)
		return true
	}
	v := r.around.appendProposal(p)
	switch v.Outcome {
	case 0:
		r.opened(b, p.Term, waitCovered)
	case wire.Accepted:
		r.opened(b, v.Term, waitMajority)
		b.accepted, b.index = true, v.Index
	case wire.Malformed, wire.NoMember, wire.Unsafe:
		r.endBatch(b, malformed(b, v))
	default:
		b.notBefore = r.ticks + 1
		return false
	}
	return true
}

// leaveOutEnded takes commands out of a batch that is in no log: their calls
// have been refused, and must not have an effect after that.
func (r *requests) leaveOutEnded(b *batch) {
	if b.conf != nil || !slices.ContainsFunc(b.calls, func(c *pendingCall) bool { return c.ended }) {
		return
	}
	env, err := decodeEnvelope(b.entry)
	if err != nil || len(env.commands) != len(b.calls) {
		return
	}
	var commands [][]byte
	for i, c := range b.calls {
		if c.ended {
			b.bytes -= len(env.commands[i])
			r.outbox.release(len(env.commands[i]))
		} else {
			commands = append(commands, env.commands[i])
		}
	}
	b.calls = live(b.calls)
	b.entry = encodeBatch(r.id(b), r.outbox.floor(), commands)
}

// withdraw replaces a batch that nobody waits for any more, and whose sending
// may still be on its way, by an entry of the same id that does nothing.
func (r *requests) withdraw(b *batch) {
	if b.withdrawn || !allEnded(b.calls) {
		return
	}
	b.withdrawn = true
	r.outbox.release(b.bytes)
	b.bytes, b.conf = 0, nil
	b.entry = encodeBatch(r.id(b), r.outbox.floor(), nil)
}

// opened notes a sending of a batch.
func (r *requests) opened(b *batch, term uint64, waiting string) {
	b.sends++
	b.term = term
	b.accepted = false
	for _, c := range b.calls {
		c.open, c.waiting = true, waiting
		if c.sent == 0 {
			c.sent = r.now
		}
	}
}

// leaderChanged lets batches refused by the old leader go to the new leader at once.
func (o *outbox) leaderChanged() {
	for _, b := range o.batches {
		b.notBefore = 0
	}
}

// closed notes that no sending of a batch is, or will be, in the log.
func (b *batch) closed() {
	b.sends, b.accepted = 0, false
	for _, c := range b.calls {
		c.open, c.waiting = false, waitLeader
	}
}

// receiveVerdict takes a leader's answer.
func (r *requests) receiveVerdict(v wire.Verdict) {
	b := r.outbox.find(v.ID.Sequence)
	if b == nil || v.ID != r.id(b) || v.Number != b.number || b.accepted || b.sends == 0 {
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
	b.notBefore = r.ticks + 1
	if v.Outcome == wire.Busy && v.Index < maxBoot {
		r.outbox.newest = max(r.outbox.newest, v.Index)
	}
	if b.sends > 1 {
		return // an earlier sending may still arrive
	}
	b.closed()
	if v.Outcome >= wire.Malformed {
		r.endBatch(b, malformed(b, v))
	}
}

// malformed is the cause for a batch that the leader does not take.
func malformed(b *batch, v wire.Verdict) error {
	switch {
	case b.conf == nil:
		return fmt.Errorf("the leader cannot read the entry, is it of another version? it says: %s", v.Reason)
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
func (r *requests) endBatch(b *batch, cause error) {
	for _, c := range b.calls {
		r.finishWith(c, cause)
	}
	r.outbox.remove(b)
}

func (o *outbox) remove(b *batch) {
	o.release(b.bytes)
	if i := slices.Index(o.batches, b); i >= 0 {
		o.batches = slices.Delete(o.batches, i, i+1)
	}
}

// passed looks at an entry handed to the apply stage, for news of batches whose fate is
// open. The caller has already taken out the entry's own batch.
func (r *requests) passed(at logMark) {
	o := &r.outbox
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
		b.accepted, b.sentAt = false, r.ticks
		if b.sends == 1 {
			b.closed()
			r.endBatch(b, fmt.Errorf("%w: another change may be under way; the leader has put an empty entry in its place", ErrConfChange))
		}
	}
}

// maxBoot bounds what is believed of a boot: clocks are far below.
const maxBoot = 1 << 63

// bootTaken corrects a boot number that turned out not to be the newest of this
// node. Entries of the old number are never applied, so everything begins anew.
func (r *requests) bootTaken(newest uint64) {
	o := &r.outbox
	if newest <= o.boot {
		return
	}
	o.boot, o.next, o.sendings = newest+1, 1, 0
	for _, b := range o.batches {
		b.closed()
		b.seq = o.next
		o.next++
	}
	for _, b := range o.batches {
		r.reencode(b)
	}
}

// reencode gives a batch's entry the batch's present id.
func (r *requests) reencode(b *batch) {
	if b.conf != nil {
		if env, ok := decodeConfContext(b.conf.GetContext()); ok {
			b.conf.Context = encodeConfContext(r.id(b), r.outbox.floor(), env.commands[0])
		}
		if entry, err := proto.Marshal(b.conf); err == nil {
			b.entry = entry
		}
		return
	}
	if env, err := decodeEnvelope(b.entry); err == nil {
		b.entry = encodeBatch(r.id(b), r.outbox.floor(), env.commands)
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

func allEnded(calls []*pendingCall) bool {
	return !slices.ContainsFunc(calls, func(c *pendingCall) bool { return !c.ended })
}

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

// The outbox takes a command from the user's call to the log, for a [Replica] and for a [Gateway].
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
//
// A command is in one of these states:
//
//  1. queued: in queue, in no batch;
//  2. batched: in a batch of which no sending is open, so that the batch is in no log;
//  3. sent: in a batch with open sendings, for term at the latest;
//  4. accepted: sent, and the leader of term says that it has the batch at index;
//  5. ended: handed to the apply stage (takeOwn), or given up. The batch has left the outbox.
//
// A batch goes from 3 and 4 back to 2 when its sendings are closed (closed).
//
// Invariant: a call of a batch that has not ended is open if, and only if, a sending of the batch is open.
// Invariant: accepted implies that a sending is open.
// Invariant: withdrawn implies that all calls of the batch have ended, and that it has no bytes and no change of
// members.
// Invariant: queued is the bytes in queue and in batches, which the budget has, too; unbatched is the bytes in queue.
// Invariant: the batches ascend, and next follows the last one.
type outbox struct {
	*calls
	around aroundOutbox

	boot      uint64
	newest    uint64        // a leader has heard of this boot, if it is not 0
	sendings  uint64        // so far, in this boot
	next      uint64        // sequence of the next batch
	queue     []queuedCall  // not in a batch yet
	batches   []*batch      // by sequence; their fate is open
	queued    int           // bytes of commands
	unbatched int           // bytes in queue
	closedAt  time.Duration // when the last batch was made
	// typical is about how long a batch is under way, from its making until it is
	// handed to the apply stage.
	typical     time.Duration
	maxCommands int // of a batch: fewer at a gateway
	// gathers is set at a gateway. There expected is about how many calls wait soon, since a batch ended at endedAt, until
	// gathersUntil.
	gathers  bool
	expected int
	endedAt  time.Duration
	lastTerm uint64 // of the last entry handed to the apply stage
}

// aroundOutbox is what the outbox needs of what is around it.
type aroundOutbox interface {
	// leader returns the leader known here, or 0, and the term in which it leads.
	leader() (id, term uint64)
	// appendProposal takes a proposal of this node's own, if this node leads.
	appendProposal(wire.Proposal) wire.Verdict
	post(to uint64, body wire.Body)
	// unable returns why no command can be taken now, or nil.
	unable() error
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

// newOutbox returns an outbox. newest is the newest boot of this node that is known, or 0.
func newOutbox(c *calls, around aroundOutbox, newest uint64) outbox {
	o := outbox{calls: c, around: around, boot: c.cfg.Boot, next: 1, maxCommands: maxBatchCommands}
	o.raiseBoot(newest)
	return o
}

// bootSpread bounds by how much a raised boot exceeds the newer one, in nanoseconds of a clock: a clock that is right again
// soon tells more.
const bootSpread = 1 << 30

// raiseBoot raises the boot above a newer one, as after a start with a clock that was set back. Two such starts may know the same
// newest boot, if the batches of the first were not applied when the second began, and would take each other's batches for
// their own: so each adds the fraction of a second that its clock told.
func (o *outbox) raiseBoot(newest uint64) {
	if newest >= o.boot {
		o.boot = newest + 1 + o.cfg.Boot%bootSpread
	}
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
	o.cfg.Budget.give(bytes)
}

// What calls wait for, in words.
const (
	waitLeader   = "a leader to accept the command"
	waitAnswer   = "the leader's answer"
	waitMajority = "a majority to store the command, which the leader has appended"
	waitCovered  = "the leader to append the change, once coded entries are safe under it"
	waitApply    = "the state machine to apply the command"
)

// propose takes a command from a user. The command must not be changed any more.
func (o *outbox) propose(call Call, command []byte, deadline Deadline) {
	const op = "propose"
	o.count.Proposals++
	err := o.admits(deadline)
	switch {
	case len(command) > o.cfg.MaxCommandBytes:
		err = fmt.Errorf("%w: %d bytes, the bound is %d; split it", ErrTooLarge, len(command), o.cfg.MaxCommandBytes)
	case o.queued+len(command) > o.cfg.MaxQueueBytes:
		err = fmt.Errorf("%w: %d bytes of commands, the bound is %d; try again later", ErrOverloaded, o.queued, o.cfg.MaxQueueBytes)
	default:
		err = cmp.Or(o.around.unable(), err)
	}
	if err == nil {
		err = o.cfg.Budget.take(len(command))
	}
	if err != nil {
		o.refuseNow(call, op, err)
		return
	}
	c := o.begin(call, op, deadline, waitLeader)
	o.queue = append(o.queue, queuedCall{c, command})
	o.queued += len(command)
	o.unbatched += len(command)
}

// proposeConfChange takes a change of the member set from a user. Unless force is set, the leader asks whether the group
// will go on behind the change.
func (o *outbox) proposeConfChange(call Call, cc *pb.ConfChangeV2, deadline Deadline, force bool) {
	const op = "propose configuration change"
	err := cmp.Or(o.around.unable(), o.admits(deadline))
	if bad := readable(cc); bad != nil {
		err = fmt.Errorf("%w: %w", ErrConfChange, bad)
	} else if n := proto.Size(cc); n > o.cfg.MaxCommandBytes { // what fits no message to the followers must not get into a log
		err = fmt.Errorf("%w: a change of %d bytes, the bound is %d; make its context shorter", ErrTooLarge, n, o.cfg.MaxCommandBytes)
	}
	if err != nil {
		o.refuseNow(call, op, err)
		return
	}
	b := &batch{seq: o.next, force: force, conf: proto.Clone(cc).(*pb.ConfChangeV2)}
	o.next++
	o.batches = append(o.batches, b)
	b.conf.Context = encodeConfContext(o.id(b), o.floor(), cc.GetContext())
	if b.entry, err = proto.Marshal(b.conf); err != nil {
		b.entry = nil
	}
	b.calls = append(b.calls, o.begin(call, op, deadline, "the leader to accept the change"))
}

func (o *outbox) id(b *batch) wire.CommandID {
	return wire.CommandID{Origin: o.cfg.ID, Boot: o.boot, Sequence: b.seq}
}

// sendBatches makes batches of the commands that wait, and sends the batches that are due.
func (o *outbox) sendBatches() {
	if lead, _ := o.around.leader(); lead == raft.None {
		return
	}
	// Under the present boot nothing may be in a log: it would be applied, too.
	if o.newest > o.boot && !slices.ContainsFunc(o.batches, func(b *batch) bool { return b.sends > 0 }) {
		o.bootTaken(o.newest)
	}
	for o.closes() {
		o.closeBatch()
	}
	for i := 0; i < len(o.batches); {
		b := o.batches[i]
		if o.due(b) && !o.sendBatch(b) {
			return // the core takes nothing now, so nothing behind it either
		}
		if i < len(o.batches) && o.batches[i] == b { // else it has ended
			i++
		}
	}
}

// closes reports whether the waiting commands are to become a batch now.
func (o *outbox) closes() bool {
	at, due := o.closesAt()
	return due && at <= o.now
}

// closesAt returns when the waiting commands are to become a batch, if nothing else happens; false if not by time. While
// few batches are under way, nothing waits. With more, the next batch leaves when full, when another
// batch ends, or a moment after the last one: each entry costs every member about the same, with few
// commands or with many, and a busy log makes the entry wait anyway. Where members are far from each
// other a batch is under way for long, and costs nobody anything meanwhile.
//
// At a gateway with many calls, the next batch waits, when another one ends, for the clients of that one, which are
// likely to call again at once: the first of them would otherwise leave alone, and the others behind it. When largeCrowd of
// them have left, the rest waits likewise.
func (o *outbox) closesAt() (time.Duration, bool) {
	n := len(o.batches)
	switch {
	case len(o.queue) == 0 || n >= o.cfg.MaxBatches:
		return 0, false
	case o.unbatched >= o.cfg.MaxBatchBytes:
		return 0, true
	case n >= o.cfg.EagerBatches:
		return o.closedAt + o.moment(), true
	case len(o.queue) < min(o.expected, largeCrowd) && o.expected > crowd:
		return o.gathersUntil(), true
	}
	return 0, true
}

// gathersUntil returns when the clients of a batch that has ended are not expected any more.
func (o *outbox) gathersUntil() time.Duration { return o.endedAt + min(o.typical/2, gatewayWait/2) }

// So many calls leave a gateway without waiting for others: few, whose clients would notice, and so many that the cost of an
// entry is small for each.
const crowd, largeCrowd = 8, 64

// closeBatch makes a batch of the commands that wait, up to the limit.
func (o *outbox) closeBatch() {
	b := &batch{seq: o.next, since: o.now}
	var commands [][]byte
	n := 0
	for _, q := range o.queue {
		if len(commands) > 0 && b.bytes+len(q.command) > o.cfg.MaxBatchBytes || len(commands) == o.maxCommands {
			break
		}
		n++
		o.unbatched -= len(q.command)
		o.refuseLate(q.pendingCall)
		if q.ended {
			o.release(len(q.command))
			continue
		}
		b.bytes += len(q.command)
		commands = append(commands, q.command)
		b.calls = append(b.calls, q.pendingCall)
	}
	o.queue = slices.Delete(o.queue, 0, n)
	o.closedAt, o.expected = o.now, max(0, o.expected-n)
	if len(commands) == 0 {
		return
	}
	o.next++
	o.batches = append(o.batches, b)
	b.entry = encodeBatch(o.id(b), o.floor(), commands)
	o.count.Batches++
}

// refuseLate refuses a command whose deadline is likely to pass before the command is
// applied, while others are under way. Under overload all commands wait that long: to send
// all of them would be wasted work.
func (o *outbox) refuseLate(c *pendingCall) {
	if left := c.deadline - o.now; !c.ended && len(o.batches) > 0 && left < o.typical {
		o.count.RefusedLate++
		o.finishWith(c, fmt.Errorf("%w: %v are left until the deadline, and a command takes about %v; try again later", ErrOverloaded, left, o.typical))
	}
}

// took notes how long a batch was under way.
func (o *outbox) took(d time.Duration) { o.typical += (d - o.typical) / 8 }

// due reports whether a batch is to be sent now.
func (o *outbox) due(b *batch) bool {
	switch {
	case o.ticks < b.notBefore:
		return false
	case b.sends == 0:
		return !allEnded(b.calls)
	case b.accepted:
		return false // its fate comes with the log
	}
	if _, term := o.around.leader(); b.term != term {
		return false // likewise
	}
	// No word from the leader in its own term: the frame or its answer is lost.
	return o.ticks-b.sentAt >= uint64(o.cfg.ElectionTick)
}

// sendBatch proposes a batch here or sends the batch to the leader, and returns false if
// the core dropped the batch.
func (o *outbox) sendBatch(b *batch) bool {
	if b.sends > 0 {
		o.count.Resent++
	} else {
		o.leaveOutEnded(b)
	}
	o.sendings++
	b.number, b.sentAt = o.sendings, o.ticks
	lead, term := o.around.leader()
	p := wire.Proposal{ID: o.id(b), Number: b.number, Term: term, ConfChange: b.conf != nil, Force: b.force, Data: b.entry}
	if !o.leads() {
		o.opened(b, p.Term, waitAnswer)
		o.count.ForwardedOut++
		o.around.post(lead, p)
		return true
	}
	v := o.around.appendProposal(p)
	switch v.Outcome {
	case 0:
		o.opened(b, p.Term, waitCovered)
	case wire.Accepted:
		o.opened(b, v.Term, waitMajority)
		b.accepted, b.index = true, v.Index
	case wire.Malformed, wire.NoMember, wire.Unsafe:
		o.endBatch(b, malformed(b, v))
	default:
		b.notBefore = o.ticks + 1
		return false
	}
	return true
}

// leaveOutEnded takes commands out of a batch that is in no log: their calls
// have been refused, and must not have an effect after that.
func (o *outbox) leaveOutEnded(b *batch) {
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
			o.release(len(env.commands[i]))
		} else {
			commands = append(commands, env.commands[i])
		}
	}
	b.calls = live(b.calls)
	b.entry = encodeBatch(o.id(b), o.floor(), commands)
}

// opened notes a sending of a batch.
func (o *outbox) opened(b *batch, term uint64, waiting string) {
	b.sends++
	b.term = term
	b.accepted = false
	for _, c := range b.calls {
		c.open, c.waiting = true, waiting
		if c.sent == 0 {
			c.sent = o.now
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

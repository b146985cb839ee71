// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package rawnode

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/weftraft/weft/internal/replica"
	"github.com/weftraft/weft/internal/wire"
)

// input is an input of the replica; exactly one field is set.
type input struct {
	msg     wire.Message
	call    *hostCall
	cancel  *hostCall       // whose context has ended, by its cause
	append  *replica.Append // an append that is durable
	applied *appliedStep    // a step that is done
	do      func(*replica.Replica)
}

// appliedStep is a step of the state machine with its results.
type appliedStep struct {
	step    *replica.Apply
	results []any
}

// inboxLimits are the bounds of an inbox.
type inboxLimits struct {
	messages  int // bytes of each class
	calls     int
	callBytes int
	budget    *Budget // of callBytes, over groups; may be nil
}

// inbox is the queue of inputs in front of the replica.
type inbox struct {
	ready  chan struct{} // has a token if the loop has to look at items
	limits inboxLimits

	mu        sync.Mutex
	room      sync.Cond // a class has gone below its limit, or closed is set
	items     []input
	lost      []uint64      // peers of which items say that they were unreachable
	oldest    time.Time     // when the first of items arrived
	waited    time.Duration // how long the oldest input of the last turn had waited
	stats     StageStats
	bytes     [wire.NumClasses]int
	calls     int // in items
	callBytes int // of their commands
	refused   uint64
	dropped   uint64
	closed    bool
}

func newInbox(limits inboxLimits) *inbox {
	b := &inbox{ready: make(chan struct{}, 1), limits: limits}
	b.room.L = &b.mu
	return b
}

// add queues an input. The caller then wakes the loop or takes a turn.
func (b *inbox) add(in input) {
	b.items = append(b.items, in)
	if len(b.items) == 1 {
		b.oldest = time.Now()
	}
}

// wake makes the loop look at the inputs, if any wait.
func (b *inbox) wake() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.wakeLocked()
}

func (b *inbox) wakeLocked() {
	if len(b.items) == 0 {
		return
	}
	select {
	case b.ready <- struct{}{}:
	default:
	}
}

// post queues a function and wakes the loop, and never waits: the work of this node bounds the number of
// posts, and a peer's message is none. post returns false if the function will not be called.
func (b *inbox) post(do func(*replica.Replica)) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.closed {
		b.add(input{do: do})
		b.wakeLocked()
	}
	return !b.closed
}

// unreachable queues that messages to a peer were lost, once between two turns: connections break again and again while a turn
// hangs. What was sent before a turn is sent again by the first of these words in it.
func (b *inbox) unreachable(peer uint64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed || slices.Contains(b.lost, peer) {
		return
	}
	b.lost = append(b.lost, peer)
	b.add(input{do: func(r *replica.Replica) { r.Unreachable(peer) }})
	b.wakeLocked()
}

// done queues a finished piece of work of a stage.
func (b *inbox) done(in input) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.closed {
		b.add(in)
	}
}

// call queues a call of a user, or returns the reason for the refusal.
func (b *inbox) call(c *hostCall) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := len(c.command)
	var err error
	switch {
	case b.closed:
		return ErrStopped
	case b.calls >= b.limits.calls:
		err = fmt.Errorf("%w: %d calls have just come in, the bound is %d; try again later", ErrOverloaded, b.calls, b.limits.calls)
	case n > 0 && b.callBytes > 0 && b.callBytes+n > b.limits.callBytes:
		err = fmt.Errorf("%w: %d bytes of commands have just come in, the bound is %d; try again later", ErrOverloaded, b.callBytes, b.limits.callBytes)
	default:
		err = replica.Reserve(b.limits.budget, n)
	}
	if err != nil {
		b.refused++
		return err
	}
	b.calls++
	b.callBytes += n
	b.add(input{call: c})
	return nil
}

// cancel queues the end of a call's context. A nil cause stands for a deadline that has passed.
func (b *inbox) cancel(c *hostCall, cause error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if c.cause = cause; !b.closed {
		b.add(input{cancel: c})
		b.wakeLocked()
	}
}

// withdraw takes back a call that no turn has taken, and the end of its context, and reports whether it did. While a turn hangs,
// callers come again and again, and the end of a context would keep the command.
func (b *inbox) withdraw(c *hostCall) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !slices.ContainsFunc(b.items, func(in input) bool { return in.call == c }) {
		return false
	}
	b.items = slices.DeleteFunc(b.items, func(in input) bool { return in.call == c || in.cancel == c })
	b.calls--
	b.callBytes -= len(c.command)
	replica.Release(b.limits.budget, len(c.command))
	return true
}

// receive queues a message. Without room, receive drops a control message, and waits with a message
// of another class, so that the connection is read no more, and the peer's queue fills.
//
// The wait has no bound of its own. Room comes with the next turn, and a turn hangs only in a read of the
// log: the groups of a connection share the log's disk, so that their turns hang as well, also the turn that
// the connection's own goroutine takes. Control messages travel on a connection of their own.
func (b *inbox) receive(m wire.Message) {
	class, size := m.Class(), replica.MemoryOf(m)
	b.mu.Lock()
	defer b.mu.Unlock()
	for b.bytes[class] >= b.limits.messages && !b.closed {
		if class == wire.ClassControl {
			b.dropped++
			return
		}
		b.wakeLocked()
		b.room.Wait()
	}
	if b.closed {
		return
	}
	b.bytes[class] += size
	b.add(input{msg: m})
}

// keepInputs bounds the memory that an inbox keeps between turns, in inputs.
const keepInputs = 4 << 10

// take returns all waiting inputs. spare is memory for the next inputs.
func (b *inbox) take(spare []input, now time.Time) []input {
	clear(spare)
	if cap(spare) > keepInputs {
		spare = nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	items := b.items
	if len(items) == 0 {
		return spare[:0]
	}
	select {
	case <-b.ready: // otherwise the loop would wake for nothing
	default:
	}
	b.stats.Items += uint64(len(items))
	b.stats.Bytes += uint64(b.waiting())
	b.waited = now.Sub(b.oldest)
	b.stats.Queued += b.waited
	b.items, b.lost = spare[:0], b.lost[:0]
	full := false
	for class, bytes := range b.bytes {
		full = full || bytes >= b.limits.messages
		b.bytes[class] = 0
	}
	replica.Release(b.limits.budget, b.callBytes)
	b.calls, b.callBytes = 0, 0
	if full {
		b.room.Broadcast()
	}
	return items
}

// waiting returns the bytes of all waiting inputs.
func (b *inbox) waiting() (n int) {
	for _, bytes := range b.bytes {
		n += bytes
	}
	return n + b.callBytes
}

// worked notes how long a turn took, and returns how long its oldest input had waited.
func (b *inbox) worked(d time.Duration) (waited time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.stats.Busy += d
	return b.waited
}

func (b *inbox) statistics() (st StageStats, dropped uint64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	st = b.stats
	st.Length, st.Waiting, st.Refused = len(b.items), b.waiting(), b.refused
	return st, b.dropped
}

// close releases all waiting goroutines, and returns the inputs that were not taken.
func (b *inbox) close() []input {
	b.mu.Lock()
	defer b.mu.Unlock()
	items := b.items
	b.closed, b.items = true, nil
	replica.Release(b.limits.budget, b.callBytes)
	b.calls, b.callBytes = 0, 0
	b.room.Broadcast()
	return items
}

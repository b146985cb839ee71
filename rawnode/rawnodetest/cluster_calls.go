// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package rawnodetest

import (
	"errors"
	"fmt"
	"time"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/internal/replica"
	"github.com/weftraft/weft/rawnode"
)

// callTime is the deadline of calls, the same as the default of a Host.
const callTime = 10 * time.Second

// A Call is a call of a user under way.
type Call struct {
	c     *Cluster
	what  string
	begun time.Duration
	took  time.Duration
	ended bool
	value any
	index uint64
	err   error
}

// Ended reports whether the call has ended.
func (k *Call) Ended() bool { return k.ended }

// Err returns the error of a call that has ended, a [rawnode.CallError], or nil. If the node went
// down during the call, the error wraps [rawnode.ErrUnknown].
func (k *Call) Err() error { return k.err }

// Value returns the result of a successful call: the result of the state machine, or the new
// configuration.
func (k *Call) Value() any { return k.value }

// Index returns the log index of the command, or the index up to which a read waited.
func (k *Call) Index() uint64 { return k.index }

// Took returns the duration of the call.
func (k *Call) Took() time.Duration { return k.took }

// Wait lets time pass until the call has ended, at its deadline at the latest, and returns its
// result.
func (k *Call) Wait() (any, error) {
	k.c.t.Helper()
	k.c.Until(2*callTime, "the end of "+k.what, func() bool { return k.ended })
	return k.value, k.err
}

// finish ends the call.
func (k *Call) finish(value any, index uint64, err error) {
	if k.ended {
		k.c.fail("%s ends twice", k.what)
		return
	}
	k.ended, k.value, k.index, k.err, k.took = true, value, index, err, k.c.Now()-k.begun
}

// call begins a call at a node. At a node that is down, the call is refused.
func (c *Cluster) call(node uint64, op string, do func(*replica.Replica, replica.Call, replica.Deadline)) *Call {
	c.t.Helper()
	n := c.node(node)
	k := &Call{c: c, begun: c.Now(), what: fmt.Sprintf("%s at node %d", op, node)}
	if !n.up {
		k.finish(nil, 0, &rawnode.CallError{Op: op, Verdict: rawnode.ErrRefused, Cause: rawnode.ErrStopped})
		return k
	}
	c.calls++
	id := replica.Call(c.calls)
	n.calls[id] = k
	by := c.Now() + callTime
	n.post(func(r *replica.Replica) { do(r, id, by) })
	n.after(callTime+5*c.opts.TickInterval, func() {
		if !k.ended {
			c.fail("%s, of %v, has not ended %v later: a call outlives its deadline", k.what, k.begun, c.Now()-k.begun)
		}
	})
	return k
}

// Propose begins to replicate a command, at any node. The command must not be changed.
func (c *Cluster) Propose(node uint64, command []byte) *Call {
	c.t.Helper()
	return c.call(node, "Propose", func(r *replica.Replica, id replica.Call, by replica.Deadline) { r.Propose(id, command, by) })
}

// Read begins a linearizable read: when the read has succeeded, the node's state machine has
// applied every command acknowledged before the read.
func (c *Cluster) Read(node uint64) *Call {
	c.t.Helper()
	return c.call(node, "Read", func(r *replica.Replica, id replica.Call, by replica.Deadline) {
		r.ReadWith(id, replica.ReadOptions{}, by)
	})
}

// ProposeConfChange begins a change of the member set; its value is a *raftpb.ConfState.
func (c *Cluster) ProposeConfChange(node uint64, cc pb.ConfChangeI) *Call {
	c.t.Helper()
	return c.call(node, "ProposeConfChange", func(r *replica.Replica, id replica.Call, by replica.Deadline) {
		r.ProposeConfChange(id, cc.AsV2(), by)
	})
}

// TransferLeader begins to make a voter the leader.
func (c *Cluster) TransferLeader(node, to uint64) *Call {
	c.t.Helper()
	return c.call(node, "TransferLeader", func(r *replica.Replica, id replica.Call, by replica.Deadline) { r.TransferLeader(id, to, by) })
}

// MustPropose proposes a command and waits for its result, and repeats the proposal while the
// command is refused; any other error ends the test.
func (c *Cluster) MustPropose(node uint64, command []byte) any {
	c.t.Helper()
	var value any
	c.mustEnd(func() (err error) {
		value, err = c.Propose(node, command).Wait()
		return err
	})
	return value
}

// MustRead is MustPropose for a linearizable read.
func (c *Cluster) MustRead(node uint64) {
	c.t.Helper()
	c.mustEnd(func() error {
		_, err := c.Read(node).Wait()
		return err
	})
}

// Agree waits until all running nodes have applied the same index, with no entry under way. Then
// Agree ends the test unless read returns the same text for all their state machines. limit bounds
// the wait.
func (c *Cluster) Agree(limit time.Duration, read func(rawnode.StateMachine) (string, error)) {
	c.t.Helper()
	c.Until(limit, "one applied index at all running nodes", func() bool {
		first := uint64(0)
		for _, n := range c.nodes {
			if !n.up {
				continue
			}
			st := n.r.Status()
			if first == 0 {
				first = st.Applied
			}
			if st.Applied != first || st.Applied != st.LastIndex || n.applied != first {
				return false
			}
		}
		return first > 0
	})
	var want string
	var of uint64
	for _, n := range c.nodes {
		if !n.up {
			continue
		}
		got, err := read(n.sm)
		switch {
		case err != nil:
			c.fail("read the state of node %d: %v", n.id, err)
		case of == 0:
			want, of = got, n.id
		case got != want:
			c.fail("the states of nodes %d and %d differ at index %d: at node %d it is %s", of, n.id, n.applied, n.id, differ(got, want))
		}
	}
	c.check()
}

// mustEnd repeats try while try is refused.
func (c *Cluster) mustEnd(try func() error) {
	c.t.Helper()
	for end := c.Now() + 10*callTime; ; c.Run(c.opts.TickInterval) {
		err := try()
		if err == nil {
			return
		}
		if !errors.Is(err, rawnode.ErrRefused) || c.Now() > end {
			c.fail("%v", err)
			c.check()
		}
	}
}

// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package replica

import (
	"fmt"

	pb "go.etcd.io/raft/v3/raftpb"
	"go.etcd.io/raft/v3/tracker"

	"github.com/weftraft/weft/internal/wire"
)

// inquiry asks, on behalf of one change of members, whether the voters to come are alive.
//
// A leader notices the death of a member by an election timeout of silence. A change that is
// asked for within this time may take away the majority: of three members one dies, and at
// once another is removed. So the leader asks after the arrival of the change, and counts
// answers to this question alone; a message from before may still be on its way. For an
// election timeout the change waits for the answers.
//
// The question to a member is a wire.LogEnd, whose number the answer repeats. A node that is no
// member yet may have no log, and does not answer that. Such a node is sent a heartbeat, which
// commits nothing; because a node that waits to be added says nothing by itself, any message
// of the node counts.
type inquiry struct {
	number uint64
	since  uint64 // tick
	alive  map[uint64]bool
}

// inquiries are those under way, by the id of the change.
type inquiries struct {
	last uint64 // number
	open map[wire.CommandID]*inquiry
}

// inquiryBit marks the numbers of inquiries, and no number of a quorum read.
const inquiryBit = 1 << 63

// maxInquiries bounds the inquiries under way.
const maxInquiries = 64

// inquire returns the outcome for a change unless, by answers to an inquiry, enough voters to
// come are alive.
func (c *changes) inquire(id wire.CommandID, now, next tracker.Config, progress map[uint64]tracker.Progress) (wire.Outcome, error) {
	q := c.inquiries.open[id]
	if q == nil || c.ticks-q.since > 2*uint64(c.cfg.ElectionTick) {
		if q = c.openInquiry(id); q == nil {
			return wire.Busy, fmt.Errorf("%d changes of members wait for answers of voters", maxInquiries)
		}
		for _, voter := range voters(next.Voters) {
			if _, member := progress[voter]; !member {
				delete(c.heard, voter)
			}
		}
	}
	err := c.answersLacking(q, now, next, progress)
	if err == nil {
		return 0, nil
	}
	if c.ticks-q.since > uint64(c.cfg.ElectionTick) {
		return wire.Unsafe, err
	}
	c.ask(q, next, progress)
	return wire.Busy, err
}

// openInquiry begins an inquiry, or returns nil if there are too many. Those whose changes
// were not tried again are forgotten.
func (c *changes) openInquiry(id wire.CommandID) *inquiry {
	all := &c.inquiries
	for other, q := range all.open {
		if c.ticks-q.since > 2*uint64(c.cfg.ElectionTick) {
			delete(all.open, other)
		}
	}
	if len(all.open) >= maxInquiries {
		return nil
	}
	if all.open == nil {
		all.open = map[wire.CommandID]*inquiry{}
	}
	all.last++
	q := &inquiry{number: all.last | inquiryBit, since: c.ticks, alive: map[uint64]bool{c.cfg.ID: true}}
	all.open[id] = q
	return q
}

// answersLacking says whose answers a change lacks, or nil.
func (c *changes) answersLacking(q *inquiry, now, next tracker.Config, progress map[uint64]tracker.Progress) error {
	var silent []uint64
	for _, id := range voters(next.Voters) {
		if _, member := progress[id]; member {
			continue
		}
		if _, heard := c.heard[id]; heard {
			q.alive[id] = true
		} else if !q.alive[id] {
			silent = append(silent, id)
		}
	}
	if len(silent) > 0 {
		return fmt.Errorf("nodes %v would get a vote and have not answered: start them, and see that each node has the addresses of all; or add them as learners first, or force the change%s", silent, c.founding.strange(silent...))
	}
	return c.survives(now, next, progress, func(id uint64) bool { return q.alive[id] })
}

// ask sends the question to the voters to come that have not answered.
func (c *changes) ask(q *inquiry, next tracker.Config, progress map[uint64]tracker.Progress) {
	for _, id := range voters(next.Voters) {
		if q.alive[id] {
			continue
		}
		if _, member := progress[id]; member {
			c.around.askLogEnd(id, q.number)
		} else {
			c.around.postRaft(&pb.Message{Type: pb.MsgHeartbeat.Enum(), From: new(c.cfg.ID), To: new(id), Term: new(c.state.Term)})
		}
	}
}

// answered takes the answer of a node.
func (i *inquiries) answered(from, number uint64) {
	for _, q := range i.open {
		if q.number == number {
			q.alive[from] = true
		}
	}
}

// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package rafttest

import (
	"slices"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/internal/world"
	"github.com/weftraft/weft/raft"
)

// This file checks the nodes' promises to each other, and the applied entries.

// synced records the durable state of now, with the votes.
func (c *checker) synced(n *node) {
	f, now := &c.nodes[n.id], n.disk.durable.state
	f.durable = now
	c.lookClosely()
	if now.vote != 0 {
		c.voted(n.id, now.term, now.vote)
	}
}

func (c *checker) voted(voter, term, candidate uint64) {
	b := ballot{voter, term}
	if had, ok := c.votes[b]; ok && had != candidate {
		c.s.fail(voteOnce, "node %d votes for %d in term %d, after a vote for %d", voter, candidate, term, had)
		return
	}
	c.votes[b] = candidate
}

// sent checks a message sent by a node: the state vouched for must be on the
// node's disk.
func (c *checker) sent(n *node, m *pb.Message) {
	switch m.GetType() {
	case pb.MsgVoteResp:
		if !m.GetReject() {
			c.voted(n.id, m.GetTerm(), m.GetTo())
			c.vouched(n, m, 0)
		}
	case pb.MsgAppResp:
		if !m.GetReject() {
			c.vouched(n, m, m.GetIndex())
		}
	case raft.MsgLeases:
		c.leaseVouched(n, m)
	case raft.MsgUnits:
		if err := vouchedUnits(n.disk, m); err != nil && !c.s.opts.Outside {
			c.s.fail(durableFirst, "node %d %v", n.id, err)
		}
		if purpose := string(m.GetContext()); purpose == unitsPassed || purpose == unitsOfZones {
			if c.s.coded.Passes++; purpose == unitsOfZones {
				c.s.coded.ZonePasses++
			}
			if err := c.truth.passedOn(m); err != nil {
				c.s.fail(honestUnits, "node %d %v", n.id, err)
			}
		}
		// A deceived node may hand the lie on.
		if p := c.s.plan.coded; p != nil && p.unitLies == 0 {
			if err := c.truth.honest(m); err != nil {
				c.s.fail(honestUnits, "node %d %v", n.id, err)
			}
		}
	}
}

// sentAtRest checks a message sent when nobody asks for anything: see rest.go.
func (c *checker) sentAtRest(n *node, m *pb.Message) {
	if !c.s.end.resting {
		return
	}
	switch m.GetType() {
	case pb.MsgHeartbeat, pb.MsgHeartbeatResp, raft.MsgLeases:
		c.s.reach.AtRest++
	default:
		c.s.fail(rest, "node %d sends%s", n.id, appendMessage(nil, m))
	}
}

// vouched checks that the term and vote of a message, and the log up to the
// index, are durable. A later term on disk shows that the message is late: the
// state vouched for was durable once.
func (c *checker) vouched(n *node, m *pb.Message, index uint64) {
	d := &n.disk.durable
	switch {
	case c.s.opts.Outside || d.state.term > m.GetTerm():
		return
	case d.state.term < m.GetTerm():
		c.s.fail(durableFirst, "node %d sends %s of term %d; on disk it is at term %d", n.id, m.GetType(), m.GetTerm(), d.state.term)
	case m.GetType() == pb.MsgVoteResp && d.state.vote != m.GetTo():
		c.s.fail(durableFirst, "node %d sends its vote for %d in term %d; on disk the vote is for %d", n.id, m.GetTo(), m.GetTerm(), d.state.vote)
	case d.last() < index:
		c.s.fail(durableFirst, "node %d acknowledges entry %d in term %d; on disk its log ends at %d", n.id, index, m.GetTerm(), d.last())
	}
}

// applied checks an entry applied by a node: the entry must be the next, and
// the committed entry.
func (c *checker) applied(n *node, e *pb.Entry) {
	f, i := &c.nodes[n.id], e.GetIndex()
	if i != f.applied+1 {
		c.s.fail(appliesInOrder, "node %d applies entry %d after %d", n.id, i, f.applied)
		return
	}
	if !c.wasCommitted(i, e.GetTerm()) {
		c.s.fail(stateMachineSafety, "node %d applies entry %d of term %d, which is not committed", n.id, i, e.GetTerm())
		return
	}
	if !c.asAppended(e) {
		c.s.fail(stateMachineSafety, "node %d applies entry %d of term %d with other content than was appended", n.id, i, e.GetTerm())
		return
	}
	f.applied = i
	c.s.reach.Applied++
}

// asAppended reports whether an applied entry has the content as appended.
func (c *checker) asAppended(e *pb.Entry) bool {
	name := entryName{e.GetIndex(), e.GetTerm()}
	if c.truth != nil {
		return c.truth.IsPayload(name.id(), e)
	}
	return c.entries[name].content == world.Mix(world.MixInt(world.HashBegin, uint64(e.GetType())), e.GetData())
}

// restored checks a state that comes from a snapshot or a checkpoint.
func (c *checker) restored(n *node, i, digest uint64) {
	f := &c.nodes[n.id]
	if i < f.applied {
		c.s.fail(appliesInOrder, "node %d restores the state at %d after it applied %d", n.id, i, f.applied)
		return
	}
	f.applied, f.restored = i, i
	c.equal(n, i, digest)
}

// restoredAt returns the index of the last state that a node took in whole.
func (c *checker) restoredAt(n *node) uint64 { return c.nodes[n.id].restored }

// equal checks that states after the same index are equal.
func (c *checker) equal(n *node, index, digest uint64) {
	if had, ok := c.digests[index]; ok && had != digest {
		c.s.fail(equalStates, "node %d has state %x after entry %d; another had %x", n.id, digest, index, had)
		return
	}
	c.digests[index] = digest
}

// configured records the members from an index on.
func (c *checker) configured(n *node, index uint64, conf *pb.ConfState) {
	if !c.s.plan.prepared && index <= uint64(c.s.plan.voters) {
		return // Bootstrap adds the members one by one, and at first all at once
	}
	if k := len(c.confs); k > 0 && c.confs[k-1].index >= index {
		for _, at := range c.confs {
			if at.index == index && !sameConf(at.conf, conf) {
				c.s.fail(stateMachineSafety, "node %d has members %s from entry %d; another has %s", n.id, confString(conf), index, confString(at.conf))
			}
		}
		return
	}
	c.confs = append(c.confs, confAt{index, conf})
	if c.truth != nil {
		c.truth.configured(index, conf)
	}
	c.s.membersChanged(conf)
}

// newestConf returns the members that the last applied change made.
func (c *checker) newestConf() confAt {
	if len(c.confs) == 0 {
		return confAt{conf: c.s.foundingConf()}
	}
	return c.confs[len(c.confs)-1]
}

// confAt returns the members to which the log up to an index leads, at nodes that have applied it.
func (c *checker) confAt(index uint64) *pb.ConfState {
	conf := c.s.foundingConf()
	for _, at := range c.confs {
		if at.index <= index {
			conf = at.conf
		}
	}
	return conf
}

// membersChanged looks at configurations as they come into force. Too many
// voters may leave even under an operator that is not bold, because the
// operator's view of the members may have been old.
func (s *sim) membersChanged(conf *pb.ConfState) {
	k := len(s.check.confs)
	if k < 2 {
		return
	}
	before := s.check.confs[k-2].conf
	if isJoint(before) && !isJoint(conf) {
		s.reach.JointsLeft++
	}
	stay := 0
	for _, id := range before.GetVoters() {
		if slices.Contains(conf.GetVoters(), id) {
			stay++
		}
	}
	if stay <= len(before.GetVoters())/2 {
		s.minorityStayed = true
	}
}

// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package rafttest

import (
	"slices"

	pb "go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"

	"github.com/weftraft/weft/raft"
	"github.com/weftraft/weft/rafttest/internal/holdings"
)

// This file is hosts in a hurry: with Config.DisableConfChangeValidation hosts check
// changes of the members themselves, and propose the next change before the last is
// applied, or committed.
//
// The core then looks at nothing, and a change unfit for the members of its moment
// panics at every node. So the host's duty is:
//
//   - The host proposes only where the node leads, one change after the other,
//     each to fit the members after all earlier changes in this leader's log, and
//     after changes that the leader took and has not logged yet. A log that loses a
//     change loses the changes behind, too: so a change that fits once fits at each
//     node.
//   - Behind the entry into a joint configuration with automatic leave the host
//     proposes nothing but the leave, and only before the entry is applied here:
//     from then on the core proposes the leave itself, at a place in the log that
//     the host learns only from the log.
//   - Or the host proposes any change, and decides at its application, equally at
//     each node, whether the change comes into force: if not, the host calls
//     ApplyConfChange with a change of node 0, or not at all.

// hurry is how hosts check changes in this run.
func (s *sim) hurry() hurry {
	if c := s.plan.coded; c != nil && c.brief != nil {
		return c.brief.hurry.kind
	}
	return hurryNot
}

// logged is a change of the members in a node's log.
type logged struct {
	index uint64
	cc    *pb.ConfChangeV2
	hasty bool // proposed before the last change was applied
}

// hurried is a host's knowledge of changes not in force.
type hurried struct {
	// log is the changes in the log, ascending.
	log []logged
	// taken is the changes taken by the leader in this term, and not in the log.
	taken []logged
	term  uint64
	// newest is the term of the last entry that was seen.
	newest uint64
}

// follow reads the changes among new entries of the log, behind a snapshot in the
// place of the log if there is one.
func (h *hurried) follow(snap *pb.Snapshot, ents []*pb.Entry) {
	if !raft.IsEmptySnap(snap) {
		h.log = nil
	}
	for _, e := range ents {
		h.cut(e.GetIndex())
		h.newest = e.GetTerm()
		if e.GetType() == pb.EntryNormal {
			continue
		}
		cc, err := holdings.Change(e)
		if err != nil {
			continue // reported when the change is applied
		}
		l := logged{index: e.GetIndex(), cc: cc}
		if len(h.taken) > 0 && e.GetTerm() == h.term && proto.Equal(cc, h.taken[0].cc) {
			l.hasty, h.taken = h.taken[0].hasty, h.taken[1:]
		}
		h.log = append(h.log, l)
	}
}

// cut forgets what an entry takes the place of.
func (h *hurried) cut(index uint64) {
	for n := len(h.log); n > 0 && h.log[n-1].index >= index; n-- {
		h.log = h.log[:n-1]
	}
}

// took notes a change that a leader took in a term.
func (h *hurried) took(cc *pb.ConfChangeV2, term uint64, hasty bool) {
	if h.term != term {
		h.term, h.taken = term, nil
	}
	h.taken = append(h.taken, logged{cc: cc, hasty: hasty})
}

// ahead returns the changes that will come into force here, in order, behind an index.
func (p *coreProcess) ahead() []logged {
	h := &p.hurried
	all := slices.DeleteFunc(slices.Clone(h.log), func(l logged) bool { return l.index <= p.applied })
	if p.rn.BasicStatus().GetTerm() == h.term {
		all = append(all, h.taken...)
	}
	return all
}

// expected returns the members after all changes ahead at a leader; nil if the
// members are to stay as they are for now.
func (p *coreProcess) expected() *pb.ConfState {
	if p.hurried.newest != p.rn.BasicStatus().GetTerm() {
		return nil // what is cut of the log is not seen yet
	}
	ahead, conf := p.ahead(), p.conf
	for _, l := range ahead {
		if next := holdings.Becomes(conf, l.cc); next != nil {
			conf = next
		}
	}
	if isJoint(conf) && conf.GetAutoLeave() && len(ahead) == 0 {
		return nil
	}
	return conf
}

// proposeChange proposes a change, unless the host knows the change to be
// unfit.
func (p *coreProcess) proposeChange(cc pb.ConfChangeI) {
	v2, ahead, leads, term := cc.AsV2(), p.ahead(), p.leads(), p.rn.BasicStatus().GetTerm()
	if p.s.hurry() == hurryKnows {
		if conf := p.expected(); !leads || conf == nil || holdings.Becomes(conf, v2) == nil {
			return
		}
	}
	err := p.rn.ProposeConfChange(cc)
	switch {
	case err != nil:
		p.s.coded.HurriedDrops++
	case leads:
		if len(ahead) > 0 {
			p.s.coded.InARow++
		}
		p.hurried.took(v2, term, len(ahead) > 0)
	}
	p.did(err)
}

// refuses reports whether the host does not put a change into force.
func (p *coreProcess) refuses(e *pb.Entry, cc *pb.ConfChangeV2) bool {
	for _, l := range p.hurried.log {
		if l.index == e.GetIndex() && l.hasty {
			p.s.coded.InARowApplied++
		}
	}
	if p.s.hurry() != hurryRefuses || holdings.Becomes(p.conf, cc) != nil {
		return false
	}
	p.s.coded.ChangesRefused++
	p.inForce = p.applied
	if e.GetType() == pb.EntryConfChange && !isJoint(p.conf) {
		p.rn.ApplyConfChange(&pb.ConfChange{NodeId: new(uint64)})
	}
	return true
}

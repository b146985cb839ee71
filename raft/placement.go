// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package raft

import (
	"maps"
	"time"

	"go.etcd.io/raft/v3/tracker"

	"github.com/weftraft/weft/internal/placement"
)

// Placement says which members are to lead rather than others. A leader hands over to a member with a larger
// weight that could lead at once, once there has been such a member for more than three election timeouts; for more than
// six after the leader has changed lately, and so on, so that a member that comes and goes does not move leadership
// each time. When a leader has fallen silent, voters with smaller weights campaign later, by about an election timeout, and
// only the first time: no weight keeps a member from being elected if the others cannot be.
//
// Safety does not depend on weights. They should be the same at all members nevertheless: a leader
// goes by its own.
type Placement struct {
	// Weights are the weights of members, by id: 0, which is for members that lead only if no
	// other can, to 1000. Members without an entry have the weight 100.
	Weights map[uint64]int

	judge placement.Judge
	ticks time.Duration // of this node; the judge's time is in ticks
	lead  uint64        // the last leader that this node has followed, or has been
	old   uint64        // what this node had committed when it looked at the members last
}

// mistakes reports what is wrong with a setting.
func (p *Placement) mistakes(c *Config, refuse func(wrong bool, format string, args ...any)) {
	refuse(!c.CheckQuorum, "Placement needs CheckQuorum: a leader knows by it who could lead in its place")
	for id, w := range p.Weights {
		refuse(id == None || IsLocalMsgTarget(id), "Placement.Weights has %d, which is the id of no member", id)
		refuse(w < 0 || w > placement.MaxWeight, "Placement.Weights has %d for node %x; it must be 0 to %d", w, id, placement.MaxWeight)
	}
}

// copied returns a node's own, or nil.
func (p *Placement) copied() *Placement {
	if p == nil {
		return nil
	}
	return &Placement{Weights: maps.Clone(p.Weights)}
}

func (p *Placement) weight(id uint64) int {
	if w, ok := p.Weights[id]; ok {
		return w
	}
	return placement.DefaultWeight
}

// tick counts a tick.
func (p *Placement) tick() {
	if p != nil {
		p.ticks++
	}
}

// follow notes whom the node follows.
func (p *Placement) follow(lead uint64, electionTick int) {
	if p == nil || lead == None || lead == p.lead {
		return
	}
	if p.lead != None {
		p.judge.Changed(p.ticks, time.Duration(electionTick), None, placement.Figure{})
	}
	p.lead = lead
}

// letsOthersCampaign reports whether this node waits longer than its patience before its first campaign since its leader
// fell silent. A node that has campaigned follows nobody, until it hears from a leader.
func (r *raft) letsOthersCampaign() bool {
	p := r.cfg.Placement
	if p == nil || r.lead == None {
		return false
	}
	turn := placement.NewTurn(r.id, p.weight(r.id))
	for _, id := range r.members.Voters() {
		if id != r.id && id != r.lead {
			turn.Beside(id, p.weight(id))
		}
	}
	return uint64(r.quietTicks) < turn.Wait(uint64(r.cfg.ElectionTick))
}

// preferred returns the member to which this leader should hand over, or None. It is called once in an election timeout,
// before the leader forgets from whom it has heard.
func (l *leader) preferred() uint64 {
	p := l.cfg.Placement
	if p == nil || l.transferee != None || l.late() || l.members.Config().Voters[1] != nil {
		return None
	}
	own, others := placement.Member{ID: l.id, Weight: p.weight(l.id)}, []placement.Member(nil)
	for id, pr := range l.members.All() {
		if id != l.id && !pr.IsLearner {
			others = append(others, placement.Member{ID: id, Weight: p.weight(id), Fit: l.couldLead(pr)})
		}
	}
	p.old = l.log.committed
	timeout := time.Duration(l.cfg.ElectionTick)
	return p.judge.Look(p.ticks, timeout, timeout, 0, own, others).To
}

// couldLead reports whether a member has been heard from lately, has stored what was committed an election timeout ago, and
// lacks no more than what may be under way.
func (l *leader) couldLead(pr *tracker.Progress) bool {
	return pr.RecentActive && pr.State == tracker.StateReplicate && pr.Match >= l.cfg.Placement.old && pr.Match+uint64(l.cfg.MaxInflightMsgs) >= l.log.last().Index
}

// prefer hands leadership over to a member, unless it is None.
func (l *leader) prefer(to uint64) {
	if pr := l.members.Progress(to); pr != nil {
		l.cfg.Logger.Infof("raft: node %x prefers %x as the leader, by their weights", l.id, to)
		l.handTo(pr, to, false)
	}
}

// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package replica

import (
	"cmp"
	"slices"
	"time"

	"go.etcd.io/raft/v3/tracker"

	"github.com/weftraft/weft/internal/members"
	"github.com/weftraft/weft/internal/placement"
	"github.com/weftraft/weft/internal/wire"
	"github.com/weftraft/weft/raft"
)

// placing has leadership go where the group is served best.
//
//   - The node measures itself (measure, and the driver's Turned), and tells the other members (tell).
//   - A leader compares itself with the members that could lead at once, twice in an election timeout, and hands
//     over if the judge says so.
//   - A follower with a smaller weight than others waits longer before a campaign (waits).
//
// No safety rests on any of this: a hand-over is the core's, with the brakes of leases and coding, and a
// follower that waits is one whose timer is slow.
type placing struct {
	*facts
	losses *losses
	around aroundPlacing

	judge    placement.Judge
	lookedAt time.Duration
	// weight is the setting of this node's weight in this group; 0: the node's weight counts.
	weight int
	toldAt time.Duration // when the others were told of it
	// weights are those of other members in this group, where a member has one.
	weights map[uint64]heardWeight
	// ledAt is the tick at which this node has last heard of a leader, or has led.
	ledAt uint64
	// waitsTo is the tick up to which this follower lets others campaign; 0: not decided.
	waitsTo uint64

	// write is the number of the write that is being timed, from the time at on; 0: none.
	write uint64
	at    time.Duration
}

// aroundPlacing is what placing needs of what is around it.
type aroundPlacing interface {
	// unsettled reports whether leadership is on the move for another reason, or is about to be.
	unsettled() bool
	post(to uint64, body wire.Body)
	transferTo(to uint64)
}

type heardWeight struct {
	weight int
	tick   uint64
}

// timeWrite begins to time the last write, by its number, unless another is being timed. Timing one write after the other
// covers the time in which there are writes, whatever their number.
func (p *placing) timeWrite(last uint64) {
	if p.write == 0 && p.cfg.Placement != nil {
		p.write, p.at = last, p.now
	}
}

// timedWrite ends the timing, if the write is durable.
func (p *placing) timedWrite(durable uint64) {
	if p.write > 0 && p.write <= durable {
		p.cfg.Placement.Synced(p.now - p.at)
		p.write = 0
	}
}

// tick lets a tick pass.
func (p *placing) tick() {
	n := p.cfg.Placement
	if n == nil {
		return
	}
	if p.leads() {
		p.ledAt = p.ticks
	} else {
		p.ledAt = max(p.ledAt, p.heard[p.state.Lead])
	}
	if p.stalled != nil {
		n.Stalled()
	}
	if waited := p.now - p.at; p.write > 0 && waited > n.Timeout()/4 {
		n.Synced(waited)
	}
	if passed := p.now - p.lookedAt; passed >= n.Timeout()/placement.LooksPerTimeout || p.leads() && n.Alarmed() {
		p.lookedAt = p.now
		p.tell()
		p.lookForBetter(passed)
	} else if n.Due() {
		p.tell()
	}
}

// tell sends reports to the members that are owed one. A weight in this group alone travels with reports of
// this group.
func (p *placing) tell() {
	n, conf := p.cfg.Placement, p.host.conf
	lists := [...][]uint64{conf.GetVoters(), conf.GetVotersOutgoing(), conf.GetLearners(), conf.GetLearnersNext()}
	if p.weight == 0 {
		for _, ids := range lists {
			n.Owed(ids, p.report)
		}
		return
	}
	if p.now-p.toldAt < 2*n.Timeout() {
		return
	}
	p.toldAt = p.now
	for _, id := range conf.GetVoters() {
		if id != p.cfg.ID {
			p.report(id, n.Report(id))
		}
	}
}

// report sends a report.
func (p *placing) report(to uint64, what placement.Report) {
	f := what.Figure
	h := wire.Health{Sync: f.Sync, Turn: f.Turn, Wait: f.Wait, Send: f.Send, Stalled: f.Stalled, Weight: uint64(what.Weight), Stamp: what.Stamp, Answers: what.Answers, Held: what.Held}
	if p.weight != 0 {
		h.GroupWeight = 1 + uint64(placement.Weigh(p.weight))
	}
	for _, l := range what.Links {
		h.Links = append(h.Links, wire.HealthLink(l))
	}
	p.around.post(to, h)
}

// receive takes a report. The report is of a node, and no sign that the node is a member of this group.
func (p *placing) receive(from uint64, h wire.Health) {
	if p.cfg.Placement == nil {
		return
	}
	weight := func(w uint64) int { return int(min(w, placement.MaxWeight)) }
	what := placement.Report{
		Figure: placement.Figure{Sync: h.Sync, Turn: h.Turn, Wait: h.Wait, Send: h.Send, Stalled: h.Stalled}, Weight: weight(h.Weight),
		Stamp: h.Stamp, Answers: h.Answers, Held: h.Held,
	}
	for _, l := range h.Links {
		what.Links = append(what.Links, placement.Link(l))
	}
	p.cfg.Placement.Heard(from, what)
	if h.GroupWeight == 0 || !members.Has(p.host.conf, from) {
		return
	}
	if p.weights == nil {
		p.weights = map[uint64]heardWeight{}
	}
	p.weights[from] = heardWeight{weight(h.GroupWeight - 1), p.ticks}
}

// weightOf returns the weight of a member in this group, as far as this node knows, and whether the member has
// reported lately.
func (p *placing) weightOf(id uint64) (weight int, counts bool) {
	n := p.cfg.Placement
	if n == nil {
		return placement.DefaultWeight, false
	}
	_, weight, counts = n.Of(id)
	if id == p.cfg.ID && p.weight != 0 {
		return placement.Weigh(p.weight), true
	}
	if own, ok := p.weights[id]; ok {
		if placement.WeightCounts(p.ticks-own.tick, uint64(p.cfg.ElectionTick)) {
			return own.weight, counts
		}
		delete(p.weights, id)
	}
	return weight, counts
}

// lookForBetter hands leadership over if another member is better for long. passed is the time since the last look.
func (p *placing) lookForBetter(passed time.Duration) {
	n := p.cfg.Placement
	if !p.leads() || p.around.unsettled() || len(p.host.conf.GetVotersOutgoing()) > 0 {
		return
	}
	if p.ticks-p.ledSince < uint64(p.cfg.ElectionTick) { // nothing is known of the others
		return
	}
	if p.judge.Idle() && p.weight == 0 && len(p.weights) == 0 && n.Calm() {
		p.judge.Near()
		return
	}
	own, others := p.candidates()
	v := p.judge.Look(p.now, passed, n.Timeout(), p.cfg.Group, own, others)
	switch v.Reason {
	case placement.Stay:
		return
	case placement.Slow:
		p.count.HandOversSlow++
		p.cfg.Logger.Warningf("rawnode: this leader hands over to node %d, which is faster: here %v; there %v", v.To, v.Own, v.Its)
	case placement.Preferred:
		p.count.HandOversPreferred++
		p.cfg.Logger.Infof("rawnode: this leader hands over to node %d, whose weight is larger than %d: here %v; there %v", v.To, own.Weight, v.Own, v.Its)
	}
	p.around.transferTo(v.To)
}

// candidates returns this leader and the other voters, as the judge sees them.
func (p *placing) candidates() (own placement.Member, others []placement.Member) {
	_, progress := p.core.Members()
	for _, id := range p.host.conf.GetVoters() {
		f, _, counts := p.cfg.Placement.Of(id)
		f.Reach = p.cfg.Placement.Reach(id, p.host.conf.GetVoters())
		m := placement.Member{ID: id, Figure: f}
		m.Weight, _ = p.weightOf(id)
		if id == p.cfg.ID {
			if own = m; !p.backlogged() {
				own.Surely = p.cfg.Placement.Surely(p.host.conf.GetVoters())
			}
			own.Limps = p.cfg.Placement.Limps()
			continue
		}
		its, ok := progress[id]
		m.Fit = ok && counts && !f.Stalled && !its.IsLearner && its.State == tracker.StateReplicate && its.Match+p.cfg.MaxPromoteLag >= p.last && p.reachable(id) && !p.losses.lost[id]
		others = append(others, m)
	}
	return own, others
}

// backlogged reports whether appends wait at this node for a voter. Reports then wait behind them, and tell how full a
// link is, which another leader would make as full, and not how long.
func (p *placing) backlogged() bool {
	return p.cfg.Backlog != nil && slices.ContainsFunc(p.host.conf.GetVoters(), func(id uint64) bool {
		bytes, _ := p.cfg.Backlog(id)
		return bytes >= fullBytes
	})
}

// fullBytes is what waits for a voter, at least, where a link is full: more than one message to a voter that lags.
const fullBytes = 64 << 10

// leaderChanged notes a change of the leader.
func (p *placing) leaderChanged(former uint64) {
	n := p.cfg.Placement
	if n == nil || former == raft.None || former == p.state.Lead {
		return
	}
	f, _, _ := n.Of(former)
	f.Reach = n.Reach(former, p.host.conf.GetVoters())
	p.judge.Changed(p.now, n.Timeout(), former, f)
}

// waits reports whether this follower lets others campaign first: voters with a larger weight here, which were
// well a short while ago. So the first campaign is late by at most about an election timeout, and no later one is.
func (p *placing) waits() bool {
	timeout := uint64(p.cfg.ElectionTick)
	if p.cfg.Placement == nil || p.state.Role != raft.StateFollower {
		return false
	}
	if p.ticks-p.ledAt < timeout {
		p.waitsTo = 0
		return false
	}
	if p.waitsTo == 0 { // decided once: the end of a report must not release all at the same tick
		turn := p.turn()
		p.waitsTo = p.ledAt + turn.Wait(timeout)
	}
	return p.ticks < p.waitsTo
}

// turn returns this voter's turn beside the others that are well.
func (p *placing) turn() placement.Turn {
	own, _ := p.weightOf(p.cfg.ID)
	t := placement.NewTurn(p.cfg.ID, own)
	for _, id := range p.host.conf.GetVoters() {
		weight, counts := p.weightOf(id)
		if f, _, _ := p.cfg.Placement.Of(id); id != p.cfg.ID && id != p.state.Lead && counts && !f.Stalled {
			t.Beside(id, weight)
		}
	}
	return t
}

// byWeight sorts voters, those with a larger weight first.
func (p *placing) byWeight(voters []uint64) {
	slices.SortStableFunc(voters, func(a, b uint64) int {
		heavy, _ := p.weightOf(a)
		heavier, _ := p.weightOf(b)
		return cmp.Compare(heavier, heavy)
	})
}

// lastChoice returns 1 for a voter of weight 0, and else 0.
func (p *placing) lastChoice(id uint64) int {
	if weight, _ := p.weightOf(id); weight == 0 {
		return 1
	}
	return 0
}

// heirs returns the voters that this leader could hand over to: voters heard from that have not lost their logs, the
// longest log first, and at last those of weight 0.
func (p *placing) heirs(voters []uint64) []uint64 {
	_, progress := p.core.Members()
	heirs := slices.DeleteFunc(slices.Clone(voters), func(id uint64) bool {
		its, ok := progress[id]
		return !ok || id == p.cfg.ID || its.IsLearner || !p.reachable(id) || p.losses.lost[id]
	})
	slices.SortStableFunc(heirs, func(a, b uint64) int {
		return cmp.Or(cmp.Compare(p.lastChoice(a), p.lastChoice(b)), cmp.Compare(progress[b].Match, progress[a].Match))
	})
	return heirs
}

// compare returns a member's weight, and whether the member would be worse as a leader than this node, as far as it has
// reported.
func (p *placing) compare(id uint64) (weight int, worse bool) {
	weight, _ = p.weightOf(id)
	if p.cfg.Placement == nil || id == p.cfg.ID {
		return weight, false
	}
	own := placement.Member{ID: p.cfg.ID, Figure: p.cfg.Placement.Own()}
	own.Weight, _ = p.weightOf(p.cfg.ID)
	f, _, counts := p.cfg.Placement.Of(id)
	return weight, counts && !placement.Good(own, placement.Member{ID: id, Weight: weight, Figure: f, Fit: !f.Stalled})
}

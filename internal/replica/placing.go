// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package replica

import (
	"cmp"
	"slices"
	"time"

	pb "go.etcd.io/raft/v3/raftpb"
	"go.etcd.io/raft/v3/tracker"

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

type heardWeight struct {
	weight int
	tick   uint64
}

// Turned says how long a turn took, and how long its oldest input had waited. The driver calls it after each
// turn with inputs.
func (r *Replica) Turned(waited, took time.Duration) {
	if n := r.cfg.Placement; n != nil {
		n.Turned(waited, took)
	}
}

// Ticked says how late a tick was taken. The driver calls it at each tick.
func (r *Replica) Ticked(late time.Duration) {
	if n := r.cfg.Placement; n != nil {
		n.Ticked(late)
	}
}

// timeWrite begins to time the last write, unless another is being timed. Timing one write after the other
// covers the time in which there are writes, whatever their number.
func (r *Replica) timeWrite() {
	if p := &r.placing; p.write == 0 && r.cfg.Placement != nil {
		p.write, p.at = r.writes.handedOut, r.now
	}
}

// timedWrite ends the timing, if the write is durable.
func (r *Replica) timedWrite() {
	if p := &r.placing; p.write > 0 && p.write <= r.writes.durable {
		r.cfg.Placement.Synced(r.now - p.at)
		p.write = 0
	}
}

// place lets a tick pass.
func (r *Replica) place() {
	n, p := r.cfg.Placement, &r.placing
	if n == nil {
		return
	}
	if r.leads() {
		p.ledAt = r.ticks
	} else {
		p.ledAt = max(p.ledAt, r.heard[r.state.Lead])
	}
	if r.stall.reason != nil {
		n.Stalled()
	}
	if waited := r.now - p.at; p.write > 0 && waited > n.Timeout()/4 {
		n.Synced(waited)
	}
	if passed := r.now - p.lookedAt; passed >= n.Timeout()/placement.LooksPerTimeout {
		p.lookedAt = r.now
		r.tell()
		r.lookForBetter(passed)
	}
}

// tell sends reports to the members that are owed one. A weight in this group alone travels with reports of
// this group.
func (r *Replica) tell() {
	n, conf := r.cfg.Placement, r.host.conf
	lists := [...][]uint64{conf.GetVoters(), conf.GetVotersOutgoing(), conf.GetLearners(), conf.GetLearnersNext()}
	if r.placing.weight == 0 {
		for _, ids := range lists {
			n.Owed(ids, r.report)
		}
		return
	}
	if r.now-r.placing.toldAt < 2*n.Timeout() {
		return
	}
	r.placing.toldAt = r.now
	for _, id := range conf.GetVoters() {
		if id != r.cfg.ID {
			r.report(id, n.Report(id))
		}
	}
}

// report sends a report.
func (r *Replica) report(to uint64, what placement.Report) {
	f := what.Figure
	h := wire.Health{Sync: f.Sync, Turn: f.Turn, Wait: f.Wait, Send: f.Send, Stalled: f.Stalled, Weight: uint64(what.Weight), Stamp: what.Stamp, Answers: what.Answers, Held: what.Held}
	if r.placing.weight != 0 {
		h.GroupWeight = 1 + uint64(placement.Weigh(r.placing.weight))
	}
	for _, l := range what.Links {
		h.Links = append(h.Links, wire.HealthLink(l))
	}
	r.post(to, h)
}

// receiveHealth takes a report. The report is of a node, and no sign that the node is a member of this group.
func (r *Replica) receiveHealth(from uint64, h wire.Health) {
	if r.cfg.Placement == nil {
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
	r.cfg.Placement.Heard(from, what)
	if h.GroupWeight == 0 || !isMember(r.host.conf, from) {
		return
	}
	if r.placing.weights == nil {
		r.placing.weights = map[uint64]heardWeight{}
	}
	r.placing.weights[from] = heardWeight{weight(h.GroupWeight - 1), r.ticks}
}

func isMember(conf *pb.ConfState, id uint64) bool {
	return slices.Contains(conf.GetVoters(), id) || slices.Contains(conf.GetVotersOutgoing(), id) ||
		slices.Contains(conf.GetLearners(), id) || slices.Contains(conf.GetLearnersNext(), id)
}

// SetLeaderWeight changes the setting of this node's weight in this group; 0: the node's weight counts.
func (r *Replica) SetLeaderWeight(setting int) { r.placing.weight = setting }

// weightOf returns the weight of a member in this group, as far as this node knows, and whether the member has
// reported lately.
func (r *Replica) weightOf(id uint64) (weight int, counts bool) {
	n, p := r.cfg.Placement, &r.placing
	if n == nil {
		return placement.DefaultWeight, false
	}
	_, weight, counts = n.Of(id)
	if id == r.cfg.ID && p.weight != 0 {
		return placement.Weigh(p.weight), true
	}
	if own, ok := p.weights[id]; ok {
		if placement.WeightCounts(r.ticks-own.tick, uint64(r.cfg.ElectionTick)) {
			return own.weight, counts
		}
		delete(p.weights, id)
	}
	return weight, counts
}

// lookForBetter hands leadership over if another member is better for long. passed is the time since the last look.
func (r *Replica) lookForBetter(passed time.Duration) {
	n, p := r.cfg.Placement, &r.placing
	if !r.leads() || r.stall.reason != nil || len(r.moves.wanted) > 0 || r.changes.leaving.tried > 0 || len(r.host.conf.GetVotersOutgoing()) > 0 {
		return
	}
	if r.ticks-r.ledSince < uint64(r.cfg.ElectionTick) { // nothing is known of the others
		return
	}
	if p.judge.Idle() && p.weight == 0 && len(p.weights) == 0 && n.Even() && n.Own().Delay() < placement.Worth && !n.Far() {
		return
	}
	own, others := r.candidates()
	v := p.judge.Look(r.now, passed, n.Timeout(), r.cfg.Group, own, others)
	switch v.Reason {
	case placement.Stay:
		return
	case placement.Slow:
		r.count.HandOversSlow++
		r.cfg.Logger.Warningf("rawnode: this leader hands over to node %d, which is faster: here %v; there %v", v.To, v.Own, v.Its)
	case placement.Preferred:
		r.count.HandOversPreferred++
		r.cfg.Logger.Infof("rawnode: this leader hands over to node %d, whose weight is larger than %d: here %v; there %v", v.To, own.Weight, v.Own, v.Its)
	}
	r.transferTo(v.To)
}

// candidates returns this leader and the other voters, as the judge sees them.
func (r *Replica) candidates() (own placement.Member, others []placement.Member) {
	_, progress := r.core.Members()
	for _, id := range r.host.conf.GetVoters() {
		f, _, counts := r.cfg.Placement.Of(id)
		f.Reach = r.cfg.Placement.Reach(id, r.host.conf.GetVoters())
		m := placement.Member{ID: id, Figure: f}
		m.Weight, _ = r.weightOf(id)
		if id == r.cfg.ID {
			own = m
			continue
		}
		p, ok := progress[id]
		m.Fit = ok && counts && !f.Stalled && !p.IsLearner && p.State == tracker.StateReplicate && p.Match+r.cfg.MaxPromoteLag >= r.last && r.reachable(id) && !r.losses.lost[id]
		others = append(others, m)
	}
	return own, others
}

// placed notes a change of the leader.
func (r *Replica) placed(former uint64) {
	n := r.cfg.Placement
	if n == nil || former == raft.None || former == r.state.Lead {
		return
	}
	f, _, _ := n.Of(former)
	f.Reach = n.Reach(former, r.host.conf.GetVoters())
	r.placing.judge.Changed(r.now, n.Timeout(), former, f)
}

// waits reports whether this follower lets others campaign first: voters with a larger weight here, which were
// well a short while ago. The wait ends two election timeouts after the leader's last word, which is as long as
// the slowest of the others waits, and successionStep later for each voter before this one, so that votes are not split;
// at most after three. So the first campaign is late by at most about an election timeout, and no later one is.
func (r *Replica) waits() bool {
	timeout := uint64(r.cfg.ElectionTick)
	p := &r.placing
	if r.cfg.Placement == nil || r.state.Role != raft.StateFollower {
		return false
	}
	if r.ticks-p.ledAt < timeout {
		p.waitsTo = 0
		return false
	}
	if p.waitsTo == 0 { // decided once: the end of a report must not release all at the same tick
		p.waitsTo = p.ledAt + timeout
		if heavier, turn := r.turn(); heavier {
			p.waitsTo += min(timeout+uint64(successionStep*turn), 2*timeout)
		}
	}
	return r.ticks < p.waitsTo
}

// turn returns whether a voter has a larger weight than this node, and how many voters campaign before this node:
// those, and those with the same weight and a smaller id.
func (r *Replica) turn() (heavier bool, turn int) {
	own, _ := r.weightOf(r.cfg.ID)
	for _, id := range r.host.conf.GetVoters() {
		weight, counts := r.weightOf(id)
		if f, _, _ := r.cfg.Placement.Of(id); id == r.cfg.ID || id == r.state.Lead || !counts || f.Stalled {
			continue
		}
		if weight > own || weight == own && id < r.cfg.ID {
			turn++
		}
		heavier = heavier || weight > own
	}
	return heavier, turn
}

// byWeight sorts voters, those with a larger weight first.
func (r *Replica) byWeight(voters []uint64) {
	slices.SortStableFunc(voters, func(a, b uint64) int {
		heavy, _ := r.weightOf(a)
		heavier, _ := r.weightOf(b)
		return cmp.Compare(heavier, heavy)
	})
}

// lastChoice returns 1 for a voter of weight 0, and else 0.
func (r *Replica) lastChoice(id uint64) int {
	if weight, _ := r.weightOf(id); weight == 0 {
		return 1
	}
	return 0
}

// compareMembers fills in how members would be as leaders, as far as they have reported.
func (r *Replica) compareMembers(progress map[uint64]MemberProgress) {
	if r.cfg.Placement == nil {
		return
	}
	own := placement.Member{ID: r.cfg.ID, Figure: r.cfg.Placement.Own()}
	own.Weight, _ = r.weightOf(r.cfg.ID)
	for id, p := range progress {
		f, _, counts := r.cfg.Placement.Of(id)
		p.Weight, _ = r.weightOf(id)
		p.Worse = counts && id != r.cfg.ID && !placement.Good(own, placement.Member{ID: id, Weight: p.Weight, Figure: f, Fit: !f.Stalled})
		progress[id] = p
	}
}

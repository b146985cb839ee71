// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package names

import (
	"cmp"
	"maps"

	pb "go.etcd.io/raft/v3/raftpb"
)

// Zones is how a leader chooses relays. A zone is what bytes are dear to get into, such as a data
// centre. In each zone one member, the relay, is sent whole appends; the others are sent names, and
// get the data from the relay. Voters in the leader's own zone are sent whole appends, too, as their
// acknowledgements are the first; learners there have a relay. Members whose zone is not known are one zone for
// their learners, because a copy that the leader does not send is worth the same there; their voters are sent whole
// appends, as all voters are if the leader's zone is not known.
//
// The choice is made anew in each turn: whoever is a relay is sent no names of another relay, so no
// data is waited for in a circle.
type Zones struct {
	// Own is the leader's zone, and Of that of a peer; empty if not known.
	Own string
	Of  func(peer uint64) string
	// Fit reports whether a peer can be a relay now, or have one: it takes and answers Wants, and
	// was heard from of late.
	Fit func(peer uint64) bool
	// Voter reports whether a peer votes, and Weight its weight as a leader: of members that are
	// alike, the relay is the one with the largest weight.
	Voter  func(peer uint64) bool
	Weight func(peer uint64) int
	// Learners reports whether there are learners.
	Learners func() bool

	term   uint64          // of all that follows
	relays map[seat]uint64 // of this turn
	before map[seat]uint64 // the relays used last
	loads  map[uint64]int  // by relay: for how many learners it was chosen alone in this turn
	doubts map[uint64]int  // of this turn: see distrust
	sent   map[uint64]*sent
	trust  map[pair]*trust
}

// seat is what a relay is chosen for: a zone, or one learner of it.
type seat struct {
	zone string
	peer uint64 // 0: the zone
}

// pair is a member behind a relay.
type pair struct{ peer, relay uint64 }

// sent is the appends that a peer was sent of late: spans of the log without a gap between them.
type sent struct {
	spans []span
	bytes int // of the spans
}

// weight is what an entry takes of relayBytes, at the leader and at the relay alike: with data of a few bytes, most of its memory is
// beside the data.
func weight(e *pb.Entry) int { return max(len(e.Data), 128) }

type span struct {
	after, last uint64 // index before the first entry, and of the last
	bytes       int
}

// relayBytes bounds the entries for which a relay is named: a relay keeps twice as much.
const relayBytes = 4 << 20

func (s *sent) last() uint64 {
	if len(s.spans) == 0 {
		return 0
	}
	return s.spans[len(s.spans)-1].last
}

// add notes an append. What a peer is sent again takes the place of what it was sent before.
func (s *sent) add(m *pb.Message) {
	after, last := m.GetIndex(), m.Entries[len(m.Entries)-1].GetIndex()
	for len(s.spans) > 0 && s.spans[len(s.spans)-1].last > after {
		s.bytes -= s.spans[len(s.spans)-1].bytes
		s.spans = s.spans[:len(s.spans)-1]
	}
	if after != s.last() { // a gap
		*s = sent{}
	}
	sp := span{after: after, last: last}
	for _, e := range m.Entries {
		sp.bytes += weight(e)
	}
	s.spans = append(s.spans, sp)
	s.bytes += sp.bytes
	for s.bytes > relayBytes && len(s.spans) > 1 {
		s.bytes -= s.spans[0].bytes
		s.spans = s.spans[1:]
	}
}

func (s *sent) has(index uint64) bool {
	return s != nil && len(s.spans) > 0 && index > s.spans[0].after && index <= s.last()
}

// idle reports whether nobody can have a relay.
func (z *Zones) idle() bool { return z.Own == "" && !z.Learners() }

// turn notes the appends of a turn.
func (z *Zones) turn(appends []*pb.Message) {
	maps.Copy(z.before, z.relays)
	clear(z.relays)
	clear(z.loads)
	z.doubts = nil
	for _, m := range appends {
		if m.GetTerm() != z.term {
			*z = Zones{Own: z.Own, Of: z.Of, Fit: z.Fit, Voter: z.Voter, Weight: z.Weight, Learners: z.Learners, term: m.GetTerm(),
				relays: map[seat]uint64{}, before: map[seat]uint64{}, loads: map[uint64]int{}, sent: map[uint64]*sent{}, trust: map[pair]*trust{}}
		}
		s := z.sent[m.GetTo()]
		if s == nil {
			s = &sent{}
			z.sent[m.GetTo()] = s
		}
		s.add(m)
	}
}

// relay returns the relay from which a peer gets data, or 0. Where voters are sent whole appends, each may be a
// relay, and learners share them.
func (z *Zones) relay(peer uint64, tick uint64) uint64 {
	zone := z.Of(peer)
	whole := zone == "" || zone == z.Own || z.Own == ""
	if z.Voter(peer) && whole || !z.Fit(peer) {
		return 0
	}
	relay := uint64(0)
	if whole {
		relay = z.chosen(seat{zone, peer}, tick)
	}
	if relay == 0 || !z.Voter(relay) {
		relay = z.chosen(seat{zone: zone}, tick)
	}
	if relay == peer || relay == 0 || !z.trusts(pair{peer, relay}).permits(tick) {
		return 0
	}
	return relay
}

func (z *Zones) chosen(at seat, tick uint64) uint64 {
	relay, chosen := z.relays[at]
	if !chosen {
		relay = z.choose(at, tick)
		z.relays[at] = relay
		if at.peer != 0 && relay != 0 && z.Voter(relay) {
			z.loads[relay]++
		}
	}
	return relay
}

// choose returns the member of a zone with the least distrust, of others in it and of it in others: of these a
// voter, then the one that was sent the most of the log, then the one with the largest weight, then the one that is
// the relay of the fewest, then the one of the last turn. The result is 0 if no member can be a relay.
func (z *Zones) choose(at seat, tick uint64) (best uint64) {
	doubts := z.distrust(tick)
	for id, s := range z.sent {
		if z.Of(id) != at.zone || !z.Fit(id) {
			continue
		}
		if best == 0 || cmp.Or(
			cmp.Compare(doubts[best], doubts[id]),
			cmp.Compare(one(z.Voter(id)), one(z.Voter(best))),
			cmp.Compare(s.last(), z.sent[best].last()),
			cmp.Compare(z.Weight(id), z.Weight(best)),
			cmp.Compare(z.loads[best], z.loads[id]),
			cmp.Compare(one(id == z.before[at]), one(best == z.before[at])),
			cmp.Compare(best, id),
		) > 0 {
			best = id
		}
	}
	return best
}

// distrust counts, by member, those that get no data from it for a while, and those from which it gets none.
func (z *Zones) distrust(tick uint64) map[uint64]int {
	if z.doubts == nil {
		z.doubts = map[uint64]int{}
		for p, t := range z.trust {
			if !t.permits(tick) {
				z.doubts[p.relay]++
				z.doubts[p.peer]++
			}
		}
	}
	return z.doubts
}

func one(b bool) int {
	if b {
		return 1
	}
	return 0
}

func (z *Zones) trusts(p pair) *trust {
	t := z.trust[p]
	if t == nil {
		t = &trust{credit: fullCredit}
		z.trust[p] = t
	}
	return t
}

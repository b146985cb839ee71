// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package gossip

import (
	"cmp"
	"math"
	"slices"

	"github.com/weftraft/weft/ecraft"
)

// Lacking is an entry whose payload a node wants and does not have.
type Lacking struct {
	ecraft.ID
	Header  *ecraft.Header
	Need    int // units, of any slot, until there are D
	OwnHeld int // first unit of the own slot that is not held
	// Next says that the entry is to be applied next. Its units are asked for however
	// much is on order, because without them this node cannot apply anything, nor find
	// out that it is stuck.
	Next bool
	// Urgent entries are asked for before others, without waiting for pushes.
	Urgent bool
	// Overdue says that no push will bring units any more.
	Overdue bool
	// First gives, per slot, the first unit that is not held. Nil: nothing is known of
	// the others' slots.
	First []uint8
}

// An Ask is the questions to one peer in one message: each entry once, in ascending
// order of indexes.
type Ask struct {
	To    uint64
	Wants []Want
	bytes int // of the units
}

// PullerOptions are the settings of a Puller. The zero value is useful.
type PullerOptions struct {
	// Patience is for how many ticks at least pushes are waited for before a peer is asked; 0
	// means 2. If peers defer their pushes, Patience should be longer than their delay. Where
	// pushes were slower of late, as on links that are full, a Puller waits longer.
	Patience int
	// Timeout is after how many ticks an answer is given up at least; 0 means 2. A peer
	// that took longer before gets more.
	Timeout int
	// Batch is how many bytes of units may be on order at a time; 0 means
	// 4 MiB. One entry is asked for whatever its size, and so is the entry to be
	// applied next.
	Batch int
	// Near reports whether a member stands in this node's zone; nil: there are no zones. Near members are asked
	// before others, and others Hedge ticks after the entry's time came, if any is near; 0 means 2.
	Near  func(id uint64) bool
	Hedge int
}

// Bounds of a Puller.
const (
	silentRounds = 10  // a peer that left so many rounds of asks unanswered is skipped
	probeRounds  = 10  // a silent peer is tried again after so many timeouts
	stuckPasses  = 10  // an entry is stuck after so many passes without progress
	maxWants     = 128 // wants in one Ask
	slowest      = 6   // ticks: pushes that were slower count as such, so that peers are asked within an election timeout of ten
	// AskBytes bounds the bytes of units of one Ask, unless a single entry has more.
	// Several Asks are on their way to a peer at a time, so that the peer always has
	// units to send, and each answer shows the peer's pace.
	AskBytes = 256 << 10
)

// Puller decides whom to ask for the units that pushes did not bring.
//
// For each entry the Puller goes around the ring that begins behind the own slot, then
// to the encoder and to the members without a slot. A node that was assigned no units, a
// reader or a voter that was behind, asks the next slot if that has none either, where the
// payload may be complete, then the slots with units, beginning with another for each entry,
// so that all of their links send, then the others. In each case members in the own zone come first, and
// only when these had time to answer, and a collector to pass units on, a far one is asked for
// an entry that pushes may still complete. On the first round each peer is
// asked for the units of its own slot that are still lacking, several peers at a time;
// a peer without units left to give is asked for everything, because the peer may have
// completed the payload. On the second round each in turn is asked for everything, and
// then the leader, whose link coded entries are to spare.
//
// An entry is stuck when a pass brought nothing although every peer answered or has
// long been silent; or when several passes brought nothing. The Puller goes on trying,
// but only a snapshot may help.
//
// Invariant: an entry is on order at a peer once at a time, and every order ends
// with an answer or after Timeout.
type Puller struct {
	self uint64
	// The options, small: a node has many groups.
	patience, timeout, hedge int16
	pushed                   int16 // how many ticks pushes took of late, in eighths: see sweep
	round                    int32 // counts calls of Plan, to see which entries are gone
	batch                    int
	near                     func(id uint64) bool

	members []uint64
	peers   map[uint64]*pullPeer
	wants   map[ecraft.ID]*wanted
	onOrder int // bytes
	now     int // tick of the last one
}

// wanted is an entry that is being pulled.
type wanted struct {
	seen   int32    // round of Plan in which it was last lacking
	since  int      // tick at which it was first lacking
	again  int      // tick from which on it may be asked for again
	need   int      // units lacking when the pass began
	cursor int      // position in the order of peers
	passes int      // without progress
	unsure []uint64 // peers that did not answer in this pass, and may be there
	orders []order
	stuck  bool
	helped bool // a peer answered
}

// order is a question to a peer that is not answered yet.
type order struct {
	peer  uint64
	tick  int
	bytes int
}

// NewPuller returns a Puller for the node self.
func NewPuller(self uint64, o PullerOptions) *Puller {
	if o.Patience <= 0 {
		o.Patience = 2
	}
	if o.Timeout <= 0 {
		o.Timeout = 2
	}
	if o.Hedge <= 0 {
		o.Hedge = 2
	}
	if o.Batch <= 0 {
		o.Batch = 4 << 20
	}
	ticks := func(n int) int16 { return int16(min(n, math.MaxInt16)) }
	// The maps come with their first entries: most groups are idle.
	return &Puller{self: self, patience: ticks(o.Patience), timeout: ticks(o.Timeout), hedge: ticks(o.Hedge), batch: o.Batch, near: o.Near}
}

// SetMembers sets the members of the group. Only members are asked, and the leader.
func (p *Puller) SetMembers(ids []uint64) {
	p.members = slices.Clone(ids)
	for id := range p.peers {
		if !slices.Contains(ids, id) {
			delete(p.peers, id)
		}
	}
}

// Idle reports whether no units are on order.
func (p *Puller) Idle() bool { return p.onOrder == 0 }

// Stuck returns the lowest index of a stuck entry.
func (p *Puller) Stuck() (index uint64, ok bool) {
	for id, w := range p.wants {
		if w.stuck && (!ok || id.Index < index) {
			index, ok = id.Index, true
		}
	}
	return index, ok
}

// IsStuck reports whether an entry is stuck.
func (p *Puller) IsStuck(id ecraft.ID) bool {
	w := p.wants[id]
	return w != nil && w.stuck
}

// Heard notes that a peer is alive. One that was silent for long was not asked of late: what seemed stuck may be there.
func (p *Puller) Heard(from uint64) {
	peer := p.peers[from]
	if peer == nil {
		return
	}
	if peer.unanswered >= silentRounds {
		for _, w := range p.wants {
			w.stuck, w.passes, w.again = false, 0, p.now
		}
	}
	peer.unanswered = 0
}

// Answered notes that a peer answered for an entry, with units or without.
func (p *Puller) Answered(from uint64, id ecraft.ID) {
	p.Heard(from)
	peer := p.peers[from]
	if peer == nil {
		return // it has left
	}
	if w := p.wants[id]; w != nil {
		w.helped = true
		gaveUp := slices.Contains(w.unsure, from)
		w.unsure = slices.DeleteFunc(w.unsure, func(id uint64) bool { return id == from }) // late, but sure
		w.orders = slices.DeleteFunc(w.orders, func(o order) bool {
			if o.peer != from {
				return false
			}
			p.closed(o)
			if !gaveUp { // or it may be the answer to the order before
				p.answered(peer, o)
			}
			return true
		})
	}
	p.spoke(peer)
}

// Plan appends to out the questions of a tick, given the entries that lack units,
// oldest first. It may be called at any time, also again within a tick when answers
// came.
func (p *Puller) Plan(now int, missing []Lacking, leader uint64, out []Ask) []Ask {
	if len(missing) == 0 && len(p.wants) == 0 {
		return out
	}
	p.round++
	p.now = now
	for i := range missing {
		p.expire(p.want(&missing[i], now), now)
	}
	p.sweep()
	first := len(out)
	room := p.batch - p.onOrder
	full := p.onOrder > 0 && room < min(AskBytes, p.batch/4)
	for turn := askNext; turn <= askRest; turn++ {
		for i := range missing {
			l := &missing[i]
			if p.turn(l) != turn || turn > askNext && p.onOrder >= p.batch || turn == askRest && full {
				continue
			}
			w := p.wants[l.ID]
			if len(w.orders) == 0 && now >= w.again && (l.Urgent || l.Overdue || now-w.since >= p.waits()) {
				out = p.ask(w, l, now, leader, out, first)
			}
		}
	}
	for _, a := range out[first:] {
		slices.SortFunc(a.Wants, func(a, b Want) int { return cmp.Compare(a.Index, b.Index) })
	}
	return out
}

// The order in which entries are asked for.
const (
	askNext   = iota
	askUrgent // that somebody may have
	askInVain // urgent, and nobody had it of late
	askRest
)

// turn returns when it is an entry's turn to be asked for.
func (p *Puller) turn(l *Lacking) int {
	switch {
	case l.Next:
		return askNext
	case !l.Urgent:
		return askRest
	case p.wants[l.ID].stuck:
		return askInVain
	}
	return askUrgent
}

// want returns the state of an entry that is lacking.
func (p *Puller) want(l *Lacking, now int) *wanted {
	w := p.wants[l.ID]
	if w == nil {
		w = &wanted{since: now, need: l.Need}
		if p.wants == nil {
			p.wants = map[ecraft.ID]*wanted{}
		}
		p.wants[l.ID] = w
	}
	if l.Need < w.need {
		w.stuck, w.passes = false, 0 // somebody had something
	}
	w.seen = p.round
	return w
}

// waits is for how many ticks pushes are waited for: a quarter longer than they took of late.
func (p *Puller) waits() int { return max(int(p.patience), 1+int(p.pushed)*5/(4*8)) }

// sweep forgets the entries that are lacking no more. It learns from them how many ticks pushes take:
// the longest; and when entries were complete sooner, an eighth of the difference less.
// Where a peer answered, waiting for pushes was in vain.
func (p *Puller) sweep() {
	took := int16(-1)
	for id, w := range p.wants {
		if w.seen != p.round {
			if took = max(took, 0); !w.helped {
				took = max(took, int16(8*min(p.now-w.since, slowest)))
			}
			for _, o := range w.orders {
				p.closed(o)
			}
			delete(p.wants, id)
		}
	}
	if took >= 0 {
		p.pushed = max(took, p.pushed-(p.pushed-took+7)/8)
	}
}

// expire gives up orders that were not answered in time. A peer is charged with one
// round a tick, however many orders were left.
func (p *Puller) expire(w *wanted, now int) {
	w.orders = slices.DeleteFunc(w.orders, func(o order) bool {
		peer := p.peers[o.peer]
		if peer != nil && !peer.due(o, now) {
			return false
		}
		p.closed(o)
		if peer != nil {
			p.late(peer, now)
			if peer.unanswered < silentRounds {
				w.unsure = append(w.unsure, o.peer)
			}
		}
		return true
	})
}

// ask orders units that an entry lacks from the next peers in its order.
func (p *Puller) ask(w *wanted, l *Lacking, now int, leader uint64, out []Ask, first int) []Ask {
	var buf [16]uint64
	ring := p.ring(l.Header, l.Index, leader, buf[:0])
	left, own := l.Need, l.OwnHeld
	for left > 0 {
		if w.cursor >= len(ring) && len(w.orders) > 0 {
			return out // first the answers of several peers that were asked together
		}
		if w.cursor > 2*len(ring) {
			p.endPass(w, l.Need, now)
			return out
		}
		peer := leader
		if w.cursor < 2*len(ring) {
			peer = ring[w.cursor%len(ring)]
		}
		if p.hedges(w, l, ring, now) && !p.near(peer) {
			return out
		}
		if !p.mayAsk(peer, now) {
			w.cursor++
			continue
		}
		if left == l.Need && !l.Urgent && !l.Next && !p.hasRoom(p.peers[peer]) {
			return out
		}
		want := Want{ID: l.ID, Need: left, OwnHeld: own}
		if slot := l.Header.SlotOf(peer); slot >= 0 && slot < len(l.First) {
			want.Theirs = int(l.First[slot])
			if n := int(l.Header.Units[slot]) - want.Theirs; n > 0 && w.cursor < len(ring) {
				want.Need = min(left, n)
			}
		}
		bytes := want.Need * l.Header.UnitLen()
		if !l.Next && p.onOrder > 0 && p.onOrder+bytes > p.batch {
			return out
		}
		out = p.put(out, first, peer, want, bytes)
		w.cursor++
		w.orders = append(w.orders, order{peer: peer, tick: now, bytes: bytes})
		p.ordered(p.peers[peer], bytes, now)
		left, own = left-want.Need, own+want.Need
	}
	return out
}

// hedges reports whether far members are not to be asked for an entry yet.
func (p *Puller) hedges(w *wanted, l *Lacking, ring []uint64, now int) bool {
	return p.near != nil && !l.Urgent && !l.Overdue && now-w.since < p.waits()+int(p.hedge) &&
		len(ring) > 0 && p.near(ring[0])
}

// endPass notes that all peers have been asked, and lets the entry be tried again after
// a while.
func (p *Puller) endPass(w *wanted, need, now int) {
	w.passes++
	if need < w.need {
		w.passes = 0
	}
	if w.passes >= stuckPasses || w.passes > 0 && len(w.unsure) == 0 {
		w.stuck = true
	}
	w.need, w.unsure, w.cursor, w.again = need, nil, 0, now+int(p.timeout)
}

// ring appends the peers to ask for an entry before the leader, in order: the slots
// behind the own slot, then members without a slot, the encoder among them. For a node
// without units of its own, slots with units come before all slots but the next, and each
// entry begins with another of them. Near members come first.
func (p *Puller) ring(h *ecraft.Header, index, leader uint64, dst []uint64) []uint64 {
	slot := h.SlotOf(p.self)
	bare := slot >= 0 && h.Units[slot] == 0
	slots := func(wanted func(at int) bool) {
		for i := 1; i <= h.Slots; i++ {
			at := (slot + i) % h.Slots
			if id := h.Members[at]; id != p.self && id != leader && wanted(at) && slices.Contains(p.members, id) {
				dst = append(dst, id)
			}
		}
	}
	next := (slot + 1) % h.Slots
	if bare {
		slots(func(at int) bool { return at == next && h.Units[at] == 0 })
		from := len(dst)
		slots(func(at int) bool { return h.Units[at] > 0 })
		if holders := dst[from:]; len(holders) > 0 {
			rotate(holders, int(index%uint64(len(holders))))
		}
	}
	slots(func(at int) bool { return !bare || at != next && h.Units[at] == 0 })
	for _, id := range p.members {
		if id != p.self && id != leader && h.SlotOf(id) < 0 {
			dst = append(dst, id)
		}
	}
	if p.near != nil {
		slices.SortStableFunc(dst, func(a, b uint64) int { return p.far(a) - p.far(b) })
	}
	return dst
}

// rotate moves the first n members behind the others.
func rotate(ids []uint64, n int) {
	slices.Reverse(ids[:n])
	slices.Reverse(ids[n:])
	slices.Reverse(ids)
}

// far is 1 for members that are not near.
func (p *Puller) far(id uint64) int {
	if p.near(id) {
		return 0
	}
	return 1
}

// mayAsk reports whether a peer is worth asking, because the peer answered of late or
// is due to be tried again.
func (p *Puller) mayAsk(id uint64, now int) bool {
	if id == 0 || id == p.self {
		return false
	}
	peer := p.peers[id]
	if peer == nil {
		peer = p.newPeer(now)
		if p.peers == nil {
			p.peers = map[uint64]*pullPeer{}
		}
		p.peers[id] = peer
	}
	return peer.unanswered < silentRounds || now-peer.asked >= probeRounds*int(p.timeout)
}

// put adds a want to the peer's last Ask of this round, or to a new Ask if there is
// none or the last is full.
func (p *Puller) put(out []Ask, first int, to uint64, want Want, bytes int) []Ask {
	at := len(out) - 1
	for at >= first && out[at].To != to {
		at--
	}
	if at < first || out[at].bytes+bytes > AskBytes || len(out[at].Wants) == maxWants {
		at = len(out)
		out = append(out, Ask{To: to})
	}
	a := &out[at]
	a.Wants = append(a.Wants, want)
	a.bytes += bytes
	return out
}

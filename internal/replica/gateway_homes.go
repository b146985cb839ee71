// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package replica

import (
	"slices"

	"github.com/weftraft/weft/internal/members"
	"github.com/weftraft/weft/internal/wire"
	"github.com/weftraft/weft/raft"
)

// attachment is what a gateway and its home have with each other.
type attachment struct {
	id       uint64        // of the home; 0: none
	number   uint64        // counted over all attachments
	stream   wire.StreamID // zero: no report has come
	received uint64        // counted reports, without a gap
	mark     logMark
	heardAt  uint64 // tick of the last report
	ledAt    uint64 // tick at which the home knew a leader
	since    uint64 // tick of the beginning
	declines uint64 // tick of the first query that the home did not answer, since the last that it did
	leaves   bool   // the home is about to stop, and drains says until when the gateway stays
}

// giveUp has the next tick move the gateway.
func (g *Gateway) giveUp() {
	h := &g.home
	*h = attachment{id: h.id, number: h.number + 1, heardAt: g.ticks - min(g.ticks, maxRoundPatience*uint64(g.cfg.ElectionTick)), ledAt: g.ticks, since: g.ticks}
}

// lookAtHome tells the home that the gateway lives, or gives the home up.
func (g *Gateway) lookAtHome() {
	h, patience, homes := &g.home, uint64(g.cfg.ElectionTick), g.candidates()
	others, attached := len(homes) > 1, h.stream != (wire.StreamID{})
	removed := attached && len(homes) > 0 && !slices.Contains(homes, h.id)
	if !attached { // after each round without an answer homes get more time: they may be far
		patience = max(2, patience/3) * uint64(min(maxRoundPatience, 1+g.misses/max(1, len(homes))))
	}
	switch {
	case h.id == raft.None:
		return // Flush looks for one
	case others && g.homeBehind():
		g.restless = g.ticks + 20*patience // or a knock would bring the gateway back, if the home is near
		fallthrough
	case removed, h.leaves && g.ticks >= g.drains, others && attached && g.ticks-h.ledAt >= patience, g.ticks-h.heardAt >= patience:
		g.moveHome()
	case !h.leaves && others && attached && (h.declines > 0 && g.ticks-h.declines >= patience/2 ||
		(h.id == g.lead || g.better != raft.None) && g.ticks-h.since >= patience && g.ticks >= g.restless):
		g.restless, g.drains, h.declines = g.ticks+20*patience, g.ticks+2, 0
		fallthrough
	default:
		g.attach(false)
		g.knock()
	}
}

// knock asks a near node whether it can be the home, if the present one is not near. The node answers that it does not
// know the stream, and who leads.
func (g *Gateway) knock() {
	h := &g.home
	if len(g.near) == 0 || slices.Contains(g.near, h.id) || h.stream == (wire.StreamID{}) || g.ticks < g.restless {
		return
	}
	if id := g.near[g.ticks%uint64(len(g.near))]; id != g.lead {
		g.post(id, wire.Attach{Life: g.cfg.Boot, Number: h.number, Stream: h.stream})
	}
}

// homeBehind reports whether the home lacks an entry that the leader had long ago.
func (g *Gateway) homeBehind() bool {
	return slices.ContainsFunc(g.outbox.batches, func(b *batch) bool {
		return b.accepted && b.index > g.home.mark.index && g.ticks-b.sentAt >= 3*uint64(g.cfg.ElectionTick)
	})
}

// moveHome attaches to another node, if there is one: to a better one, or to the next, but not to the leader until all others
// were tried.
func (g *Gateway) moveHome() {
	homes := g.candidates()
	if len(homes) == 0 {
		return
	}
	g.misses++
	if g.home.stream != (wire.StreamID{}) {
		g.misses = 0
		g.attach(true)
	}
	i, found := slices.BinarySearch(homes, g.home.id)
	switch {
	case g.home.id == raft.None:
		i = int(g.cfg.ID % uint64(len(homes)))
	case found:
		i++
	}
	next := homes[i%len(homes)]
	if next == g.lead && g.misses < len(homes)-1 {
		next = homes[(i+1)%len(homes)]
	}
	if g.better != raft.None {
		next = g.better
		g.seen.Nearer++
	}
	g.home = attachment{id: next, number: g.home.number + 1, heardAt: g.ticks, ledAt: g.ticks, since: g.ticks}
	g.better, g.drains = raft.None, 0
	g.attach(false)
}

// candidates returns the nodes that may be the next home: members, as far as is known, unless none of them has answered twice. Of
// the others each is silent, and costs the calls a wait.
func (g *Gateway) candidates() []uint64 {
	of := slices.DeleteFunc(slices.Clone(g.homes), func(id uint64) bool { return !members.Has(g.members, id) })
	if g.misses >= 2*len(of) {
		return g.homes
	}
	return of
}

// attach tells the home what the gateway has.
func (g *Gateway) attach(leaves bool) {
	h := &g.home
	g.post(h.id, wire.Attach{Life: g.cfg.Boot, Number: h.number, Stream: h.stream, Received: h.received, Leaves: leaves})
}

// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package exhaust

import (
	"fmt"
	"maps"
	"slices"

	pb "go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"

	"github.com/weftraft/weft/ecraft"
	"github.com/weftraft/weft/internal/members"
	"github.com/weftraft/weft/leases"
	"github.com/weftraft/weft/rafttest/internal/holdings"
)

// check returns what is wrong in a world, or "". It looks only at the invariants that the last
// act can break.
func (w *world) check() string {
	if w.broken != "" {
		return w.broken
	}
	for i, n := range w.nodes {
		if n == nil {
			continue
		}
		if wrong := w.stale(n); wrong != "" {
			return wrong
		}
		if w.touched>>i&1 == 0 {
			continue
		}
		if wrong := w.held(n); wrong != "" {
			return wrong
		}
		for _, m := range w.nodes {
			if m == nil || m == n {
				continue
			}
			if wrong := matches(n, m); wrong != "" {
				return wrong
			}
		}
	}
	if w.touched != 0 {
		return w.recoverable()
	}
	return ""
}

// stale reports a read that a node would answer by its lease and that would miss a
// write of which a client may have been told.
func (w *world) stale(n *state) string {
	if n.permit == nil {
		return ""
	}
	i, ok := n.permit.ReadIndex(leases.InstantOf(w.at))
	if ok && uint64(i) < w.hist.acked {
		return fmt.Sprintf("stale read: node %d answers reads by its lease at index %d; entry %d is committed and acknowledged", n.node+1, i, w.hist.acked)
	}
	return ""
}

// matches checks log matching: up to the last index at which two logs have an entry of
// one term, the logs are equal.
func matches(a, b *state) string {
	same := false
	for i := min(a.disk.last(), b.disk.last()); i > max(a.disk.base, b.disk.base); i-- {
		x, y := a.disk.at(i), b.disk.at(i)
		if x == y {
			return ""
		}
		if same = same || x.term == y.term; same && (x.term != y.term || x.what != y.what) {
			return fmt.Sprintf("log matching: entry %d of node %d (term %d) is not that of node %d (term %d)", i, a.node+1, x.term, b.node+1, y.term)
		}
	}
	return ""
}

// held checks that a disk has the units that headers assign its node, in each entry and
// in its riders. Riders of an entry that a node has released may lack units, because their
// sender may have been unable to make them.
func (w *world) held(n *state) string {
	released := uint64(0)
	for _, m := range w.nodes {
		if m != nil {
			released = max(released, m.disk.base)
		}
	}
	for _, e := range n.disk.log {
		if e.wrong != nil {
			return fmt.Sprintf("assigned means held: entry %d at node %d: %v", e.index, n.node+1, e.wrong)
		}
		for k, units := range e.riders {
			r := e.header.Riders[k]
			about := n.disk.at(r.Index)
			if about == nil || about.header == nil || r.Index <= released {
				continue
			}
			slot := about.header.SlotOf(uint64(n.node + 1))
			if slot < 0 {
				continue
			}
			if want := int(r.Totals[slot]) - about.header.BaseOf(uint64(n.node+1)); want > 0 && units != want {
				return fmt.Sprintf("assigned means held: entry %d at node %d carries %d units of entry %d; its header says %d", e.index, n.node+1, units, r.Index, want)
			}
		}
	}
	return ""
}

// whole stands for more units than any entry needs.
const whole = 1 << 20

// holds returns how many units of an entry a disk holds, as its log says.
func (d *image) holds(index, term uint64) int {
	if d.base >= index {
		return whole // released: the node knows that the entry is committed, and its payload
	}
	e := d.at(index)
	if e == nil || e.term != term {
		return 0
	}
	most := e.units
	for _, c := range d.log[index-d.base:] {
		for k, units := range c.riders {
			if r := c.header.Riders[k]; r.Index == index && r.Term == term {
				most = max(most, e.units+units)
			}
		}
	}
	return most
}

// recoverable checks that every node that may yet lead can restore each committed coded
// entry from any majorities that it may lead with.
func (w *world) recoverable() string {
	var cands []candidacy
	for i, f := range w.hist.committed {
		need, index := 0, uint64(i+1)
		for _, n := range w.nodes {
			if n == nil {
				continue
			}
			if e := n.disk.at(index); e != nil && e.term == f.term && e.header != nil && e.header.Kind == ecraft.Coded {
				need = e.header.D
			}
		}
		if need == 0 {
			continue
		}
		if cands == nil {
			cands = w.candidacies()
		}
		held := w.holdings(index, f.term)
		for _, c := range cands {
			if least := c.least(&held); least < need {
				return fmt.Sprintf("recoverability: committed entry %d of term %d needs %d units; node %d, which may lead with majorities of %v, can end up with %d of them: nodes hold %v",
					index, f.term, need, c.node+1, c.sets, least, held)
			}
		}
	}
	return ""
}

// holdings returns the units of an entry, by node.
func (w *world) holdings(index, term uint64) (held [mostNodes]int) {
	for i, n := range w.nodes {
		if n != nil {
			held[i] = n.disk.holds(index, term)
		}
	}
	return held
}

// candidacy is a way in which a node may yet come to lead, and the sets of voters that
// it then needs majorities of.
type candidacy struct {
	node int
	sets [][]uint64
	// quorums are the sets of nodes, by bit, that have the node and these majorities, without
	// those that have another one in them.
	quorums []int
}

func newCandidacy(node int, sets [][]uint64) candidacy {
	c := candidacy{node: node, sets: sets}
	for q := range 1 << mostNodes {
		if q>>node&1 == 1 && hasMajorities(q, sets) && !slices.ContainsFunc(c.quorums, func(less int) bool { return less&q == less }) {
			c.quorums = append(c.quorums, q)
		}
	}
	return c
}

// candidacies returns the ways in which nodes may win with what is on disks.
func (w *world) candidacies() (list []candidacy) {
	for _, n := range w.nodes {
		if n == nil {
			continue
		}
		if n.runs == nil {
			n.runs = n.candidacies()
		}
		for _, c := range slices.Concat(n.runs, w.learned(n)) {
			if w.electable(c) {
				list = append(list, c)
			}
		}
	}
	return list
}

// learned returns the ways in which a node may campaign under a configuration that another has
// in force, at an entry that the node has and cannot apply.
func (w *world) learned(n *state) (list []candidacy) {
	for _, m := range w.nodes {
		if m == nil || !m.up || !n.up || m.applied <= n.applied || m.applied > n.disk.last() || proto.Equal(m.conf, n.conf) {
			continue
		}
		if n.disk.termAt(m.applied) == m.disk.termAt(m.applied) && members.Votes(m.conf, uint64(n.node+1)) {
			list = append(list, newCandidacy(n.node, n.disk.needs(m.applied, m.conf)))
		}
	}
	return list
}

// candidacies returns the ways in which a node may campaign: under the configuration of
// now, or of after a restart.
func (n *state) candidacies() []candidacy {
	list := []candidacy{}
	at := map[uint64]*pb.ConfState{n.disk.base: n.disk.conf}
	if n.up {
		at[n.applied] = n.conf
	}
	for _, index := range slices.Sorted(maps.Keys(at)) {
		conf := at[index]
		if members.Votes(conf, uint64(n.node+1)) && !n.disk.appliesFirst(index) {
			list = append(list, newCandidacy(n.node, n.disk.needs(index, conf)))
		}
	}
	return list
}

// appliesFirst reports whether a node that has applied an index applies a later change of
// the members before it may campaign: the change is committed, and no payload before it
// is missing.
func (d *image) appliesFirst(index uint64) bool {
	for i := index + 1; i <= min(d.commit, d.last()); i++ {
		switch e := d.at(i); {
		case e == nil:
		case e.pb.GetType() != pb.EntryNormal:
			return true
		case !e.whole && d.holds(i, e.term) < e.header.D:
			return false
		}
	}
	return false
}

// needs returns the sets of voters whose majorities a node needs that has applied an
// index: those in force, and if two or more changes behind are not applied, those of all.
func (d *image) needs(index uint64, conf *pb.ConfState) [][]uint64 {
	needs := holdings.Sets(conf)
	coming, changes := needs, 0
	for i := max(index, d.base) + 1; i <= d.last(); i++ {
		cc := changeOf(d.at(i).pb)
		if cc == nil {
			continue
		}
		if conf = holdings.Becomes(conf, cc); conf == nil {
			return needs
		}
		changes++
		coming = append(coming, holdings.Sets(conf)...)
	}
	if changes > 1 {
		return coming
	}
	return needs
}

// electable reports whether a majority of each set has a log that ends no later.
func (w *world) electable(c candidacy) bool {
	d := &w.nodes[c.node].disk
	for _, voters := range c.sets {
		_, most := holdings.Majority(voters, func(id uint64) bool {
			n := w.nodes[id-1]
			if n == nil {
				return false
			}
			mine, its := d.termAt(d.last()), n.disk.termAt(n.disk.last())
			return mine > its || mine == its && d.last() >= n.disk.last()
		})
		if !most {
			return false
		}
	}
	return true
}

// least returns the fewest units that a candidate can end up with.
func (c *candidacy) least(held *[mostNodes]int) int {
	least := whole
	for _, q := range c.quorums {
		sum := 0
		for i, units := range held {
			sum += units * (q >> i & 1)
		}
		least = min(least, sum)
	}
	return least
}

func hasMajorities(subset int, sets [][]uint64) bool {
	for _, voters := range sets {
		in := 0
		for _, id := range voters {
			in += subset >> (id - 1) & 1
		}
		if in <= len(voters)/2 {
			return false
		}
	}
	return true
}

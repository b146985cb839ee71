// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package rafttest

import (
	"fmt"
	"slices"

	pb "go.etcd.io/raft/v3/raftpb"
)

// view is the disks of a cluster at one moment.
type view struct {
	t     *truth
	disks map[uint64]*image
	// upTo is the last entry whose riders count.
	upTo uint64
}

// whole stands for more units than any entry needs: the node has released it.
const whole = 1 << 20

func (v *view) holds(node uint64, e entryName) int { return v.t.holds(v.disks[node], e, v.upTo) }

// least returns the sum of the least k holdings of an entry among voters.
func (v *view) least(voters []uint64, k int, e entryName) int {
	held := make([]int, 0, maxNodes)
	for _, id := range voters {
		held = append(held, v.holds(id, e))
	}
	slices.Sort(held)
	sum := 0
	for _, h := range held[:min(k, len(held))] {
		sum += h
	}
	return sum
}

// sets returns the voter sets of a configuration.
func sets(conf *pb.ConfState) [][]uint64 {
	if isJoint(conf) {
		return [][]uint64{conf.GetVoters(), conf.GetVotersOutgoing()}
	}
	return [][]uint64{conf.GetVoters()}
}

// covered checks an entry just committed by a leader: the units of any half of
// the voters (a majority, for an odd number) restore the entry.
func (v *view) covered(sets [][]uint64, e entryName) error {
	need := v.t.facts[e].need()
	for _, voters := range sets {
		if sum := v.least(voters, (len(voters)+1)/2, e); len(voters) > 0 && sum < need {
			return fmt.Errorf("entry %d of term %d is committed; some %d of the voters %v hold %d units, of %d that it needs%s",
				e.index, e.term, (len(voters)+1)/2, voters, sum, need, v.table(voters, e))
		}
	}
	return nil
}

// table lists the nodes' units of an entry.
func (v *view) table(nodes []uint64, e entryName) string {
	text := ""
	for _, id := range nodes {
		switch h := v.holds(id, e); h {
		case whole:
			text += fmt.Sprintf(" %d:released", id)
		default:
			text += fmt.Sprintf(" %d:%d", id, h)
		}
	}
	return text
}

// candidacy is a way in which a node may yet come to lead: by its configuration
// of now, or of after a restart, with the unapplied configurations in its log
// whose majorities are then needed as well.
type candidacy struct {
	node  uint64
	needs [][]uint64
}

// candidacies returns those ways in which some node may win an election with
// what is on the disks: a majority of each set has a log that is no longer than
// the node's own. live is the configuration each running node goes by.
func (v *view) candidacies(live map[uint64]confAt) []candidacy {
	var found []candidacy
	for id, im := range v.disks {
		confs := []confAt{{released(im), im.checkpoint.GetMetadata().GetConfState()}}
		// A node that has a snapshot goes by its members, whatever its host has applied.
		if at, ok := live[id]; ok && at.index >= released(im) {
			confs = append(confs, at)
		}
		for _, at := range confs {
			if !isVoter(at.conf, id) || len(at.conf.GetVoters()) == 0 || v.appliesFirst(id, im, at) {
				continue
			}
			c := candidacy{node: id, needs: v.needs(im, at)}
			if v.electable(c) {
				found = append(found, c)
			}
		}
	}
	slices.SortFunc(found, func(a, b candidacy) int { return int(a.node) - int(b.node) })
	return found
}

// appliesFirst reports whether a node under a configuration applies a later
// configuration before it may campaign: the node knows the later one to be
// committed, and lacks no payload before.
func (v *view) appliesFirst(node uint64, im *image, at confAt) bool {
	for _, e := range im.entries {
		i, name := e.GetIndex(), entryName{e.GetIndex(), e.GetTerm()}
		switch {
		case i <= at.index:
		case i > im.state.commit:
			return false
		case e.GetType() != pb.EntryNormal:
			return true
		case v.t.coded(name) && v.holds(node, name) < v.t.facts[name].need():
			return false
		}
	}
	return false
}

// needs returns the voter sets whose majorities a node needs under a
// configuration: the sets of the configuration, and if the log has more than
// one further configuration, the sets of each that ever came into force.
func (v *view) needs(im *image, at confAt) [][]uint64 {
	needs := sets(at.conf)
	var unapplied []uint64
	for _, e := range im.entries {
		if e.GetIndex() > at.index && e.GetType() != pb.EntryNormal {
			unapplied = append(unapplied, e.GetIndex())
		}
	}
	if len(unapplied) < 2 {
		return needs
	}
	for _, known := range v.t.confs {
		if slices.Contains(unapplied, known.index) {
			needs = append(needs, sets(known.conf)...)
		}
	}
	return needs
}

// electable reports whether a majority of each set would vote for the node.
func (v *view) electable(c candidacy) bool {
	term, index := end(v.disks[c.node])
	for _, voters := range c.needs {
		votes := 0
		for _, id := range voters {
			im := v.disks[id]
			if im == nil {
				continue
			}
			if t, i := end(im); term > t || term == t && index >= i {
				votes++
			}
		}
		if votes <= len(voters)/2 {
			return false
		}
	}
	return true
}

// end returns the term and index of the last entry of an image.
func end(im *image) (term, index uint64) {
	term, _ = im.term(im.last())
	return term, im.last()
}

// recoverable checks that whoever may yet lead can restore a committed entry.
func (v *view) recoverable(cands []candidacy, e entryName) error {
	fact := v.t.facts[e]
	if fact == nil {
		return nil // of before the first snapshot
	}
	var fine [][]uint64 // sets any majority of which can restore the entry
	for _, c := range cands {
		if slices.ContainsFunc(c.needs, func(voters []uint64) bool {
			return slices.ContainsFunc(fine, func(f []uint64) bool { return slices.Equal(f, voters) })
		}) {
			continue
		}
		i := slices.IndexFunc(c.needs, func(voters []uint64) bool { return v.least(voters, len(voters)/2+1, e) >= fact.need() })
		if i >= 0 {
			fine = append(fine, c.needs[i])
			continue
		}
		if err := v.decides(c, e, fact.need()); err != nil {
			return err
		}
	}
	return nil
}

// decides checks that a candidate can restore a committed entry: every set of
// nodes with a majority of each needed voter set, and with the candidate
// itself, holds enough units together, or has a node that released the entry.
func (v *view) decides(c candidacy, e entryName, need int) error {
	var all []uint64
	for _, voters := range c.needs {
		all = append(all, voters...)
	}
	slices.Sort(all)
	all = slices.Compact(all)
	for subset := range 1 << len(all) {
		if sum, ok := v.quorum(c, all, subset, e); ok && sum < need {
			return fmt.Errorf("committed entry %d of term %d needs %d units; node %d, which may lead with majorities of %v, can end up with %d of them%s",
				e.index, e.term, need, c.node, c.needs, sum, v.table(all, e))
		}
	}
	return nil
}

// quorum returns a set of nodes' units of an entry, and whether the candidate
// may decide with the set.
func (v *view) quorum(c candidacy, all []uint64, subset int, e entryName) (sum int, ok bool) {
	in := func(id uint64) bool { return subset>>slices.Index(all, id)&1 == 1 }
	if !in(c.node) && slices.Contains(all, c.node) {
		return 0, false
	}
	for _, voters := range c.needs {
		n := 0
		for _, id := range voters {
			if in(id) {
				n++
			}
		}
		if n <= len(voters)/2 {
			return 0, false
		}
	}
	for _, id := range all {
		if in(id) {
			sum += v.holds(id, e)
		}
	}
	return sum, true
}

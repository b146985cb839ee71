// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package rafttest

import (
	"fmt"
	"slices"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/internal/members"
	"github.com/weftraft/weft/rafttest/internal/holdings"
)

// view is the disks of a cluster at one moment.
type view struct {
	holdings.View
	t     *truth
	disks [maxNodes + 1]*image // by node
}

// newView looks at no disk yet; riders count in entries up to an index.
func newView(t *truth, upTo uint64) *view {
	return &view{t: t, View: holdings.View{Truth: t.Truth, Disks: make([]holdings.Disk, maxNodes+1), UpTo: upTo}}
}

// add has the view look at a node's disk.
func (v *view) add(node uint64, im *image) { v.disks[node], v.Disks[node] = im, im }

func (v *view) holds(node uint64, e entryName) int { return v.Holds(node, e.id()) }

// candidacy is a way in which a node may yet come to lead: by its configuration
// of now, or of after a restart, with the unapplied configurations in its log
// whose majorities are then needed as well.
type candidacy struct {
	node  uint64
	needs [][]uint64
}

// candidacies returns those ways in which some node may win an election with
// what is on the disks: a majority of each set has a log that is no longer than
// the node's own. live is the configuration each running node goes by, by node.
func (v *view) candidacies(live []confAt) []candidacy {
	var found []candidacy
	for i, im := range v.disks {
		if im == nil {
			continue
		}
		id := uint64(i)
		confs := [2]confAt{{released(im), im.checkpoint.GetMetadata().GetConfState()}, live[id]}
		for k, at := range confs {
			// A node that has a snapshot goes by its members, whatever its host has applied.
			if k > 0 && (at.conf == nil || at.index < confs[0].index) {
				continue
			}
			if !members.Votes(at.conf, id) || len(at.conf.GetVoters()) == 0 || v.appliesFirst(id, im, at) {
				continue
			}
			c := candidacy{node: id, needs: v.needs(im, at)}
			if v.electable(c) {
				found = append(found, c)
			}
		}
	}
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
		case v.t.Coded(name.id()) && v.holds(node, name) < v.t.Fact(name.id()).Need():
			return false
		}
	}
	return false
}

// needs returns the voter sets whose majorities a node needs under a
// configuration: the sets of the configuration, and if the log has more than
// one further configuration, the sets of each that ever came into force.
func (v *view) needs(im *image, at confAt) [][]uint64 {
	needs := holdings.Sets(at.conf)
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
			needs = append(needs, holdings.Sets(known.conf)...)
		}
	}
	return needs
}

// electable reports whether a majority of each set would vote for the node.
func (v *view) electable(c candidacy) bool {
	term, index := end(v.disks[c.node])
	return !slices.ContainsFunc(c.needs, func(voters []uint64) bool {
		_, most := holdings.Majority(voters, func(id uint64) bool {
			im, ok := v.Disk(id).(*image)
			if !ok {
				return false
			}
			t, i := end(im)
			return term > t || term == t && index >= i
		})
		return !most
	})
}

// end returns the term and index of the last entry of an image.
func end(im *image) (term, index uint64) {
	term, _ = im.term(im.last())
	return term, im.last()
}

// recoverable checks that whoever may yet lead can restore a committed entry.
func (v *view) recoverable(cands []candidacy, e entryName) error {
	fact := v.t.Fact(e.id())
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
		i := slices.IndexFunc(c.needs, func(voters []uint64) bool { return v.Least(voters, len(voters)/2+1, e.id()) >= fact.Need() })
		if i >= 0 {
			fine = append(fine, c.needs[i])
			continue
		}
		if err := v.decides(c, e, fact.Need()); err != nil {
			return err
		}
	}
	return nil
}

// decides checks that a candidate can restore a committed entry: every set of
// nodes with a majority of each needed voter set, and with the candidate
// itself, holds enough units together, or has a node that released the entry.
func (v *view) decides(c candidacy, e entryName, need int) error {
	all := members.Sorted(slices.Concat(c.needs...))
	for subset := range 1 << len(all) {
		if sum, ok := v.quorum(c, all, subset, e); ok && sum < need {
			return fmt.Errorf("committed entry %d of term %d needs %d units; node %d, which may lead with majorities of %v, can end up with %d of them%s",
				e.index, e.term, need, c.node, c.needs, sum, v.Table(all, e.id()))
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
		if _, most := holdings.Majority(voters, in); !most {
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

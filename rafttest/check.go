// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package rafttest

import (
	"errors"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/internal/world"
	"github.com/weftraft/weft/raft"
	"github.com/weftraft/weft/rafttest/internal/holdings"
)

// checker sees all nodes at once, and compares what each does with what all
// have done before. It is called after every step; each call costs about as
// much as what the step changed.
//
// Log matching is checked by induction: whatever entry a node has, its index
// and term name its content and the term of the entry before, in one register
// for all nodes. So to compare two logs up to an index is to compare two terms.
type checker struct {
	s *sim
	// leaders is the leader of each term: a process, because a restarted node
	// must not lead a term a second time.
	leaders map[uint64]reign
	// votes is whom a node voted for in a term.
	votes map[ballot]uint64
	// entries is the content of an entry, and the term of the one before.
	entries map[entryName]entryFact
	// committed is the term of each committed entry, by index; 0 if it is not
	// known (before a founding snapshot).
	committed []uint64
	// committedIn is the term of the leader that committed the entry, or more.
	committedIn []uint64
	// digests is the state after an index, where some node has looked.
	digests map[uint64]uint64
	// confs is the configurations that came into force, by index.
	confs []confAt
	// truth is what is known of coded entries; nil in a run without coding.
	truth *truth
	// lastCoded is the highest index at which some log had a coded entry.
	lastCoded uint64
	nodes     [maxNodes + 1]facts
	// mostCommitted is the highest commit index seen.
	mostCommitted uint64
}

type reign struct{ node, incarnation uint64 }

type ballot struct{ voter, term uint64 }

type entryFact struct {
	before  uint64 // term of the entry before
	content uint64 // hash of type and data
}

// facts is the checker's knowledge of a node.
type facts struct {
	// hard is the hard state of the running process.
	hard hardState
	// durable is the hard state that a restart must find.
	durable hardState
	// base and terms are the log as the state machine has it, written or not.
	base  entryName
	terms []uint64
	// applied is the last index applied in this run of the process.
	applied uint64
	// restored is the index of the last snapshot taken in.
	restored uint64
	// role and term are the last seen.
	role raft.StateType
	// lead is the last term whose leadership was checked for completeness.
	lead uint64
	// commit is the commit index last seen.
	commit uint64
	// own is the last entry that the process appended as a leader.
	own entryName
	// led says that the node was no follower at the last look at its budget.
	led bool
}

func (f *facts) last() uint64 { return f.base.index + uint64(len(f.terms)) }

func (f *facts) termOf(i uint64) (uint64, bool) {
	switch {
	case i == f.base.index:
		return f.base.term, true
	case i < f.base.index || i > f.last():
		return 0, false
	}
	return f.terms[i-f.base.index-1], true
}

func newChecker(s *sim) *checker {
	c := &checker{s: s,
		leaders: map[uint64]reign{},
		votes:   map[ballot]uint64{},
		entries: map[entryName]entryFact{},
		digests: map[uint64]uint64{},
	}
	if p := s.plan.coded; p != nil {
		c.truth = newTruth(p.prefix)
	}
	return c
}

// founded records the snapshot that the founding members share.
func (c *checker) founded(meta *pb.SnapshotMetadata, digest uint64) {
	index, term := meta.GetIndex(), meta.GetTerm()
	for uint64(len(c.committed)) <= index {
		c.committed = append(c.committed, 0)
		c.committedIn = append(c.committedIn, term)
	}
	c.committed[index] = term
	c.digests[index] = digest
	c.confs = append(c.confs, confAt{index, meta.GetConfState()})
	if c.truth != nil {
		c.truth.configured(index, meta.GetConfState())
	}
}

// started checks the findings of a restart, and takes the findings for the
// node's state.
func (c *checker) started(n *node, applied uint64) {
	f, im := &c.nodes[n.id], &n.disk.live
	if !c.s.opts.Outside && !keepsPromises(f.durable, im.state) {
		c.s.fail(stateMonotony, "node %d restarts with hard state %+v, but %+v was durable", n.id, im.state, f.durable)
		return
	}
	*f = facts{hard: im.state, durable: im.state, commit: im.state.commit}
	f.base = entryName{im.baseIndex, im.baseTerm}
	f.applied = max(applied, im.baseIndex)
	for _, e := range im.entries {
		c.appended(n, e)
	}
}

// keepsPromises reports whether the new hard state honours the terms and votes
// of the old.
func keepsPromises(old, now hardState) bool {
	return now.term > old.term || now.term == old.term && (old.vote == 0 || now.vote == old.vote)
}

// appended records that the node's log has an entry, in place of the old
// entries at the index and behind.
func (c *checker) appended(n *node, e *pb.Entry) {
	f := &c.nodes[n.id]
	i, term := e.GetIndex(), e.GetTerm()
	if i <= f.base.index || i > f.last()+1 {
		c.s.fail(logMatching, "node %d appends entry %d to a log from %d to %d", n.id, i, f.base.index+1, f.last())
		return
	}
	if had, _ := f.termOf(i); i <= f.hard.commit && i <= f.last() && had != term {
		c.s.fail(stateMachineSafety, "node %d replaces entry %d of term %d by one of term %d; it is committed (up to %d)", n.id, i, had, term, f.hard.commit)
		return
	}
	before, _ := f.termOf(i - 1)
	name := entryName{i, term}
	if c.truth != nil {
		c.looked(n, e, before)
		f.terms = append(f.terms[:i-f.base.index-1], term)
		return
	}
	fact := entryFact{before: before, content: world.Mix(world.MixInt(world.HashBegin, uint64(e.GetType())), e.GetData())}
	if known, ok := c.entries[name]; ok && known != fact {
		c.s.fail(logMatching, "node %d has entry %d of term %d with %+v; another had it with %+v", n.id, i, term, fact, known)
		return
	}
	c.entries[name] = fact
	f.terms = append(f.terms[:i-f.base.index-1], term)
}

// ready checks what a node asks to have written: a snapshot, entries and a hard
// state, any of which may be missing.
func (c *checker) ready(n *node, snap *pb.Snapshot, ents []*pb.Entry, hs *hardState) {
	f := &c.nodes[n.id]
	if !raft.IsEmptySnap(snap) {
		meta := snap.GetMetadata()
		f.base, f.terms = entryName{meta.GetIndex(), meta.GetTerm()}, nil
		if !c.wasCommitted(meta.GetIndex(), meta.GetTerm()) {
			c.s.fail(stateMachineSafety, "node %d takes a snapshot at %d of term %d, where nothing is committed", n.id, meta.GetIndex(), meta.GetTerm())
			return
		}
	}
	c.ownEntries(n, ents)
	for _, e := range ents {
		c.appended(n, e)
	}
	if hs != nil {
		if !keepsPromises(f.hard, *hs) {
			c.s.fail(stateMonotony, "node %d goes from hard state %+v to %+v", n.id, f.hard, *hs)
			return
		}
		old := f.hard.commit
		f.hard = *hs
		c.commits(n, old, hs.commit)
	}
	if f.role == raft.StateLeader && f.lead != f.hard.term {
		f.lead = f.hard.term
		c.leads(n)
	}
}

func (c *checker) wasCommitted(index, term uint64) bool {
	return index < uint64(len(c.committed)) && c.committed[index] == term
}

// commits checks that a node's commit index moves forward, over entries equal
// everywhere.
func (c *checker) commits(n *node, old, now uint64) {
	f := &c.nodes[n.id]
	if now < old {
		c.s.fail(commitMonotony, "node %d takes its commit index back from %d to %d", n.id, old, now)
		return
	}
	for i := old + 1; i <= now; i++ {
		term, ok := f.termOf(i)
		switch {
		case !ok && i < f.base.index:
			continue // in a snapshot, which was checked
		case !ok:
			c.s.fail(stateMachineSafety, "node %d commits up to %d; its log is from %d to %d", n.id, now, f.base.index+1, f.last())
			return
		}
		for uint64(len(c.committed)) <= i {
			c.committed = append(c.committed, 0)
			c.committedIn = append(c.committedIn, 0)
		}
		if had := c.committed[i]; had != 0 && had != term {
			c.s.fail(stateMachineSafety, "node %d commits entry %d of term %d; another committed one of term %d", n.id, i, term, had)
			return
		}
		if c.committed[i] == 0 {
			c.committed[i], c.committedIn[i] = term, f.hard.term
			c.s.reach.Commits++
		}
	}
}

// leads checks that a new leader has all entries committed before its term.
func (c *checker) leads(n *node) {
	c.plainLeads(n)
	f := &c.nodes[n.id]
	for i := uint64(len(c.committed)); i > 0; i-- {
		at := i - 1
		if c.committed[at] == 0 || c.committedIn[at] >= f.hard.term {
			continue
		}
		// By log matching, having the last is having all.
		if at < f.base.index {
			return
		}
		if term, ok := f.termOf(at); !ok || term != c.committed[at] {
			c.s.fail(leaderCompleteness, "node %d leads term %d without entry %d of term %d, committed in term %d (it has term %d there, its log ends at %d)",
				n.id, f.hard.term, at, c.committed[at], c.committedIn[at], term, f.last())
		}
		return
	}
}

// accepted checks that a node refuses no message of another node, unless messages
// are damaged on their way.
func (c *checker) accepted(n *node, m *pb.Message, err error) {
	damaged := c.s.plan.coded != nil && c.s.plan.coded.unitCorrupt+c.s.plan.coded.unitLies > 0
	if errors.Is(err, raft.ErrMalformedMessage) && !damaged && c.s.opts.Bug == noBug {
		c.s.fail(accepted, "node %d refuses what %d sent: %v", n.id, m.GetFrom(), err)
	}
}

// sight is what can be seen of a node from outside.
type sight struct {
	role         raft.StateType
	term, commit uint64
}

// observed looks at a node after a step: at its role and its commit index.
func (c *checker) observed(n *node, st sight, conf *pb.ConfState) {
	f, term := &c.nodes[n.id], st.term
	if st.role == raft.StateLeader {
		now := reign{n.id, n.incarnation}
		was, known := c.leaders[term]
		if known && was != now {
			c.s.fail(electionSafety, "node %d, start %d, leads term %d; node %d, start %d, led it", n.id, n.incarnation, term, was.node, was.incarnation)
			return
		}
		if !known {
			c.leaders[term] = now
			c.s.leaderElected(n, term)
		}
	}
	if commit, old := st.commit, f.commit; commit != old {
		if commit < old {
			c.s.fail(commitMonotony, "node %d takes its commit index back from %d to %d", n.id, old, commit)
			return
		}
		f.commit = commit
		c.noteCommits(n, conf, st)
		if st.role == raft.StateLeader && !c.s.opts.Outside && !c.learnt(n, commit) {
			count := c.s.countingSets(n, conf)
			c.majorityHolds(n, count, entryName{commit, term})
			c.covers(n, count, old, commit)
			c.s.wideCommit(n, len(count) > len(holdings.Sets(conf)))
			c.lookClosely()
			c.s.faults.committed(n, entryName{commit, term})
		}
	}
	f.role = st.role
}

// learnt reports whether a leader learnt at its election, from the others, of
// the commit of an entry of an earlier term: coding nodes ask.
func (c *checker) learnt(n *node, commit uint64) bool {
	term, ok := c.nodes[n.id].termOf(commit)
	return c.truth != nil && ok && c.wasCommitted(commit, term)
}

// majorityHolds checks that an entry which a leader has just committed is of
// the leader's term, and on the disks of a majority of each set of voters.
func (c *checker) majorityHolds(n *node, sets [][]uint64, e entryName) {
	for _, voters := range sets {
		holders, most := holdings.Majority(voters, func(id uint64) bool {
			d := c.s.node(id).disk
			return d != nil && d.durable.holds(e.index, e.term)
		})
		if !most {
			c.s.fail(commitDurability, "node %d, leader of term %d, commits entry %d; it is on %d disks of the voters %v", n.id, e.term, e.index, holders, voters)
		}
	}
}

// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package rafttest

import (
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/weftraft/weft/raft"
)

// status shows what nodes are and how far they have come.
func (s *script) status(a scriptArgs) {
	ids := numbers(a.words)
	if len(ids) == 0 {
		ids = s.ids
	}
	for _, id := range ids {
		n := s.nodes[id]
		if n == nil || n.rn == nil {
			fmt.Fprintf(&s.out, "%d down\n", id)
			continue
		}
		st := n.rn.BasicStatus()
		role := map[raft.StateType]string{raft.StateFollower: "follows", raft.StateLeader: "leads",
			raft.StateCandidate: "campaigns", raft.StatePreCandidate: "campaigns"}[st.RaftState]
		fmt.Fprintf(&s.out, "%d %s term %d: log %d..%d, commit %d, applied %d\n", id, role, st.GetTerm(),
			n.disk.live.baseIndex+1, n.disk.live.last(), st.GetCommit(), n.applied)
	}
}

// holdings shows what each disk durably holds of an entry.
func (s *script) holdings(a scriptArgs) error {
	if len(a.words) != 1 {
		return fmt.Errorf("holdings takes an index")
	}
	index := number(a.words[0])
	v := s.view()
	seen := map[uint64]bool{}
	for _, id := range s.ids {
		term, ok := s.nodes[id].disk.durable.term(index)
		if !ok || seen[term] || index <= s.nodes[id].disk.durable.baseIndex {
			continue
		}
		seen[term] = true
		e := entryName{index, term}
		fact := s.truth.Fact(e.id())
		if fact.Header == nil {
			fmt.Fprintf(&s.out, "%d/%d plain:", index, term)
		} else {
			fmt.Fprintf(&s.out, "%d/%d %v, %d units restore it:", index, term, fact.Header.Kind, fact.Need())
		}
		fmt.Fprintf(&s.out, "%s\n", v.Table(s.ids, e.id()))
	}
	if len(seen) == 0 {
		fmt.Fprintf(&s.out, "%d is in no log\n", index)
	}
	return nil
}

// view looks at all disks.
func (s *script) view() *view {
	v := newView(s.truth, math.MaxUint64)
	for _, n := range s.nodes {
		v.add(n.id, &n.disk.durable)
	}
	return v
}

// wrong checks the invariants and says which does not hold.
func (s *script) wrong() string {
	if s.truth == nil {
		return ""
	}
	most := uint64(0)
	for _, n := range s.nodes {
		most = max(most, released(&n.disk.durable))
	}
	v, live := s.view(), make([]confAt, maxNodes+1)
	committed := map[uint64]uint64{} // term by index
	for _, id := range s.ids {
		n := s.nodes[id]
		for _, im := range []*image{&n.disk.live, &n.disk.durable} {
			if err := s.read(n, im, most); err != nil {
				return err.Error()
			}
		}
		commit := n.disk.durable.state.commit
		if n.rn != nil {
			live[id] = confAt{n.applied, n.conf}
			commit = n.rn.BasicStatus().GetCommit()
		}
		for _, e := range n.disk.live.entries {
			i, term := e.GetIndex(), e.GetTerm()
			if had, ok := committed[i]; ok && i <= commit && had != term {
				return fmt.Sprintf("entry %d is committed as of term %d and of term %d", i, had, term)
			}
			if i <= commit {
				committed[i] = term
			}
		}
	}
	return s.decided(v, live, committed)
}

// decided checks what is committed: it stays what it was, and stays recoverable.
func (s *script) decided(v *view, live []confAt, committed map[uint64]uint64) string {
	for i, term := range committed {
		if had, ok := s.rules.committed[i]; ok && had != term {
			return fmt.Sprintf("entry %d was committed as of term %d; now it is of term %d", i, had, term)
		}
		s.rules.committed[i] = term
	}
	cands := v.candidacies(live)
	for _, i := range slices.Sorted(maps.Keys(s.rules.committed)) {
		if err := v.recoverable(cands, entryName{i, s.rules.committed[i]}); err != nil {
			return err.Error()
		}
	}
	return s.rules.broken
}

// read looks at all entries of an image.
func (s *script) read(n *scriptNode, im *image, releasedAnywhere uint64) error {
	before := im.baseTerm
	for _, e := range im.entries {
		if err := s.truth.Look(n.id, e, before); err != nil {
			return fmt.Errorf("node %d: %w", n.id, err)
		}
		if err := s.truth.Complete(n.id, e, releasedAnywhere); err != nil {
			return err
		}
		before = e.GetTerm()
	}
	return nil
}

// scriptEvents is what cores said that they did, each kind once.
type scriptEvents struct {
	order []string
}

// RecordCoding implements [raft.CodingRecorder].
func (e *scriptEvents) RecordCoding(ev raft.CodingEvent) {
	name := map[raft.CodingEventKind]string{
		raft.CodingFallback: "fallback", raft.CodingHedged: "hedge", raft.CodingRiderCommit: "commit by riders",
		raft.CodingRecovery: "recovery", raft.CodingRecovered: "recovered", raft.CodingCut: "cut", raft.CodingStuck: "stuck",
		raft.CodingSnapshot: "snapshot for the stuck", raft.CodingHandOver: "hand-over", raft.CodingLeftOut: "units left out",
		raft.CodingChecked: "change waits", raft.CodingRejected: "rejected", raft.CodingHeldBack: "held back",
	}[ev.Kind]
	if name != "" && !slices.Contains(e.order, name) {
		e.order = append(e.order, name)
	}
}

// take returns the events since it was last called.
func (e *scriptEvents) take() string {
	text := ""
	for _, name := range e.order {
		text += name + "\n"
	}
	e.order = nil
	if text == "" {
		return "none\n"
	}
	return text
}

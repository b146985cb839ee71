// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package leases

import (
	"fmt"
	"math"
	"slices"
)

// Bounds of a roster.
const (
	MaxSpans = 64  // spans with responders
	MaxNodes = 255 // responders of a span, and voters of a half
)

// AllVoters stands in [Want.Nodes] for the voters of the configuration in force.
// Learners to be responders, too, are named beside AllVoters.
const AllVoters NodeID = math.MaxUint64

// A Want says which nodes should be responders of a span, whether they can be at
// present or not. Tuned tells wishes of the tuner from those of an operator.
type Want struct {
	Span  Span
	Nodes []NodeID // ascending
	Tuned bool
}

// A Responder may answer reads of a span, after committing up to Barrier:
// entries up to Barrier may have been committed without the responder, later
// entries cannot.
type Responder struct {
	Node    NodeID
	Barrier Index
}

// Assignment is a span and its responders, in ascending order of nodes.
type Assignment struct {
	Span       Span
	Responders []Responder
}

// Roster names the nodes that may answer reads from their own states besides
// the leader. A roster never changes.
type Roster struct {
	ID      RosterID
	Leader  NodeID
	Voters  Voters       // of the roster's configuration
	Spans   []Assignment // ascending, disjoint, each with a responder
	Wanted  []Want       // ascending, disjoint; for later leaders
	Retired bool         // leases are being switched off: the leader does not read locally either
	Tuner   TunerMode    // an operator's word; for all nodes, and for later leaders
}

// namesAny reports whether anyone is a responder.
func (r *Roster) namesAny() bool { return len(r.Spans) > 0 }

// barrier returns the barrier of a node for one assignment.
func (a Assignment) barrier(node NodeID) (Index, bool) {
	for _, x := range a.Responders {
		if x.Node == node {
			return x.Barrier, true
		}
	}
	return 0, false
}

// names reports whether a node is a responder of any key.
func (r *Roster) names(node NodeID) bool {
	return slices.ContainsFunc(r.Spans, func(a Assignment) bool { _, ok := a.barrier(node); return ok })
}

// serves reports whether a node is responder of every key of a span, and returns
// the highest of its barriers there.
func (r *Roster) serves(node NodeID, span Span) (barrier Index, ok bool) {
	at := span.Start // keys below are served
	for _, a := range r.Spans {
		if a.Span.endsBefore(at) {
			continue
		}
		b, named := a.barrier(node)
		if a.Span.Start > at || !named {
			return 0, false
		}
		barrier, at = max(barrier, b), a.Span.End
		if at == "" || span.End != "" && at >= span.End {
			return barrier, true
		}
	}
	return 0, false
}

// shrinks reports whether the role of a node is smaller in r than in old: a key
// is missing or its barrier is higher, or r belongs to another configuration. The
// leader's role is every key in all rosters of its term.
func (r *Roster) shrinks(old *Roster, node NodeID) bool {
	if node == r.Leader {
		return false
	}
	for _, a := range old.Spans {
		was, named := a.barrier(node)
		if !named {
			continue
		}
		if is, ok := r.serves(node, a.Span); !ok || is > was || !r.Voters.equal(old.Voters) {
			return true
		}
	}
	return false
}

// validate returns an error about the first impossible part of a roster.
func (r *Roster) validate() error {
	switch {
	case r.ID.Term == 0 || r.ID.Seq == 0:
		return malformed("roster %v; terms and numbers begin with 1", r.ID)
	case r.Leader == 0:
		return malformed("roster %v has leader 0", r.ID)
	case len(r.Voters.Incoming) == 0:
		return malformed("roster %v belongs to a configuration without voters", r.ID)
	case len(r.Spans) > MaxSpans || len(r.Wanted) > MaxSpans:
		return malformed("roster %v has %d spans and %d wishes, at most %d each", r.ID, len(r.Spans), len(r.Wanted), MaxSpans)
	}
	for _, ids := range [][]NodeID{r.Voters.Incoming, r.Voters.Outgoing} {
		if err := checkNodes(ids); err != nil {
			return fmt.Errorf("roster %v, voters: %w", r.ID, err)
		}
	}
	var spans []Span
	for _, a := range r.Spans {
		spans = append(spans, a.Span)
		nodes := make([]NodeID, 0, len(a.Responders))
		for _, x := range a.Responders {
			nodes = append(nodes, x.Node)
		}
		switch err := checkNodes(nodes); {
		case err != nil:
			return fmt.Errorf("roster %v, responders of %v: %w", r.ID, a.Span, err)
		case len(nodes) == 0:
			return malformed("roster %v: %v has no responders", r.ID, a.Span)
		case slices.Contains(nodes, r.Leader):
			return malformed("roster %v: the leader, %d, is a responder of %v", r.ID, r.Leader, a.Span)
		}
	}
	if err := checkSpans(spans); err != nil {
		return fmt.Errorf("roster %v: %w", r.ID, err)
	}
	return checkWants(r.Wanted)
}

// checkWants returns an error unless spans are disjoint and ascend, and so do the nodes
// of each.
func checkWants(wanted []Want) error {
	if len(wanted) > MaxSpans {
		return malformed("wishes for %d spans, at most %d", len(wanted), MaxSpans)
	}
	var spans []Span
	for _, w := range wanted {
		spans = append(spans, w.Span)
		if err := checkNodes(w.Nodes); err != nil {
			return fmt.Errorf("nodes wanted for %v: %w", w.Span, err)
		}
	}
	return checkSpans(spans)
}

// checkSpans returns an error unless the spans are disjoint and ascend.
func checkSpans(spans []Span) error {
	for i, s := range spans {
		switch {
		case !s.valid():
			return malformed("span %v has no key, or a bound of more than %d bytes", s, MaxKey)
		case i > 0 && !spans[i-1].endsBefore(s.Start):
			return malformed("span %v does not end before %v", spans[i-1], s)
		}
	}
	return nil
}

// checkNodes returns an error unless the ids are not 0, ascend and are not too many.
func checkNodes(ids []NodeID) error {
	if len(ids) > MaxNodes {
		return malformed("%d nodes, at most %d", len(ids), MaxNodes)
	}
	last := NodeID(0)
	for _, id := range ids {
		if id <= last {
			return malformed("node %d after %d, want ascending ids", id, last)
		}
		last = id
	}
	return nil
}

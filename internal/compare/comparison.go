// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package compare

import (
	"context"
	"encoding/json"
	"fmt"
	"hash"
	"hash/crc64"
	"maps"
	"slices"
)

// Check orders a comparison.
type Check struct {
	// Voters are the members whose majority counts.
	Voters []uint64 `json:"voters"`
}

// format is that of the sums in a Digest. Sums of different formats are not compared.
const format = 1

// Digest is what a replica says at a check.
type Digest struct {
	Format int    `json:"format"`
	Check  uint64 `json:"check"` // its index in the log
	Node   uint64 `json:"node"`
	// From is the index of the check behind which Results begin; 0: this replica does not know all.
	From    uint64 `json:"from"`
	Results uint64 `json:"results"`
	// State is the state's own sum; nil if it has none, or was not read this time.
	State *uint64 `json:"state,omitempty"`
}

// Digest returns what a replica says of a window that ends at a check, without the state's sum.
func (w *Window) Digest(node, check uint64) Digest {
	return Digest{Format: format, Check: check, Node: node, From: w.from, Results: w.sum}
}

// maxReplicas bounds the digests and voters of a check, as commands are not trusted to be sane.
const maxReplicas = 4096

// encode returns a check or a digest in the form in which it is in the log.
func encode[T Check | Digest](v T) []byte {
	b, err := json.Marshal(v)
	if err != nil { // numbers always can be encoded
		panic(fmt.Sprintf("compare: encode %T: %v", v, err))
	}
	return b
}

// decodeCheck reads a check.
func decodeCheck(b []byte) (c Check, err error) {
	if err = json.Unmarshal(b, &c); err == nil && (len(c.Voters) == 0 || len(c.Voters) > maxReplicas) {
		err = fmt.Errorf("a check names %d voters, want 1 to %d", len(c.Voters), maxReplicas)
	}
	return c, err
}

// decodeDigest reads a digest.
func decodeDigest(b []byte) (d Digest, err error) {
	if err = json.Unmarshal(b, &d); err == nil && (d.Node == 0 || d.Check == 0 || d.From >= d.Check) {
		err = fmt.Errorf("a digest of node %d, check %d, from %d: want a node and a check of 1 or more, and a window in front of the check", d.Node, d.Check, d.From)
	}
	return d, err
}

// Difference says that replicas are not equal.
type Difference struct {
	// Index is that of the check. The difference began behind From, unless that is 0.
	Index, From uint64
	// States says that states differ; otherwise only results of commands differ.
	States bool
	// Members are the replicas that differ from more than half of the voters, ascending; none if no
	// more than half agree.
	Members []uint64
}

// PutsOut reports whether a replica has a wrong state, and is known to be the one that has.
func (d *Difference) PutsOut(node uint64) bool { return d.States && slices.Contains(d.Members, node) }

// Error implements error.
func (d *Difference) Error() string {
	what, since := "the states", ""
	if !d.States {
		what = "the results of commands"
	}
	if d.From > 0 {
		since = fmt.Sprintf(", and the results did behind index %d", d.From)
		if !d.States {
			since = fmt.Sprintf(", of commands behind index %d", d.From)
		}
	}
	if len(d.Members) == 0 {
		return fmt.Sprintf("%s of replicas differ at index %d%s: no majority of the voters agrees, so nobody knows which one is right", what, d.Index, since)
	}
	return fmt.Sprintf("%s of replicas differ at index %d%s: nodes %v differ from the majority", what, d.Index, since, d.Members)
}

// Comparison collects the digests of one check. The zero value compares nothing.
type Comparison struct {
	check   uint64
	voters  []uint64
	answers map[uint64]Digest
}

// Begin begins the comparison of a check, and forgets the one before.
func (c *Comparison) Begin(index uint64, check Check) {
	*c = Comparison{check: index, voters: check.Voters, answers: map[uint64]Digest{}}
}

// Answer takes a digest, and reports whether it is news: of the present check, and the node's first.
func (c *Comparison) Answer(d Digest) (news bool) {
	if _, twice := c.answers[d.Node]; twice || c.answers == nil || d.Check != c.check || d.Format != format || len(c.answers) == maxReplicas {
		return false
	}
	c.answers[d.Node] = d
	return true
}

// Difference returns what the digests so far say, or nil.
func (c *Comparison) Difference() *Difference {
	found := &Difference{Index: c.check}
	results, wrong := c.odd(func(d Digest) (uint64, bool) { return d.Results, d.From == c.from() && d.From > 0 })
	if results {
		found.From = c.from()
		found.Members = wrong
	}
	states, wrong := c.odd(func(d Digest) (uint64, bool) {
		if d.State == nil {
			return 0, false
		}
		return *d.State, true
	})
	if states {
		found.States, found.Members = true, wrong
	}
	if !results && !states {
		return nil
	}
	return found
}

// from returns where the windows of the replicas begin that have missed nothing: all at one check.
func (c *Comparison) from() (from uint64) {
	for _, d := range c.answers {
		from = max(from, d.From)
	}
	return from
}

// odd compares one sum of all digests that have it. It reports whether there are two different
// ones, and which replicas have not that of the majority.
func (c *Comparison) odd(of func(Digest) (uint64, bool)) (differ bool, members []uint64) {
	votes := map[uint64]int{}
	for id, d := range c.answers {
		if sum, ok := of(d); ok && slices.Contains(c.voters, id) {
			votes[sum]++
		} else if ok {
			votes[sum] += 0 // a learner's
		}
	}
	if len(votes) < 2 {
		return false, nil
	}
	majority, found := uint64(0), false
	for sum, n := range votes {
		if 2*n > len(c.voters) {
			majority, found = sum, true
		}
	}
	for _, id := range slices.Sorted(maps.Keys(c.answers)) {
		if sum, ok := of(c.answers[id]); ok && found && sum != majority {
			members = append(members, id)
		}
	}
	return true, members
}

// Settles reports whether the digests show that a difference found before is over: all voters have
// answered, with their states, and are equal; or none of the replicas that differed is a voter any
// more.
func (c *Comparison) Settles(before *Difference) bool {
	if before == nil || c.Difference() != nil {
		return false
	}
	equal, gone := true, len(before.Members) > 0
	for _, id := range c.voters {
		d, answered := c.answers[id]
		equal = equal && answered && d.State != nil
		gone = gone && !slices.Contains(before.Members, id)
	}
	return equal || gone
}

// Sum is a sum of a state. Write ends with a context, so that nobody waits for the rest of a state.
type Sum struct {
	ctx context.Context
	hash.Hash64
}

var crc64Table = crc64.MakeTable(crc64.ECMA)

// NewSum returns a sum of nothing.
func NewSum(ctx context.Context) Sum { return Sum{ctx, crc64.New(crc64Table)} }

// Write implements io.Writer.
func (s Sum) Write(b []byte) (int, error) {
	if s.ctx.Err() != nil {
		return 0, context.Cause(s.ctx)
	}
	return s.Hash64.Write(b)
}

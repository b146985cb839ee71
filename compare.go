// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package weft

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weftraft/weft/internal/compare"
	"github.com/weftraft/weft/raft"
	"github.com/weftraft/weft/rawnode"
)

// Comparable is an optional interface of a [StateMachine] whose replicas the group compares in the
// background: the commands and their results, and a sum of the state, at one index of the log at all
// members. [CompareEvery] says how often. The states of packages state and state/pebble, and so of
// [Replicate], are Comparable.
//
// Results of commands must then be the same at all replicas: numbers, texts, errors by their texts,
// and slices, arrays and structs of these are compared. A difference is logged as an error, is in
// [State].Differs at all nodes, and in the metric weft_group_differs. A replica whose state, not only a result, differs from
// that of the majority is put out of service: the group fails at that node with [ErrDiffers], and is
// not opened there again. The member is then replaced: see docs/service.md.
type Comparable interface {
	// Digest sets the present state aside, at little cost, and returns a function that sums it up:
	// equal states have equal sums at all replicas, and different states most likely different ones.
	// Digest is called between two calls of Apply, by the same goroutine; sum is called once, by
	// another goroutine, while Apply goes on, and returns soon after ctx has ended. Without a sum,
	// nil, results alone are compared.
	Digest() (sum func(ctx context.Context) (uint64, error), err error)
}

// comparer is a replica's part in comparisons: package compare has the design. The commands are
// proposed by the keeper, because the goroutine that applies must not wait. A nil comparer compares
// nothing: a recovery has none.
type comparer struct {
	g     *Group
	sm    Comparable // nil: nothing is compared
	every time.Duration

	// The apply goroutine's.
	window  compare.Window
	present compare.Comparison
	found   *compare.Difference

	difference atomic.Pointer[compare.Difference] // found, for all
	commands   atomic.Uint64                      // of users since the last check
	reading    atomic.Bool                        // a state is being read
	proposing  atomic.Bool

	mu      sync.Mutex
	checked time.Time       // when the last check was applied, or the group opened
	took    time.Duration   // what reading the state took last
	digest  *compare.Digest // to be proposed
}

const defaultCompareEvery = time.Minute

// readingShare bounds the share of the time for which the state is read: one part in so many.
const readingShare = 100

// newComparer returns the comparer of a group.
func newComparer(g *Group) *comparer {
	c := &comparer{g: g, checked: time.Now()}
	c.sm, _ = g.user.(Comparable)
	return c
}

// differs returns what was found, or nil.
func (c *comparer) differs() error {
	if c == nil {
		return nil
	}
	if d := c.difference.Load(); d != nil {
		return fmt.Errorf("%w: group %d: %w", ErrDiffers, c.g.id, d)
	}
	return nil
}

// restored says that the state has come from elsewhere.
func (c *comparer) restored() {
	if c != nil {
		c.window.Lose()
	}
}

// applied takes the commands of a batch that was applied, and their results. An error puts the
// replica out of service.
func (c *comparer) applied(b rawnode.Batch, results []any) error {
	if c == nil || c.sm == nil {
		return nil
	}
	users := 0
	for i, command := range b.Commands {
		if !reserved(command) {
			c.window.Add(command, results[i])
			users++
		}
	}
	if users > 0 {
		c.commands.Add(uint64(users))
	}
	if users == len(b.Commands) {
		return nil
	}
	for _, command := range b.Commands { // the batch ends with the entry that has them
		if !reserved(command) {
			continue
		}
		if err := c.take(command, b.Index); err != nil {
			return err
		}
	}
	return nil
}

// take takes a command of comparisons.
func (c *comparer) take(command []byte, index uint64) error {
	kind, body := ownParts(command)
	var err error
	switch kind {
	case commandCheck:
		var check compare.Check
		if check, err = compare.DecodeCheck(body); err == nil {
			c.check(check, index)
		}
	case commandDigest:
		var digest compare.Digest
		if digest, err = compare.DecodeDigest(body); err == nil {
			return c.answer(digest)
		}
	}
	if err != nil {
		c.g.node.options.Logger.Warn("a command of a comparison is left out", "group", c.g.id, "index", index, "error", err)
	}
	return nil
}

// check begins a comparison at the present state.
func (c *comparer) check(check compare.Check, index uint64) {
	digest := c.window.Digest(c.g.node.options.ID, index)
	c.present.Begin(index, check)
	c.window.Begin(index)
	c.commands.Store(0)
	c.mu.Lock()
	c.checked, c.digest = time.Now(), nil
	c.mu.Unlock()
	if !c.read(digest) {
		c.finish(digest)
	}
}

// read sums the state up in the background, unless another one is being read.
func (c *comparer) read(digest compare.Digest) bool {
	if c.reading.Load() {
		return false
	}
	ctx, end, err := c.g.use(context.Background())
	if err != nil {
		return false
	}
	sum, err := c.sm.Digest()
	if sum == nil || err != nil {
		c.complain(err)
		end()
		return false
	}
	c.reading.Store(true)
	go func() {
		defer end()
		defer c.reading.Store(false)
		begun := time.Now()
		state, err := sum(ctx)
		if c.complain(err); err == nil {
			digest.State = &state
		}
		c.mu.Lock()
		c.took = time.Since(begun)
		c.mu.Unlock()
		c.finish(digest)
	}()
	return true
}

func (c *comparer) complain(err error) {
	if err != nil && c.g.ending.Err() == nil {
		c.g.node.options.Logger.Warn("the state is not compared this time", "group", c.g.id, "error", err)
	}
}

// finish has the keeper propose a digest.
func (c *comparer) finish(digest compare.Digest) {
	c.mu.Lock()
	c.digest = &digest
	c.mu.Unlock()
	c.g.node.keeper.nudge()
}

// answer takes the digest of a replica.
func (c *comparer) answer(digest compare.Digest) error {
	if !c.present.Answer(digest) {
		return nil
	}
	found, o := c.present.Difference(), &c.g.node.options
	switch {
	case found != nil:
		if c.found == nil || c.found.Index != found.Index || len(c.found.Members) != len(found.Members) || c.found.States != found.States {
			o.Logger.Error("replicas differ: see docs/service.md", "group", c.g.id, "node", o.ID, "error", found)
		}
		c.found = found
	case c.present.Settles(c.found):
		o.Logger.Info("replicas are equal again", "group", c.g.id, "node", o.ID)
		c.found = nil
	}
	c.difference.Store(c.found)
	if found == nil || !found.PutsOut(o.ID) {
		return nil
	}
	err := fmt.Errorf("%w: group %d at node %d is out of service: %w", ErrDiffers, c.g.id, o.ID, found)
	return errors.Join(err, c.g.putOut(ErrDiffers, found))
}

// next returns a command to propose now, or nil.
func (c *comparer) next() []byte {
	c.mu.Lock()
	digest, since := c.digest, time.Since(c.checked)
	wait := max(c.every, readingShare*c.took)
	c.digest = nil
	c.mu.Unlock()
	if digest != nil {
		return ownCommand(commandDigest, compare.Encode(*digest))
	}
	if c.every == 0 {
		wait = max(wait, defaultCompareEvery)
	}
	if c.sm == nil || c.every < 0 || since < wait || c.commands.Load() == 0 || c.reading.Load() {
		return nil
	}
	s := c.g.host.Status()
	if s.Role != raft.StateLeader {
		return nil
	}
	voters := slices.Concat(s.Members.GetVoters(), s.Members.GetVotersOutgoing())
	return ownCommand(commandCheck, compare.Encode(compare.Check{Voters: sortedCopy(voters)}))
}

// compare proposes what the comparisons of groups wait for.
func (k *keeper) compare() {
	for _, g := range k.node.opened() {
		c := g.comparer
		if c.proposing.Load() {
			continue
		}
		command := c.next()
		if command == nil {
			continue
		}
		c.proposing.Store(true)
		k.node.background.Go(func() {
			defer c.proposing.Store(false)
			ctx, cancel := context.WithTimeout(k.node.context, announceTimeout)
			defer cancel()
			if _, err := g.host.Propose(ctx, command); err != nil {
				k.node.options.Logger.Debug("a comparison goes on without this node", "node", k.node.options.ID, "group", g.id, "error", err)
			}
		})
	}
}

// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package compare

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weftraft/weft/internal/marked"
	"github.com/weftraft/weft/rawnode"
)

// Comparable is Comparable of package weft.
type Comparable interface {
	Digest() (sum func(ctx context.Context) (uint64, error), err error)
}

// Config says whose replica it is, and what it needs of its group.
type Config struct {
	Node, Group uint64
	State       Comparable    // nil: nothing is compared
	Every       time.Duration // between two checks; 0 is the default, less than 0 never
	Logger      *slog.Logger
	// Use enters a use of the state, which a close of the group waits for, and ends. Ended reports
	// whether the group is being closed.
	Use   func(ctx context.Context) (context.Context, func(), error)
	Ended func() bool
	// Leads returns the voters, ascending, if this node leads, or nil.
	Leads func() []uint64
	// Wake has somebody else than the caller call Next soon.
	Wake func()
	// PutOut notes, durably, that the replica is out of service.
	PutOut func(why error) error
}

// Replica is a replica's part in comparisons: the package's comment has the design. The commands of Next
// are proposed by another goroutine, because the one that applies must not wait. A nil Replica compares
// nothing: a recovery has none.
type Replica struct {
	Config

	// The apply goroutine's.
	window  Window
	present Comparison
	found   *Difference

	difference atomic.Pointer[Difference] // found, for all
	commands   atomic.Uint64              // of users since the last check
	reading    atomic.Bool                // a state is being read

	mu      sync.Mutex
	checked time.Time     // when the last check was applied, or the group opened
	took    time.Duration // what reading the state took last
	digest  *Digest       // to be proposed
}

// ErrDiffers is weft.ErrDiffers.
var ErrDiffers = errors.New("weft: replicas differ")

const defaultCompareEvery = time.Minute

// readingShare bounds the share of the time for which the state is read: one part in so many.
const readingShare = 100

// NewReplica returns a replica's part in the comparisons of a group.
func NewReplica(c Config) *Replica { return &Replica{Config: c, checked: time.Now()} }

// Differs returns what was found, or nil.
func (c *Replica) Differs() error {
	if c == nil {
		return nil
	}
	if d := c.difference.Load(); d != nil {
		return fmt.Errorf("%w: group %d: %w", ErrDiffers, c.Group, d)
	}
	return nil
}

// Restored says that the state has come from elsewhere.
func (c *Replica) Restored() {
	if c != nil {
		c.window.Lose()
	}
}

// Applied takes the commands of a batch that was applied, and their results. An error puts the
// replica out of service.
func (c *Replica) Applied(b rawnode.Batch, results []any) error {
	if c == nil || c.State == nil {
		return nil
	}
	users := 0
	for i, command := range b.Commands {
		if !marked.Is(command) {
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
		if !marked.Is(command) {
			continue
		}
		if err := c.take(command, b.Index); err != nil {
			return err
		}
	}
	return nil
}

// take takes a command of comparisons.
func (c *Replica) take(command []byte, index uint64) error {
	kind, body := marked.Parts(command)
	var err error
	switch kind {
	case marked.Check:
		var check Check
		if check, err = decodeCheck(body); err == nil {
			c.check(check, index)
		}
	case marked.Digest:
		var digest Digest
		if digest, err = decodeDigest(body); err == nil {
			return c.answer(digest)
		}
	}
	if err != nil {
		c.Logger.Warn("a command of a comparison is left out", "group", c.Group, "index", index, "error", err)
	}
	return nil
}

// check begins a comparison at the present state.
func (c *Replica) check(check Check, index uint64) {
	digest := c.window.Digest(c.Node, index)
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
func (c *Replica) read(digest Digest) bool {
	if c.reading.Load() {
		return false
	}
	ctx, end, err := c.Use(context.Background())
	if err != nil {
		return false
	}
	sum, err := c.State.Digest()
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

func (c *Replica) complain(err error) {
	if err != nil && !c.Ended() {
		c.Logger.Warn("the state is not compared this time", "group", c.Group, "error", err)
	}
}

// finish has a digest proposed.
func (c *Replica) finish(digest Digest) {
	c.mu.Lock()
	c.digest = &digest
	c.mu.Unlock()
	c.Wake()
}

// answer takes the digest of a replica.
func (c *Replica) answer(digest Digest) error {
	if !c.present.Answer(digest) {
		return nil
	}
	found := c.present.Difference()
	switch {
	case found != nil:
		if c.found == nil || c.found.Index != found.Index || len(c.found.Members) != len(found.Members) || c.found.States != found.States {
			c.Logger.Error("replicas differ: see docs/service.md", "group", c.Group, "node", c.Node, "error", found)
		}
		c.found = found
	case c.present.Settles(c.found):
		c.Logger.Info("replicas are equal again", "group", c.Group, "node", c.Node)
		c.found = nil
	}
	c.difference.Store(c.found)
	if found == nil || !found.PutsOut(c.Node) {
		return nil
	}
	err := fmt.Errorf("%w: group %d at node %d is out of service: %w", ErrDiffers, c.Group, c.Node, found)
	return errors.Join(err, c.PutOut(found))
}

// Next returns a command to propose now, or nil.
func (c *Replica) Next() []byte {
	c.mu.Lock()
	digest, since := c.digest, time.Since(c.checked)
	wait := max(c.Every, readingShare*c.took)
	c.digest = nil
	c.mu.Unlock()
	if digest != nil {
		return marked.Command(marked.Digest, encode(*digest))
	}
	if c.Every == 0 {
		wait = max(wait, defaultCompareEvery)
	}
	if c.State == nil || c.Every < 0 || since < wait || c.commands.Load() == 0 || c.reading.Load() {
		return nil
	}
	voters := c.Leads()
	if voters == nil {
		return nil
	}
	return marked.Command(marked.Check, encode(Check{Voters: voters}))
}

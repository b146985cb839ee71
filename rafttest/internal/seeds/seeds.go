// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

// Package seeds runs the seeds of a simulator in a test.
package seeds

import (
	"bufio"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weftraft/weft/internal/world"
)

var stop = flag.Int("stop", 5, "a test ends when so many seeds have failed; of the first five the story is told")

// Outcome is how the run of a seed went; the results of simulators embed it.
type Outcome struct {
	Seed uint64
	// Err is nil if every invariant held and all was well in the end. Otherwise it is a *world.Violation.
	Err error
	// Story is the last lines before a failure; empty without one.
	Story string
	// Hash is of the whole story, and the same for each run of the seed. Lines is the length of the story.
	Hash, Lines uint64
	// Plan is the seed's draws, in one line.
	Plan string
	// Recovery is the virtual time from the end of the faults until all was well.
	Recovery time.Duration
}

// Out makes a struct that embeds an outcome a [Result].
func (o Outcome) Out() Outcome { return o }

// Ended returns the outcome of a run with this story; failure may be nil.
func Ended(seed uint64, story *world.Story, failure *world.Violation) Outcome {
	o := Outcome{Seed: seed, Hash: story.Hash, Lines: story.Lines}
	if failure != nil {
		o.Err, o.Story = failure, story.Recent()
	}
	return o
}

// Result is the result of a run: its outcome, and the struct that counts its events, as for [world.AddCounts].
type Result interface {
	Out() Outcome
	Counts() any
}

// Suite runs seeds in one way.
type Suite[R Result] struct {
	// Again is the part of a command that names a seed of this kind: its package, test and flag.
	Again string
	// Run runs a seed; trace hears its story, if it is not nil.
	Run func(seed uint64, trace io.Writer) R
	// Shrink, if set, leaves out of a failed run what does not matter, and returns the flag that says so.
	Shrink func(R) (R, string)
}

// Report describes a failed run and how to see it again.
func (s Suite[R]) Report(r R) string {
	skip := ""
	if s.Shrink != nil {
		r, skip = s.Shrink(r)
	}
	o := r.Out()
	return fmt.Sprintf("seed %d: %v\nplan: %s\nagain: go test %s %d%s -v\n%s", o.Seed, o.Err, o.Plan, s.Again, o.Seed, skip, o.Story)
}

// One runs one seed, whose story is told if the test is verbose.
func (s Suite[R]) One(t *testing.T, seed uint64) R {
	var trace io.Writer
	if testing.Verbose() {
		w := bufio.NewWriter(os.Stdout)
		defer func() { require.NoError(t, w.Flush()) }()
		trace = w
	}
	r := s.Run(seed, trace)
	t.Logf("plan: %s", r.Out().Plan)
	require.NoError(t, r.Out().Err)
	return r
}

// Check runs one seed, and reports a failure.
func (s Suite[R]) Check(t *testing.T, seed uint64) {
	if r := s.Run(seed, nil); r.Out().Err != nil {
		t.Error(s.Report(r))
	}
}

// All runs n seeds from the first on, or the one if it is not 0, and hands each result to take. It returns how many
// seeds held all invariants, and 0 for the one or after a failure: so few need not reach anything.
func (s Suite[R]) All(t *testing.T, first, n, one uint64, take func(R)) (held uint64) {
	if one != 0 {
		take(s.One(t, one))
		return 0
	}
	var worst Outcome
	var slow world.SlowSeeds
	failed, begun, stories := 0, time.Now(), uint64(0)
	world.Seeds(first, n, func(seed uint64) R { return s.Run(seed, nil) }, func(r R) bool {
		take(r)
		slow.Add(r.Counts())
		o := r.Out()
		stories ^= world.MixInt(world.MixInt(world.HashBegin, o.Seed), o.Hash)
		if o.Recovery > worst.Recovery {
			worst = o
		}
		if o.Err == nil {
			return true
		}
		if failed++; failed <= 5 {
			t.Error(s.Report(r))
		} else {
			t.Errorf("seed %d: %s", o.Seed, firstLine(o.Err))
		}
		return failed < *stop
	})
	// Two versions that print the same here did the same in every run.
	t.Logf("%d seeds, stories %016x, in %v; slowest recovery %v (seed %d)", n, stories, time.Since(begun).Round(time.Millisecond), worst.Recovery, worst.Seed)
	t.Log(slow)
	require.Empty(t, slow.Fewer(t.Name()), "too few seeds have these faults")
	if failed > 0 {
		return 0
	}
	return n
}

// InShort is fewer seeds where tests are to be short.
func InShort(n, most uint64) uint64 {
	if testing.Short() {
		return min(n, most)
	}
	return n
}

// Hunt runs seeds, from the first up to the last, until one fails, and returns its result.
func Hunt[R Result](t *testing.T, first, last uint64, run func(seed uint64) R) R {
	t.Helper()
	var found *R
	world.Seeds(first, last+1-first, run, func(r R) bool {
		if r.Out().Err != nil {
			found = &r
		}
		return found == nil
	})
	require.NotNil(t, found, "not found up to seed %d", last)
	o := (*found).Out()
	t.Logf("seed %d: %s", o.Seed, firstLine(o.Err))
	return *found
}

// Invariant names the invariant that does not hold by an error; empty for any other error.
func Invariant(err error) string {
	var v *world.Violation
	if !errors.As(err, &v) {
		return ""
	}
	return v.Invariant
}

func firstLine(err error) string {
	line, _, _ := strings.Cut(err.Error(), "\n")
	return line
}

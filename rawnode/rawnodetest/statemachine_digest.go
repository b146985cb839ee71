// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package rawnodetest

import (
	"bytes"
	"context"
	"errors"
	"runtime"
)

// digester is a state machine that offers a sum of its state: see weft.Comparable.
type digester interface {
	Digest() (sum func(context.Context) (uint64, error), err error)
}

// digest has the state machine set the present state aside. The result is nil if the state machine
// offers no sum. read is called once, by any goroutine.
func (m *subject) digest() (read func() (uint64, error)) {
	d, ok := m.sm.(digester)
	if !ok {
		return nil
	}
	sum, err := d.Digest()
	calls("method Digest", err)
	if sum == nil {
		return nil
	}
	return func() (uint64, error) { return sum(context.Background()) }
}

// sums are the sums of a story's states, as far as they are known.
type sums map[int]uint64

// compare reads the sum of the state after n batches, and compares.
func (k sums) compare(t *story, n int, read func() (uint64, error), who string) {
	sum, err := read()
	calls("the sum of Digest", err)
	for other, known := range k {
		switch same := t.states[other] == t.states[n]; {
		case other == n && known != sum:
			breaks("method Digest: the sum of the state after %d batches is %x at %s, and %x at the first replica", n, sum, who, known)
		case !same && known == sum:
			breaks("method Digest: the sum is %x of two states: %s", sum, differ(t.states[n], t.states[other]))
		}
	}
	k[n] = sum
}

// ruleDigest compares the sums of a replica with others': one restored from a snapshot, one crashed,
// and one to which commands are applied while a sum is read.
func ruleDigest(s *stage) {
	t, first := s.applied(24, 0)
	known := sums{}
	for n := range t.batches {
		first.apply(t, n, n+1)
		read := first.digest()
		if read == nil {
			return
		}
		known.compare(t, n+1, read, "the first replica")
	}
	s.digestRestored(t, known)
	s.digestCrashed(t, known)
	s.digestBusy(t, known)
}

// now compares the sum of the present state, after n batches.
func (m *subject) now(t *story, known sums, n int, who string) {
	read := m.digest()
	if read == nil {
		breaks("method Digest offers no sum at %s, and did at the first replica", who)
	}
	known.compare(t, n, read, who)
}

func (s *stage) digestRestored(t *story, known sums) {
	meta, body := s.taken(t, 9)
	m := s.restored(meta, bytes.NewReader(body), t, 9)
	m.now(t, known, 9, "a replica that was restored")
	m.apply(t, 9, len(t.batches))
	m.now(t, known, len(t.batches), "a replica that was restored and has gone on")
}

func (s *stage) digestCrashed(t *story, known sums) {
	m := s.fresh()
	m.apply(t, 0, 11)
	m.flush()
	m, index, host := m.crashed(true)
	m.replay(t, index, host, 15)
	m.now(t, known, 15, "a replica that was killed and has replayed the log")
}

// digestBusy reads sums while later batches are applied.
func (s *stage) digestBusy(t *story, known sums) {
	m := s.fresh()
	for n := range t.batches {
		read := m.digest()
		if n == 0 { // of the empty state, which no replica compares
			_, err := read()
			calls("the sum of Digest", err)
			read = nil
		}
		applied := make(chan error, 1)
		go func() { applied <- guarded(func() { m.apply(t, n, n+1) }) }()
		var err error
		if read != nil {
			runtime.Gosched() // Apply gets going, unless it waits until the sum is read
			err = guarded(func() { known.compare(t, n, read, "a replica that applies commands meanwhile") })
		}
		must(errors.Join(err, <-applied))
	}
}

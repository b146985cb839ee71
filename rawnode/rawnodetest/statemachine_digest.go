// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package rawnodetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"runtime"
)

// digester is a state machine that offers a sum of its state: see weft.Comparable.
type digester interface {
	Digest() (sum func(context.Context) (uint64, error), err error)
}

// digest has the state machine set the present state aside. The result is nil if the state machine
// offers no sum. read is called once, by any goroutine.
func (m *subject) digest() (read func() (uint64, error), err error) {
	d, ok := m.sm.(digester)
	if !ok {
		return nil, nil
	}
	sum, err := d.Digest()
	if err != nil {
		return nil, fmt.Errorf("method Digest: %w", err)
	}
	if sum == nil {
		return nil, nil
	}
	return func() (uint64, error) {
		n, err := sum(context.Background())
		if err != nil {
			err = fmt.Errorf("the sum of Digest: %w", err)
		}
		return n, err
	}, nil
}

// sums are the sums of a story's states, as far as they are known.
type sums map[int]uint64

// compare reads the sum of the state after n batches, and compares.
func (k sums) compare(t *story, n int, read func() (uint64, error), who string) error {
	sum, err := read()
	if err != nil {
		return err
	}
	for other, known := range k {
		switch same := t.states[other] == t.states[n]; {
		case other == n && known != sum:
			return fmt.Errorf("method Digest: the sum of the state after %d batches is %x at %s, and %x at the first replica", n, sum, who, known)
		case !same && known == sum:
			return fmt.Errorf("method Digest: the sum is %x of two states: %s", sum, differ(t.states[n], t.states[other]))
		}
	}
	k[n] = sum
	return nil
}

// ruleDigest compares the sums of a replica with others': one restored from a snapshot, one crashed,
// and one to which commands are applied while a sum is read.
func ruleDigest(s *stage) error {
	t, err := s.tell(24)
	if err != nil {
		return err
	}
	first, err := s.fresh()
	if err != nil {
		return err
	}
	known := sums{}
	for n := range t.batches {
		if err := first.apply(t, n, n+1); err != nil {
			return err
		}
		read, err := first.digest()
		if err != nil || read == nil {
			return err
		}
		if err := known.compare(t, n+1, read, "the first replica"); err != nil {
			return err
		}
	}
	for _, check := range []func(*story, sums) error{s.digestRestored, s.digestCrashed, s.digestBusy} {
		if err := check(t, known); err != nil {
			return err
		}
	}
	return nil
}

// now compares the sum of the present state, after n batches.
func (m *subject) now(t *story, known sums, n int, who string) error {
	read, err := m.digest()
	if err != nil {
		return err
	}
	if read == nil {
		return fmt.Errorf("method Digest offers no sum at %s, and did at the first replica", who)
	}
	return known.compare(t, n, read, who)
}

func (s *stage) digestRestored(t *story, known sums) error {
	meta, body, err := s.taken(t, 9)
	if err != nil {
		return err
	}
	m, err := s.fresh()
	if err != nil {
		return err
	}
	if err := m.restored(meta, bytes.NewReader(body), t, 9); err != nil {
		return err
	}
	if err := m.now(t, known, 9, "a replica that was restored"); err != nil {
		return err
	}
	if err := m.apply(t, 9, len(t.batches)); err != nil {
		return err
	}
	return m.now(t, known, len(t.batches), "a replica that was restored and has gone on")
}

func (s *stage) digestCrashed(t *story, known sums) error {
	m, err := s.fresh()
	if err != nil {
		return err
	}
	if err := m.apply(t, 0, 11); err != nil {
		return err
	}
	if err := m.flush(); err != nil {
		return fmt.Errorf("function Flush: %w", err)
	}
	m, index, host, err := m.crashed(true)
	if err != nil {
		return err
	}
	from, err := m.survived(t, index, host)
	if err != nil {
		return err
	}
	if err := m.apply(t, from, 15); err != nil {
		return err
	}
	return m.now(t, known, 15, "a replica that was killed and has replayed the log")
}

// digestBusy reads sums while later batches are applied.
func (s *stage) digestBusy(t *story, known sums) error {
	m, err := s.fresh()
	if err != nil {
		return err
	}
	for n := range t.batches {
		read, err := m.digest()
		if err != nil {
			return err
		}
		if n == 0 { // of the empty state, which no replica compares
			if _, err := read(); err != nil {
				return err
			}
			read = nil
		}
		applied := make(chan error, 1)
		go func() { applied <- guarded(func() error { return m.apply(t, n, n+1) }) }()
		if read != nil {
			runtime.Gosched() // Apply gets going, unless it waits until the sum is read
			err = known.compare(t, n, read, "a replica that applies commands meanwhile")
		}
		if err := errors.Join(err, <-applied); err != nil {
			return err
		}
	}
	return nil
}

// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package rawnodetest

import (
	"errors"
	"fmt"
	"io"

	"github.com/weftraft/weft/rawnode"
)

// stateMachineRules are the promises of a state machine, in the order of the contract.
var stateMachineRules = []rule[*stage]{
	{"an empty state is at index 0", ruled(ruleEmpty)},
	{"each command takes effect once, with one result", ruled(ruleResults)},
	{"commands of any bytes mean the same at all replicas", ruled(ruleBytes)},
	{"readers see whole batches", ruled(ruleWhole)},
	{"index and host's bytes are kept with the state", ruled(ruleKept)},
	{"what Durable names survives a crash", ruled(ruleDurable)},
	{"a crash leaves the state after a batch", ruled(ruleCrash)},
	{"what Load returns is durable", ruled(ruleLoadDurable)},
	{"a snapshot is of the present state", ruled(rulePresent)},
	{"a snapshot stays as it is while commands are applied", ruled(ruleSnapshotStays)},
	{"two snapshots do not disturb each other", ruled(ruleTwoSnapshots)},
	{"a snapshot can be read in pieces of any size", ruled(rulePieces)},
	{"a restored state takes the place of the old one", ruled(ruleReplaces)},
	{"a restored state is durable when Restore returns", ruled(ruleRestoreDurable)},
	{"a restored state goes on", ruled(ruleGoesOn)},
	{"a restored state may be an earlier one", ruled(ruleGoesBack)},
	{"Restore returns the error of its body and keeps the state", ruled(ruleTorn)},
	{"Restore reads its body up to io.EOF", ruled(ruleEOF)},
	{"a crash during Restore leaves the old state or the new one", ruled(ruleCrashInRestore)},
	{"Durable and Snapshot may be called while Apply is under way", ruled(ruleConcurrent)},
	{"a state that was interrupted can be loaded", ruled(ruleInterrupt)},
	{"equal states have equal digests, and others do not", ruled(ruleDigest)},
}

// ruled closes the state machines of a rule after the check.
func ruled(check func(*stage) error) func(*stage) error {
	return func(s *stage) error {
		defer s.done()
		return check(s)
	}
}

func ruleEmpty(s *stage) error {
	m, err := s.fresh()
	if err != nil {
		return err
	}
	if d, err := m.sm.Durable(); err != nil || d != 0 {
		return fmt.Errorf("method Durable of an empty state returns %d and error %v, want 0 and none", d, fmt.Sprint(err))
	}
	for _, power := range []bool{true, false} {
		var index uint64
		var host []byte
		if m, index, host, err = m.crashed(power); err != nil {
			return err
		}
		if index != 0 || len(host) > 0 {
			return fmt.Errorf("method Load of an empty state returns index %d and host's bytes %q after a crash, want 0 and none", index, host)
		}
	}
	return nil
}

func ruleResults(s *stage) error {
	t, err := s.tell(60)
	if err != nil {
		return err
	}
	if err := s.modelled(t); err != nil {
		return err
	}
	m, err := s.fresh()
	if err != nil {
		return err
	}
	for n := range t.batches {
		if err := m.apply(t, n, n+1); err != nil {
			return err
		}
		if err := m.is(t, n+1); err != nil {
			return err
		}
	}
	return nil
}

// ruleWhole reads as often as possible while a large batch is applied.
func ruleWhole(s *stage) error {
	t, err := s.tell(1)
	if err != nil {
		return err
	}
	for len(t.batches[0].Commands) < 40 {
		t.batches[0].Commands = append(t.batches[0].Commands, s.f.Command(s.rng))
	}
	if err := s.learn(t); err != nil {
		return err
	}
	m, err := s.fresh()
	if err != nil {
		return err
	}
	applied := make(chan error, 1)
	go func() { applied <- guarded(func() error { return m.apply(t, 0, 1) }) }()
	for {
		text, err := m.read()
		if err != nil {
			return err
		}
		if text != t.states[0] && text != t.states[1] {
			return fmt.Errorf("during a batch, readers see %s", differ(text, t.states[1]))
		}
		select {
		case err := <-applied:
			if err != nil {
				return err
			}
			return m.is(t, 1)
		default:
		}
	}
}

func ruleKept(s *stage) error {
	t, err := s.tell(12)
	if err != nil {
		return err
	}
	for _, n := range []int{1, 5, 12} {
		m, err := s.fresh()
		if err != nil {
			return err
		}
		if err := errors.Join(m.apply(t, 0, n), m.flush()); err != nil {
			return err
		}
		dir := m.dir
		m.end()
		m, index, host, err := s.open(dir)
		if err != nil {
			return err
		}
		from, err := m.survived(t, index, host)
		if err != nil {
			return fmt.Errorf("after Close: %w", err)
		}
		// The log replays the rest.
		if err := m.apply(t, from, len(t.batches)); err != nil {
			return err
		}
		if err := m.is(t, len(t.batches)); err != nil {
			return fmt.Errorf("after the log was replayed from index %d: %w", index, err)
		}
	}
	return nil
}

func ruleDurable(s *stage) error {
	t, err := s.tell(40)
	if err != nil {
		return err
	}
	for _, power := range []bool{true, false} {
		m, err := s.fresh()
		if err != nil {
			return err
		}
		var durable uint64
		for n := range t.batches {
			if err := m.apply(t, n, n+1); err != nil {
				return err
			}
			if s.rng.IntN(10) == 0 {
				if err := m.flush(); err != nil {
					return fmt.Errorf("function Flush: %w", err)
				}
			}
			d, err := m.sm.Durable()
			if err != nil {
				return fmt.Errorf("method Durable: %w", err)
			}
			if d < durable || d > t.index(n+1) {
				return fmt.Errorf("method Durable returns %d after %d, for a state at index %d: it does not go back, nor beyond the state", d, durable, t.index(n+1))
			}
			durable = d
			if err := m.keeps(t, durable, power); err != nil {
				return err
			}
		}
	}
	return nil
}

// keeps opens and checks the state that a crash at this moment would leave, while the present state
// machine stays in use.
func (m *subject) keeps(t *story, durable uint64, power bool) error {
	dir, err := m.dir.crashed(power)
	if err != nil {
		return err
	}
	left, index, host, err := m.s.open(dir)
	if err != nil {
		return fmt.Errorf("after a crash: %w", err)
	}
	defer left.end()
	if index < durable {
		return fmt.Errorf("method Durable said %d, and after a crash the state is at index %d: the log may be gone from there on", durable, index)
	}
	if _, err = left.survived(t, index, host); err != nil {
		return fmt.Errorf("after a crash: %w", err)
	}
	return nil
}

func ruleCrash(s *stage) error {
	t, m, err := s.applied(50, 0)
	if err != nil {
		return err
	}
	for n := 0; n < len(t.batches); {
		to := min(n+1+s.rng.IntN(5), len(t.batches))
		if err := m.apply(t, n, to); err != nil {
			return err
		}
		if s.rng.IntN(3) == 0 {
			if err := m.flush(); err != nil {
				return fmt.Errorf("function Flush: %w", err)
			}
		}
		if n = to; s.rng.IntN(2) == 0 {
			continue
		}
		var index uint64
		var host []byte
		if m, index, host, err = m.crashed(s.rng.IntN(2) == 0); err != nil {
			return err
		}
		from, err := m.survived(t, index, host)
		if err != nil {
			return fmt.Errorf("after a crash: %w", err)
		}
		if err := m.apply(t, from, n); err != nil {
			return fmt.Errorf("after a crash: %w", err)
		}
		if err := m.is(t, n); err != nil {
			return fmt.Errorf("after a crash, and the log replayed from index %d: %w", index, err)
		}
	}
	return m.is(t, len(t.batches))
}

// snap opens a snapshot and checks the snapshot's index and host bytes.
func (m *subject) snap(t *story, n int) (rawnode.Snapshot, error) {
	snap, err := m.sm.Snapshot()
	if err != nil {
		return nil, fmt.Errorf("method Snapshot: %w", err)
	}
	if snap == nil {
		return nil, errors.New("method Snapshot returns nil, and no error")
	}
	return snap, metaIs(snap.Meta(), t, n)
}

func metaIs(meta rawnode.SnapshotMeta, t *story, n int) error {
	if meta.Index != t.index(n) || string(meta.Host) != string(t.hosts[n]) {
		return fmt.Errorf("the snapshot is of index %d with the host's bytes %q, want %d and %q", meta.Index, meta.Host, t.index(n), t.hosts[n])
	}
	return nil
}

// restored restores a snapshot into a state machine, and compares.
func (m *subject) restored(meta rawnode.SnapshotMeta, body io.Reader, t *story, n int) error {
	if err := m.sm.Restore(meta, body); err != nil {
		return fmt.Errorf("method Restore: %w", err)
	}
	if err := m.is(t, n); err != nil {
		return fmt.Errorf("restored, %w", err)
	}
	return nil
}

// drain reads a snapshot to its end and closes the snapshot.
func drain(snap rawnode.Snapshot) ([]byte, error) {
	body, err := io.ReadAll(snap)
	if err != nil {
		return nil, fmt.Errorf("read a snapshot: %w", err)
	}
	if n, err := snap.Read(make([]byte, 8)); n != 0 || !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("behind its end, Read of a snapshot returns %d bytes and error %v, want 0 and io.EOF", n, fmt.Sprint(err))
	}
	if err := snap.Close(); err != nil {
		return nil, fmt.Errorf("close a snapshot: %w", err)
	}
	return body, nil
}

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
func ruled(check func(*stage)) func(*stage) {
	return func(s *stage) {
		defer s.done()
		check(s)
	}
}

func ruleEmpty(s *stage) {
	m := s.fresh()
	if d, err := m.sm.Durable(); err != nil || d != 0 {
		breaks("method Durable of an empty state returns %d and error %v, want 0 and none", d, fmt.Sprint(err))
	}
	for _, power := range []bool{true, false} {
		var index uint64
		var host []byte
		if m, index, host = m.crashed(power); index != 0 || len(host) > 0 {
			breaks("method Load of an empty state returns index %d and host's bytes %q after a crash, want 0 and none", index, host)
		}
	}
}

func ruleResults(s *stage) {
	t, m := s.applied(60, 0)
	s.modelled(t)
	for n := range t.batches {
		m.apply(t, n, n+1)
		m.is(t, n+1)
	}
}

// ruleWhole reads as often as possible while a large batch is applied.
func ruleWhole(s *stage) {
	t := s.tell(1)
	for len(t.batches[0].Commands) < 40 {
		t.batches[0].Commands = append(t.batches[0].Commands, s.f.Command(s.rng))
	}
	s.learn(t)
	m := s.fresh()
	applied := make(chan error, 1)
	go func() { applied <- guarded(func() { m.apply(t, 0, 1) }) }()
	for {
		if text := m.read(); text != t.states[0] && text != t.states[1] {
			breaks("during a batch, readers see %s", differ(text, t.states[1]))
		}
		select {
		case err := <-applied:
			must(err)
			m.is(t, 1)
			return
		default:
		}
	}
}

func ruleKept(s *stage) {
	t := s.tell(12)
	for _, n := range []int{1, 5, 12} {
		m := s.fresh()
		m.apply(t, 0, n)
		m.flush()
		dir := m.dir
		m.end()
		m, index, host := s.open(dir)
		when(func() { m.replay(t, index, host, len(t.batches)) }, "after Close")
	}
}

func ruleDurable(s *stage) {
	t := s.tell(40)
	for _, power := range []bool{true, false} {
		m := s.fresh()
		var durable uint64
		for n := range t.batches {
			m.apply(t, n, n+1)
			if s.rng.IntN(10) == 0 {
				m.flush()
			}
			d := m.durable()
			if d < durable || d > t.index(n+1) {
				breaks("method Durable returns %d after %d, for a state at index %d: it does not go back, nor beyond the state", d, durable, t.index(n+1))
			}
			durable = d
			m.keeps(t, durable, power)
		}
	}
}

// keeps opens and checks the state that a crash at this moment would leave, while the present state
// machine stays in use.
func (m *subject) keeps(t *story, durable uint64, power bool) {
	dir, err := m.dir.crashed(power)
	must(err)
	when(func() {
		left, index, host := m.s.open(dir)
		defer left.end()
		if index < durable {
			breaks("the state is at index %d, and method Durable had said %d: the log may be gone from there on", index, durable)
		}
		left.survived(t, index, host)
	}, "after a crash")
}

func ruleCrash(s *stage) {
	t, m := s.applied(50, 0)
	for n := 0; n < len(t.batches); {
		to := min(n+1+s.rng.IntN(5), len(t.batches))
		m.apply(t, n, to)
		if s.rng.IntN(3) == 0 {
			m.flush()
		}
		if n = to; s.rng.IntN(2) == 0 {
			continue
		}
		var index uint64
		var host []byte
		m, index, host = m.crashed(s.rng.IntN(2) == 0)
		when(func() { m.replay(t, index, host, n) }, "after a crash")
	}
	m.is(t, len(t.batches))
}

// snap opens a snapshot and checks the snapshot's index and host bytes.
func (m *subject) snap(t *story, n int) rawnode.Snapshot {
	snap, err := m.sm.Snapshot()
	calls("method Snapshot", err)
	if snap == nil {
		breaks("method Snapshot returns nil, and no error")
	}
	metaIs(snap.Meta(), t, n)
	return snap
}

func metaIs(meta rawnode.SnapshotMeta, t *story, n int) {
	if meta.Index != t.index(n) || string(meta.Host) != string(t.hosts[n]) {
		breaks("the snapshot is of index %d with the host's bytes %q, want %d and %q", meta.Index, meta.Host, t.index(n), t.hosts[n])
	}
}

// restored restores a snapshot into a state machine, and compares.
func (m *subject) restored(meta rawnode.SnapshotMeta, body io.Reader, t *story, n int) {
	calls("method Restore", m.sm.Restore(meta, body))
	when(func() { m.is(t, n) }, "restored")
}

// drain reads a snapshot to its end and closes the snapshot.
func drain(snap rawnode.Snapshot) []byte {
	body, err := io.ReadAll(snap)
	calls("read a snapshot", err)
	if n, err := snap.Read(make([]byte, 8)); n != 0 || !errors.Is(err, io.EOF) {
		breaks("behind its end, Read of a snapshot returns %d bytes and error %v, want 0 and io.EOF", n, fmt.Sprint(err))
	}
	calls("close a snapshot", snap.Close())
	return body
}

// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"container/list"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
)

// ID names a session: a number given by the table. No two sessions of a state machine ever have the
// same ID. 0 means no session.
type ID uint64

// Verdict says how the state machine has to treat a command.
type Verdict uint8

// The verdicts. All but Fresh and Repeated are refusals.
const (
	// Fresh: the command has to be applied.
	Fresh Verdict = iota
	// Repeated: the command was applied, and its result is known.
	Repeated
	// Overtaken: a later command of the session was applied before this command. This command was
	// not applied and never will be; its client may send the command again under a new number.
	Overtaken
	// Forgotten: the table does not know any more whether the command was applied. The client had
	// acknowledged the result, or the session has many later results.
	Forgotten
	// Expired: the session does not exist. The session was never opened, or has ended; the table
	// ends the session unused for longest when there are too many.
	Expired
)

// String returns the verdict in the words of an error message.
func (v Verdict) String() string {
	switch v {
	case Fresh:
		return "fresh"
	case Repeated:
		return "applied before"
	case Overtaken:
		return "not applied: a later command of the session came first"
	case Forgotten:
		return "older than what the session remembers"
	case Expired:
		return "no such session, or it has expired"
	}
	return fmt.Sprintf("Verdict(%d)", uint8(v))
}

// Limits bound a table. All replicas must have the same limits at all times, because the limits
// decide which sessions and results the table forgets. A table does not know those of other replicas: a
// state machine names the limits in its method Settings, so that hosts compare them, and keeps them
// beside the table, because the log is replayed with them. The adapters of package state do both.
type Limits struct {
	// Sessions is the largest number of sessions. If a client opens another session, the session
	// unused for longest ends. At least 1.
	Sessions int
	// Results is the largest number of results that a session keeps; at least 1.
	Results int
	// ResultBytes bounds the results that a session keeps, unless a single result is larger; at
	// least 1.
	ResultBytes int
}

// DefaultLimits suit a store with some thousand clients: at most 640 MB in theory, and about a
// hundredth of 640 MB with small results.
var DefaultLimits = Limits{Sessions: 10_000, Results: 16, ResultBytes: 64 << 10}

// ErrInvalid wraps mistakes in limits or arguments.
var ErrInvalid = errors.New("session: invalid")

// Validate returns an error that names every mistake, or nil.
func (l Limits) Validate() error {
	var errs []error
	for _, f := range []struct {
		name  string
		value int
	}{{"Sessions", l.Sessions}, {"Results", l.Results}, {"ResultBytes", l.ResultBytes}} {
		if f.value < 1 {
			errs = append(errs, fmt.Errorf("%w: %s is %d, want 1 or more", ErrInvalid, f.name, f.value))
		}
	}
	return errors.Join(errs...)
}

// Table holds the sessions of one state machine. Only one goroutine at a time may use a table.
type Table struct {
	limits Limits
	// clock counts openings and applied commands. Sessions age by this clock, which is part of the
	// state, unlike the clock of a node.
	clock  uint64
	opened ID // the last session that was opened
	// byUse has a *record for each session, the session unused for longest first.
	// Invariant: used ascends.
	byUse   list.List
	rows    map[ID]*list.Element
	changed map[ID]struct{} // sessions that changed or ended since the last call of Changes
}

// record is the table's knowledge of one session.
type record struct {
	id   ID
	used uint64 // the table's clock when a command was last applied
	// last is the greatest sequence applied.
	last uint64
	// low is the greatest sequence whose result was dropped. The table knows nothing about
	// sequences at or below low.
	low uint64
	// kept are the results above low, by ascending sequence.
	kept  []result
	bytes int // of kept
}

type result struct {
	sequence uint64
	value    []byte
}

// New returns an empty table.
func New(limits Limits) (*Table, error) {
	if err := limits.Validate(); err != nil {
		return nil, err
	}
	return &Table{limits: limits, rows: map[ID]*list.Element{}, changed: map[ID]struct{}{}}, nil
}

// Len returns the number of sessions.
func (t *Table) Len() int { return len(t.rows) }

// Open begins a session and returns its id, which is never 0.
func (t *Table) Open() ID {
	for len(t.rows) >= t.limits.Sessions {
		t.End(t.byUse.Front().Value.(*record).id)
	}
	t.opened++
	t.clock++
	t.rows[t.opened] = t.byUse.PushBack(&record{id: t.opened, used: t.clock})
	t.changed[t.opened] = struct{}{}
	return t.opened
}

// End ends a session, and reports whether the session existed.
func (t *Table) End(id ID) bool {
	row := t.rows[id]
	if row == nil {
		return false
	}
	t.byUse.Remove(row)
	delete(t.rows, id)
	t.changed[id] = struct{}{}
	return true
}

// Admit returns the verdict on a command; with Repeated, also the result of the first time, which
// must not be changed. Admit changes nothing in the table.
func (t *Table) Admit(id ID, sequence uint64) (Verdict, []byte) {
	row := t.rows[id]
	if row == nil {
		return Expired, nil
	}
	r := row.Value.(*record)
	switch {
	case sequence > r.last:
		return Fresh, nil
	case sequence <= r.low:
		return Forgotten, nil
	}
	if i, found := r.find(sequence); found {
		return Repeated, r.kept[i].value
	}
	return Overtaken, nil
}

func (r *record) find(sequence uint64) (int, bool) {
	return slices.BinarySearchFunc(r.kept, sequence, func(k result, s uint64) int {
		switch {
		case k.sequence < s:
			return -1
		case k.sequence > s:
			return 1
		}
		return 0
	})
}

// Applied notes that a command with the verdict Fresh was applied. acknowledged is the sequence up
// to which the client has the results, and these results are dropped; 0 if the client does not say.
// The table keeps value, which must not change. An error says that the command was not Fresh; the
// table is unchanged.
func (t *Table) Applied(id ID, sequence, acknowledged uint64, value []byte) error {
	if v, _ := t.Admit(id, sequence); v != Fresh {
		return fmt.Errorf("%w: session %d, sequence %d is to be noted as applied, and is %v", ErrInvalid, id, sequence, v)
	}
	row := t.rows[id]
	r := row.Value.(*record)
	t.clock++
	r.used, r.last = t.clock, sequence
	r.kept = append(r.kept, result{sequence, value})
	r.bytes += len(value)
	for len(r.kept) > 1 && (r.kept[0].sequence <= acknowledged || len(r.kept) > t.limits.Results || r.bytes > t.limits.ResultBytes) {
		r.low = r.kept[0].sequence
		r.bytes -= len(r.kept[0].value)
		r.kept[0].value = nil
		r.kept = r.kept[1:]
	}
	t.byUse.MoveToBack(row)
	t.changed[id] = struct{}{}
	return nil
}

// Changes yields the differences since its previous call, in a fixed order: keys, and their encoded
// values, or nil for a removed key. Loaded in any order, the pairs make the same table. The state
// machine writes the pairs together with the effects of the commands.
func (t *Table) Changes() iter.Seq2[ID, []byte] {
	ids := slices.Sorted(maps.Keys(t.changed))
	clear(t.changed)
	return func(yield func(ID, []byte) bool) {
		if len(ids) == 0 || !yield(0, t.encodeHead()) {
			return
		}
		for _, id := range ids {
			var value []byte
			if row := t.rows[id]; row != nil {
				value = row.Value.(*record).encode()
			}
			if !yield(id, value) {
				return
			}
		}
	}
}

// All yields the whole table in the form of Changes.
func (t *Table) All() iter.Seq2[ID, []byte] {
	return func(yield func(ID, []byte) bool) {
		if t.clock == 0 || !yield(0, t.encodeHead()) {
			return // no session was ever opened
		}
		for e := t.byUse.Front(); e != nil; e = e.Next() {
			if r := e.Value.(*record); !yield(r.id, r.encode()) {
				return
			}
		}
	}
}

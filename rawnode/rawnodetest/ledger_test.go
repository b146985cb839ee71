// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package rawnodetest_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"maps"
	"math/rand/v2"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"github.com/weftraft/weft/rawnode"
	"github.com/weftraft/weft/rawnode/rawnodetest"
)

// ledger is a state machine as a user might write one, without an adapter: sums by account, in
// memory, written whole to a file after every fourth batch. Field bug selects a common bug of state
// machines.
type ledger struct {
	bug string
	fs  vfs.FS
	dir string

	mu   sync.Mutex
	book book
	kept uint64
	stop error
	had  bool          // an earlier host
	open *bytes.Reader // the body of the last snapshot, for a bug
}

// book is the content of the file.
type book struct {
	Index uint64
	Host  []byte
	Sums  map[string]int
}

func openLedger(bug string) func(rawnodetest.Dir) (rawnode.StateMachine, error) {
	return func(d rawnodetest.Dir) (rawnode.StateMachine, error) {
		l := &ledger{bug: bug, fs: d.FS, dir: d.Path, book: book{Sums: map[string]int{}}}
		return l, l.find()
	}
}

func (l *ledger) path(name string) string { return l.fs.PathJoin(l.dir, name) }

func (l *ledger) find() error {
	f, err := l.fs.Open(l.path("book"))
	if err != nil {
		return nil // a new ledger
	}
	defer func() { _ = f.Close() }()
	if err := json.NewDecoder(f).Decode(&l.book); err != nil {
		return err
	}
	switch l.bug {
	case "index lost":
		l.book.Index = max(l.book.Index, 1) - 1
	case "host's bytes lost":
		l.book.Host = nil
	}
	l.kept = l.book.Index
	return nil
}

func (l *ledger) Load() (uint64, []byte, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.bug != "stays interrupted" {
		l.stop = nil
	}
	if l.bug == "load trusts the memory" && l.had {
		return l.book.Index, l.book.Host, nil
	}
	l.had = true
	if l.bug != "file not synced" && l.bug != "load trusts the cache" {
		return l.book.Index, l.book.Host, l.keep()
	}
	return l.book.Index, l.book.Host, nil
}

func (l *ledger) Apply(b rawnode.Batch) ([]any, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.stop != nil {
		return nil, l.stop
	}
	var results []any
	for i, c := range b.Commands {
		results = append(results, l.one(c))
		switch {
		case l.bug == "first command twice" && i == 0:
			l.one(c)
		case l.bug == "half a batch is seen":
			l.mu.Unlock()
			time.Sleep(time.Millisecond) // so that a reader comes between two commands
			l.mu.Lock()
		case l.bug == "half a batch is kept" && i == 0:
			l.book.Index = b.Index
			if err := l.keep(); err != nil {
				return nil, err
			}
		case l.bug == "commands changed":
			c[0] ^= 1
		}
	}
	if l.bug == "a result missing" && len(results) > 1 {
		results = results[1:]
	}
	l.book.Index = b.Index
	if b.Host != nil || l.bug == "host's bytes cleared" {
		l.book.Host = b.Host
	}
	if b.Index%4 == 0 {
		return results, l.keep()
	}
	return results, nil
}

func (l *ledger) one(c []byte) any {
	if !utf8.Valid(c) && l.bug != "strings of any bytes" {
		return errors.New("not UTF-8, which JSON would change")
	}
	if l.bug == "depends on the replica" && rand.IntN(20) == 0 {
		return 0
	}
	n := 1
	if l.bug == "always twice" {
		n = 2
	}
	l.book.Sums[string(c)] += n
	return l.book.Sums[string(c)]
}

// keep writes the file.
func (l *ledger) keep() error {
	if l.book.Index == 0 {
		return nil
	}
	err := l.write(l.book)
	if err == nil {
		l.kept = l.book.Index
	}
	return err
}

func (l *ledger) write(b book) error {
	text, err := json.Marshal(b)
	if err != nil {
		return err
	}
	name := l.path("book.new")
	if l.bug == "written in place" {
		name = l.path("book")
	}
	f, err := l.fs.Create(name, vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	_, err = f.Write(text[:len(text)/2])
	if err == nil {
		_, err = f.Write(text[len(text)/2:])
	}
	if err == nil && l.bug != "file not synced" {
		err = f.Sync()
	}
	if err := errors.Join(err, f.Close()); err != nil || l.bug == "written in place" {
		return err
	}
	if err := l.fs.Rename(name, l.path("book")); err != nil || l.bug == "file not synced" || l.bug == "directory not synced" {
		return err
	}
	d, err := l.fs.OpenDir(l.dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

func (l *ledger) Durable() (uint64, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.bug == "durable too soon":
		return l.book.Index, nil
	case l.bug == "durable goes back" && l.kept > 8 && l.kept%8 == 0:
		return l.kept - 8, nil
	}
	return l.kept, nil
}

// page is a snapshot.
type page struct {
	l    *ledger
	meta rawnode.SnapshotMeta
	body io.Reader
	late bool
}

func (p *page) Meta() rawnode.SnapshotMeta {
	if p.late {
		p.l.mu.Lock()
		defer p.l.mu.Unlock()
		return rawnode.SnapshotMeta{Index: p.l.book.Index, Host: p.l.book.Host}
	}
	return p.meta
}

func (p *page) Close() error { return nil }

func (p *page) Read(b []byte) (int, error) {
	if p.l.bug == "small reads fail" && len(b) < 16 {
		return 0, io.ErrShortBuffer
	}
	if p.body == nil { // the body is made at the first Read
		p.l.mu.Lock()
		text, err := json.Marshal(p.l.book.Sums)
		p.l.mu.Unlock()
		if err != nil {
			return 0, err
		}
		p.body = bytes.NewReader(text)
	}
	return p.body.Read(b)
}

func (l *ledger) Snapshot() (rawnode.Snapshot, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	p := &page{l: l, meta: rawnode.SnapshotMeta{Index: l.book.Index, Host: l.book.Host}}
	text, err := json.Marshal(l.book.Sums)
	body := bytes.NewReader(text)
	p.body = body
	switch l.bug {
	case "snapshot shares memory":
		p.body = nil
	case "snapshot's index moves":
		p.late = true
	case "snapshot of the file":
		p.meta.Index = l.kept
	case "snapshot without host":
		p.meta.Host = nil
	case "one snapshot at a time":
		if l.open != nil {
			_, _ = l.open.Seek(0, io.SeekEnd)
		}
		l.open = body
	}
	return p, err
}

func (l *ledger) Restore(meta rawnode.SnapshotMeta, body io.Reader) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.stop != nil {
		return l.stop
	}
	if l.bug == "refuses an earlier state" && meta.Index < l.book.Index {
		return errors.New("a state does not go back")
	}
	next := book{Index: meta.Index, Host: meta.Host, Sums: map[string]int{}}
	switch l.bug {
	case "restore begins with nothing":
		l.book = book{Sums: map[string]int{}}
	case "restore adds":
		next.Sums = maps.Clone(l.book.Sums)
	case "restore keeps the host's bytes":
		next.Host = l.book.Host
	case "restore writes first":
		if err := l.write(next); err != nil {
			return err
		}
	}
	if l.bug == "restore stops early" {
		if err := json.NewDecoder(body).Decode(&next.Sums); err != nil {
			return err
		}
	} else {
		text, err := io.ReadAll(body)
		switch {
		case err != nil && l.bug == "restore hides the error":
			return errors.New("cannot restore")
		case err != nil && l.bug != "restore takes what comes":
			return err
		}
		if err := json.Unmarshal(text, &next.Sums); err != nil && l.bug != "restore takes what comes" {
			return err
		}
	}
	if l.bug == "restore not durable" {
		l.book = next
		return nil
	}
	if err := l.write(next); err != nil {
		return err
	}
	l.book, l.kept = next, next.Index
	return nil
}

// Digest sums up a copy of the state.
func (l *ledger) Digest() (func(context.Context) (uint64, error), error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	of := book{Sums: maps.Clone(l.book.Sums)}
	switch l.bug {
	case "digest of what is durable":
		of.Index = l.kept
	case "digest of nothing":
		of.Sums = nil
	case "digest shares memory":
		of.Sums = l.book.Sums
	}
	return func(context.Context) (uint64, error) {
		if l.bug == "digest shares memory" {
			time.Sleep(time.Millisecond) // so that a command comes in between
			l.mu.Lock()
			defer l.mu.Unlock()
		}
		text, err := json.Marshal(of)
		sum := fnv.New64a()
		_, _ = sum.Write(text)
		return sum.Sum64(), err
	}, nil
}

func (l *ledger) Interrupt(reason error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.stop = reason
}

func readLedger(sm rawnode.StateMachine) (string, error) {
	l := sm.(*ledger)
	l.mu.Lock()
	defer l.mu.Unlock()
	text, err := json.Marshal(l.book.Sums)
	return string(text), err
}

func ledgers(bug string) rawnodetest.StateMachineFactory {
	return rawnodetest.StateMachineFactory{
		Open:    openLedger(bug),
		Command: func(r *rand.Rand) []byte { return fmt.Appendf(nil, "account %d", r.IntN(12)) },
		Read:    readLedger,
		Model: func() func([]byte) string {
			sums := map[string]int{}
			return func(c []byte) string {
				sums[string(c)]++
				text, _ := json.Marshal(sums) // of a map of numbers
				return string(text)
			}
		},
	}
}

func TestStateMachineThatIsRight(t *testing.T) { rawnodetest.TestStateMachine(t, ledgers("")) }

// The suite finds each bug, by the rule that the bug breaks.
func TestStateMachineSuiteFindsBugs(t *testing.T) {
	for bug, rule := range map[string]string{
		"index lost":                     "index and host's bytes are kept with the state",
		"host's bytes lost":              "index and host's bytes are kept with the state",
		"host's bytes cleared":           "index and host's bytes are kept with the state",
		"file not synced":                "what Durable names survives a crash",
		"directory not synced":           "what Durable names survives a crash",
		"load trusts the cache":          "what Load returns is durable",
		"load trusts the memory":         "what Load returns is durable",
		"refuses an earlier state":       "a restored state may be an earlier one",
		"written in place":               "a crash during Restore leaves the old state or the new one",
		"strings of any bytes":           "commands of any bytes mean the same at all replicas",
		"first command twice":            "each command takes effect once, with one result",
		"always twice":                   "each command takes effect once, with one result",
		"a result missing":               "each command takes effect once, with one result",
		"commands changed":               "each command takes effect once, with one result",
		"depends on the replica":         "each command takes effect once, with one result",
		"half a batch is seen":           "readers see whole batches",
		"half a batch is kept":           "a crash leaves the state after a batch",
		"durable too soon":               "what Durable names survives a crash",
		"durable goes back":              "what Durable names survives a crash",
		"snapshot shares memory":         "a snapshot stays as it is while commands are applied",
		"snapshot's index moves":         "a snapshot stays as it is while commands are applied",
		"snapshot of the file":           "a snapshot is of the present state",
		"snapshot without host":          "a snapshot is of the present state",
		"one snapshot at a time":         "two snapshots do not disturb each other",
		"small reads fail":               "a snapshot can be read in pieces of any size",
		"restore begins with nothing":    "Restore returns the error of its body and keeps the state",
		"restore adds":                   "a restored state takes the place of the old one",
		"restore keeps the host's bytes": "a restored state takes the place of the old one",
		"restore writes first":           "a crash during Restore leaves the old state or the new one",
		"restore stops early":            "Restore reads its body up to io.EOF",
		"restore takes what comes":       "Restore returns the error of its body and keeps the state",
		"restore hides the error":        "Restore returns the error of its body and keeps the state",
		"restore not durable":            "a restored state is durable when Restore returns",
		"stays interrupted":              "a state that was interrupted can be loaded",
		"digest of what is durable":      "equal states have equal digests, and others do not",
		"digest of nothing":              "equal states have equal digests, and others do not",
		"digest shares memory":           "equal states have equal digests, and others do not",
	} {
		t.Run(bug, func(t *testing.T) {
			t.Parallel()
			err := rawnodetest.CheckStateMachine(ledgers(bug))
			require.Contains(t, rawnodetest.Broken(err), rule, "%v", err)
		})
	}
}

// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package rawnodetest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"testing/iotest"

	"github.com/weftraft/weft/rawnode"
)

func rulePresent(s *stage) {
	t, m := s.applied(10, 0)
	for n := range t.batches {
		m.apply(t, n, n+1)
		snap := m.snap(t, n+1)
		body := drain(snap)
		s.restored(snap.Meta(), bytes.NewReader(body), t, n+1).end()
	}
}

func ruleSnapshotStays(s *stage) {
	t, m := s.applied(30, 10)
	snap := m.snap(t, 10)
	meta := snap.Meta()
	m.apply(t, 10, 30)
	m.flush()
	when(func() { metaIs(snap.Meta(), t, 10) }, "after more commands")
	body := drain(snap)
	when(func() { s.restored(meta, bytes.NewReader(body), t, 10) },
		"a snapshot of index %d that was read after more commands, up to index %d", t.index(10), t.index(30))
	m.is(t, 30)
}

func ruleTwoSnapshots(s *stage) {
	t, m := s.applied(30, 10)
	first := m.snap(t, 10)
	head := make([]byte, 3)
	had, err := io.ReadFull(first, head)
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, io.EOF) {
		breaks("read a snapshot: %w", err)
	}
	third := m.snap(t, 10)
	m.apply(t, 10, 20)
	second := m.snap(t, 20)
	calls("close a snapshot that was not read", third.Close())
	for _, x := range []struct {
		snap rawnode.Snapshot
		head []byte
		n    int
	}{{second, nil, 20}, {first, head[:had], 10}} {
		when(func() {
			body := drain(x.snap)
			s.restored(x.snap.Meta(), bytes.NewReader(append(x.head, body...)), t, x.n)
		}, "with two snapshots open, that of index %d", t.index(x.n))
	}
	m.is(t, 20)
}

func rulePieces(s *stage) {
	t, m := s.applied(15, 15)
	for name, cut := range map[string]func(io.Reader) io.Reader{
		"of one byte": iotest.OneByteReader, "with io.EOF beside the last bytes": iotest.DataErrReader, "of half of what is asked for": iotest.HalfReader,
	} {
		snap := m.snap(t, 15)
		when(func() { s.restored(snap.Meta(), cut(snap), t, 15) }, "in pieces %s", name)
		calls("close a snapshot", snap.Close())
	}
}

// taken returns a snapshot of the state after n batches of a story.
func (s *stage) taken(t *story, n int) (meta rawnode.SnapshotMeta, body []byte) {
	m := s.fresh()
	defer m.end()
	m.apply(t, 0, n)
	snap := m.snap(t, n)
	body = drain(snap)
	return snap.Meta(), body
}

// told tells a story, and returns a snapshot of the state after its first n batches.
func (s *stage) told(batches, n int) (t *story, meta rawnode.SnapshotMeta, body []byte) {
	t = s.tell(batches)
	meta, body = s.taken(t, n)
	return t, meta, body
}

// behind returns a state machine with another history of n batches, at a lower index than t after n
// batches, and the other history.
func (s *stage) behind(t *story, n int) (*subject, *story) {
	other := s.tell(n)
	shift := t.index(n)
	for i := range other.batches {
		other.batches[i].Index = shift - uint64(n-i)
		if other.batches[i].Host != nil {
			other.batches[i].Host = fmt.Appendf(nil, "another host at %d", i)
		}
	}
	s.learn(other)
	m := s.fresh()
	m.apply(other, 0, n)
	m.flush()
	return m, other
}

// ruleReplaces restores a small state over a large state.
func ruleReplaces(s *stage) {
	large, t := s.tell(60), s.tell(3)
	for i := range t.batches {
		t.batches[i].Index += large.index(60)
	}
	meta, body := s.taken(t, 3)
	m := s.fresh()
	m.apply(large, 0, 60)
	old := m.snap(large, 60)
	when(func() { m.restored(meta, bytes.NewReader(body), t, 3) }, "over another state")
	when(func() {
		body := drain(old)
		s.restored(old.Meta(), bytes.NewReader(body), large, 60)
	}, "a snapshot from before Restore")
	when(func() { must(m.snap(t, 3).Close()) }, "after Restore")
}

func ruleRestoreDurable(s *stage) {
	t, meta, body := s.told(20, 20)
	for _, power := range []bool{true, false} {
		m, _ := s.behind(t, 6)
		m.restored(meta, bytes.NewReader(body), t, 20)
		if d, err := m.sm.Durable(); err != nil || d != meta.Index {
			breaks("method Durable returns %d and error %v after a snapshot of index %d was restored, want that index", d, fmt.Sprint(err), meta.Index)
		}
		m, index, host := m.crashed(power)
		if index != meta.Index {
			breaks("after a crash behind Restore, Load returns index %d, want %d: the old state has no log any more", index, meta.Index)
		}
		when(func() { m.survived(t, index, host) }, "after a crash behind Restore")
	}
}

// ruleGoesBack restores a snapshot of the state's own past, as TakeBack of package weft does.
func ruleGoesBack(s *stage) {
	t, meta, body := s.told(20, 8)
	for _, power := range []bool{true, false} {
		m := s.fresh()
		m.apply(t, 0, 20)
		m.flush()
		m.restored(meta, bytes.NewReader(body), t, 8)
		if d := m.durable(); d != meta.Index {
			breaks("method Durable returns %d after the state went back to index %d, want that index", d, meta.Index)
		}
		m, index, host := m.crashed(power)
		if index != meta.Index {
			breaks("after a crash behind Restore, Load returns index %d, want %d: what came behind was taken back", index, meta.Index)
		}
		when(func() { m.replay(t, index, host, 20) }, "after a crash behind Restore")
	}
}

// ruleGoesOn restores a snapshot, applies more commands, crashes, and takes a snapshot for the next
// round.
func ruleGoesOn(s *stage) {
	t, meta, body := s.told(40, 10)
	for n := 10; n < 40; n += 10 {
		m, _ := s.behind(t, 4)
		m.restored(meta, bytes.NewReader(body), t, n)
		when(func() { m.apply(t, n, n+10) }, "after Restore")
		m, index, host := m.crashed(n != 20)
		when(func() { m.replay(t, index, host, n+10) }, "after Restore, more commands, and a crash")
		snap := m.snap(t, n+10)
		meta, body = snap.Meta(), drain(snap)
	}
}

var errCut = errors.New("rawnodetest: the sender gave up")

// cuts returns places of a body for a failure: both ends, and some places between.
func (s *stage) cuts(size int) []int {
	at := []int{0, 1, size / 2, size - 1, size}
	for range 6 {
		at = append(at, s.rng.IntN(size+1))
	}
	for i := range at {
		at[i] = min(max(at[i], 0), size)
	}
	return at
}

func ruleTorn(s *stage) {
	t, meta, body := s.told(20, 20)
	m, old := s.behind(t, 6)
	for _, at := range s.cuts(len(body)) {
		torn := io.MultiReader(bytes.NewReader(body[:at]), iotest.ErrReader(errCut))
		if err := m.sm.Restore(meta, torn); !errors.Is(err, errCut) {
			breaks("method Restore of a body that fails after %d of %d bytes returns %v, want the body's error", at, len(body), fmt.Sprint(err))
		}
		when(func() {
			m.is(old, 6)
			if d := m.durable(); d > old.index(6) {
				breaks("method Durable returns %d, for a state at index %d", d, old.index(6))
			}
			m.keeps(old, 0, at%2 == 0)
		}, "after a Restore that failed at byte %d of %d", at, len(body))
	}
	// A Restore that failed does not prevent a later Restore.
	m.restored(meta, bytes.NewReader(body), t, 20)
}

// ruleEOF checks that Restore reads up to the end of the body.
func ruleEOF(s *stage) {
	t, meta, body := s.told(20, 20)
	r := &ended{from: bytes.NewReader(body)}
	s.restored(meta, r, t, 20)
	if !r.eof {
		breaks("method Restore returned before it had read io.EOF, behind %d bytes: it cannot know that the body is whole", len(body))
	}
}

// ended notes whether the end was read.
type ended struct {
	from io.Reader
	eof  bool
}

// Read implements io.Reader.
func (e *ended) Read(b []byte) (int, error) {
	n, err := e.from.Read(b)
	e.eof = e.eof || errors.Is(err, io.EOF)
	return n, err
}

func ruleCrashInRestore(s *stage) {
	t, meta, body := s.told(20, 20)
	for _, at := range s.cuts(len(body)) {
		m, old := s.behind(t, 6)
		durable := m.durable()
		var left []Dir
		crash := &pause{then: func() error {
			for _, power := range []bool{true, false} {
				d, err := m.dir.crashed(power)
				if err != nil {
					return err
				}
				left = append(left, d)
			}
			return nil
		}}
		m.restored(meta, io.MultiReader(bytes.NewReader(body[:at]), crash, bytes.NewReader(body[at:])), t, 20)
		m.end()
		for _, dir := range left {
			when(func() { s.oldOrNew(dir, old, t, durable) }, "after a crash at byte %d of %d of a Restore", at, len(body))
		}
	}
}

// pause is a reader without bytes that calls then once.
type pause struct{ then func() error }

// Read implements io.Reader.
func (a *pause) Read([]byte) (int, error) {
	if a.then != nil {
		err := a.then()
		a.then = nil
		if err != nil {
			return 0, err
		}
	}
	return 0, io.EOF
}

func (s *stage) oldOrNew(dir Dir, old, t *story, durable uint64) {
	m, index, host := s.open(dir)
	defer m.end()
	if index == t.index(20) {
		m.survived(t, index, host)
		return
	}
	if index < durable {
		breaks("method Load returns index %d, Durable had said %d", index, durable)
	}
	m.replay(old, index, host, 6)
}

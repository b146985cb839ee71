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

func rulePresent(s *stage) error {
	t, m, err := s.applied(10, 0)
	if err != nil {
		return err
	}
	for n := range t.batches {
		if err := m.apply(t, n, n+1); err != nil {
			return err
		}
		snap, err := m.snap(t, n+1)
		if err != nil {
			return err
		}
		body, err := drain(snap)
		if err != nil {
			return err
		}
		other, err := s.restored(snap.Meta(), bytes.NewReader(body), t, n+1)
		if err != nil {
			return err
		}
		other.end()
	}
	return nil
}

func ruleSnapshotStays(s *stage) error {
	t, m, err := s.applied(30, 10)
	if err != nil {
		return err
	}
	snap, err := m.snap(t, 10)
	if err != nil {
		return err
	}
	meta := snap.Meta()
	if err := errors.Join(m.apply(t, 10, 30), m.flush()); err != nil {
		return err
	}
	if err := metaIs(snap.Meta(), t, 10); err != nil {
		return fmt.Errorf("after more commands: %w", err)
	}
	body, err := drain(snap)
	if err != nil {
		return err
	}
	if _, err := s.restored(meta, bytes.NewReader(body), t, 10); err != nil {
		return fmt.Errorf("a snapshot of index %d that was read after more commands, up to index %d: %w", t.index(10), t.index(30), err)
	}
	return m.is(t, 30)
}

func ruleTwoSnapshots(s *stage) error {
	t, m, err := s.applied(30, 10)
	if err != nil {
		return err
	}
	first, err := m.snap(t, 10)
	if err != nil {
		return err
	}
	head := make([]byte, 3)
	had, err := io.ReadFull(first, head)
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, io.EOF) {
		return fmt.Errorf("read a snapshot: %w", err)
	}
	third, err := m.snap(t, 10)
	if err != nil {
		return err
	}
	if err := m.apply(t, 10, 20); err != nil {
		return err
	}
	second, err := m.snap(t, 20)
	if err != nil {
		return err
	}
	if err := third.Close(); err != nil {
		return fmt.Errorf("close a snapshot that was not read: %w", err)
	}
	for _, x := range []struct {
		snap rawnode.Snapshot
		head []byte
		n    int
	}{{second, nil, 20}, {first, head[:had], 10}} {
		body, err := drain(x.snap)
		if err != nil {
			return err
		}
		if _, err := s.restored(x.snap.Meta(), bytes.NewReader(append(x.head, body...)), t, x.n); err != nil {
			return fmt.Errorf("with two snapshots open, that of index %d: %w", t.index(x.n), err)
		}
	}
	return m.is(t, 20)
}

func rulePieces(s *stage) error {
	t, m, err := s.applied(15, 15)
	if err != nil {
		return err
	}
	for name, cut := range map[string]func(io.Reader) io.Reader{
		"of one byte": iotest.OneByteReader, "with io.EOF beside the last bytes": iotest.DataErrReader, "of half of what is asked for": iotest.HalfReader,
	} {
		snap, err := m.snap(t, 15)
		if err != nil {
			return err
		}
		if _, err := s.restored(snap.Meta(), cut(snap), t, 15); err != nil {
			return fmt.Errorf("in pieces %s: %w", name, err)
		}
		if err := snap.Close(); err != nil {
			return fmt.Errorf("close a snapshot: %w", err)
		}
	}
	return nil
}

// taken returns a snapshot of the state after n batches of a story.
func (s *stage) taken(t *story, n int) (meta rawnode.SnapshotMeta, body []byte, err error) {
	m, err := s.fresh()
	if err != nil {
		return meta, nil, err
	}
	defer m.end()
	if err := m.apply(t, 0, n); err != nil {
		return meta, nil, err
	}
	snap, err := m.snap(t, n)
	if err != nil {
		return meta, nil, err
	}
	body, err = drain(snap)
	return snap.Meta(), body, err
}

// told tells a story, and returns a snapshot of the state after its first n batches.
func (s *stage) told(batches, n int) (t *story, meta rawnode.SnapshotMeta, body []byte, err error) {
	if t, err = s.tell(batches); err != nil {
		return nil, meta, nil, err
	}
	meta, body, err = s.taken(t, n)
	return t, meta, body, err
}

// behind returns a state machine with another history of n batches, at a lower index than t after n
// batches, and the other history.
func (s *stage) behind(t *story, n int) (*subject, *story, error) {
	other, err := s.tell(n)
	if err != nil {
		return nil, nil, err
	}
	shift := t.index(n)
	for i := range other.batches {
		other.batches[i].Index = shift - uint64(n-i)
		if other.batches[i].Host != nil {
			other.batches[i].Host = fmt.Appendf(nil, "another host at %d", i)
		}
	}
	if err := s.learn(other); err != nil {
		return nil, nil, err
	}
	m, err := s.fresh()
	if err != nil {
		return nil, nil, err
	}
	return m, other, errors.Join(m.apply(other, 0, n), m.flush())
}

// ruleReplaces restores a small state over a large state.
func ruleReplaces(s *stage) error {
	large, err := s.tell(60)
	if err != nil {
		return err
	}
	t, err := s.tell(3)
	if err != nil {
		return err
	}
	for i := range t.batches {
		t.batches[i].Index += large.index(60)
	}
	meta, body, err := s.taken(t, 3)
	if err != nil {
		return err
	}
	m, err := s.fresh()
	if err != nil {
		return err
	}
	if err := m.apply(large, 0, 60); err != nil {
		return err
	}
	old, err := m.snap(large, 60)
	if err != nil {
		return err
	}
	if err := m.restored(meta, bytes.NewReader(body), t, 3); err != nil {
		return fmt.Errorf("over another state: %w", err)
	}
	if body, err = drain(old); err != nil {
		return fmt.Errorf("a snapshot from before Restore: %w", err)
	}
	if _, err := s.restored(old.Meta(), bytes.NewReader(body), large, 60); err != nil {
		return fmt.Errorf("a snapshot from before Restore: %w", err)
	}
	snap, err := m.snap(t, 3)
	if err != nil {
		return fmt.Errorf("after Restore: %w", err)
	}
	return snap.Close()
}

func ruleRestoreDurable(s *stage) error {
	t, meta, body, err := s.told(20, 20)
	if err != nil {
		return err
	}
	for _, power := range []bool{true, false} {
		m, _, err := s.behind(t, 6)
		if err != nil {
			return err
		}
		if err := m.restored(meta, bytes.NewReader(body), t, 20); err != nil {
			return err
		}
		if d, err := m.sm.Durable(); err != nil || d != meta.Index {
			return fmt.Errorf("method Durable returns %d and error %v after a snapshot of index %d was restored, want that index", d, fmt.Sprint(err), meta.Index)
		}
		m, index, host, err := m.crashed(power)
		if err != nil {
			return err
		}
		if index != meta.Index {
			return fmt.Errorf("after a crash behind Restore, Load returns index %d, want %d: the old state has no log any more", index, meta.Index)
		}
		if _, err := m.survived(t, index, host); err != nil {
			return fmt.Errorf("after a crash behind Restore: %w", err)
		}
	}
	return nil
}

// ruleGoesBack restores a snapshot of the state's own past, as TakeBack of package weft does.
func ruleGoesBack(s *stage) error {
	t, meta, body, err := s.told(20, 8)
	if err != nil {
		return err
	}
	for _, power := range []bool{true, false} {
		m, err := s.fresh()
		if err != nil {
			return err
		}
		if err := errors.Join(m.apply(t, 0, 20), m.flush()); err != nil {
			return err
		}
		if err := m.restored(meta, bytes.NewReader(body), t, 8); err != nil {
			return fmt.Errorf("a state at index %d: %w", t.index(20), err)
		}
		if d, err := m.sm.Durable(); err != nil || d != meta.Index {
			return fmt.Errorf("method Durable returns %d and error %v after the state went back to index %d, want that index", d, fmt.Sprint(err), meta.Index)
		}
		m, index, host, err := m.crashed(power)
		if err != nil {
			return err
		}
		if _, err := m.survived(t, index, host); err != nil || index != meta.Index {
			return fmt.Errorf("after a crash behind Restore, Load returns index %d and error %v, want %d: what came behind was taken back", index, fmt.Sprint(err), meta.Index)
		}
		if err := errors.Join(m.apply(t, 8, 20), m.is(t, 20)); err != nil {
			return err
		}
	}
	return nil
}

// ruleGoesOn restores a snapshot, applies more commands, crashes, and takes a snapshot for the next
// round.
func ruleGoesOn(s *stage) error {
	t, meta, body, err := s.told(40, 10)
	if err != nil {
		return err
	}
	for n := 10; n < 40; n += 10 {
		m, _, err := s.behind(t, 4)
		if err != nil {
			return err
		}
		if err := m.restored(meta, bytes.NewReader(body), t, n); err != nil {
			return err
		}
		if err := m.apply(t, n, n+10); err != nil {
			return fmt.Errorf("after Restore: %w", err)
		}
		m, index, host, err := m.crashed(n != 20)
		if err != nil {
			return err
		}
		from, err := m.survived(t, index, host)
		if err != nil {
			return fmt.Errorf("after Restore, more commands, and a crash: %w", err)
		}
		if err := m.apply(t, from, n+10); err != nil {
			return err
		}
		if err := m.is(t, n+10); err != nil {
			return fmt.Errorf("after Restore, a crash, and the log replayed from index %d: %w", index, err)
		}
		snap, err := m.snap(t, n+10)
		if err != nil {
			return err
		}
		meta = snap.Meta()
		if body, err = drain(snap); err != nil {
			return err
		}
	}
	return nil
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

func ruleTorn(s *stage) error {
	t, meta, body, err := s.told(20, 20)
	if err != nil {
		return err
	}
	m, old, err := s.behind(t, 6)
	if err != nil {
		return err
	}
	for _, at := range s.cuts(len(body)) {
		torn := io.MultiReader(bytes.NewReader(body[:at]), iotest.ErrReader(errCut))
		err := m.sm.Restore(meta, torn)
		if !errors.Is(err, errCut) {
			return fmt.Errorf("method Restore of a body that fails after %d of %d bytes returns %v, want the body's error", at, len(body), fmt.Sprint(err))
		}
		if err := m.is(old, 6); err != nil {
			return fmt.Errorf("after a Restore that failed at byte %d of %d: %w", at, len(body), err)
		}
		if d, err := m.sm.Durable(); err != nil || d > old.index(6) {
			return fmt.Errorf("after a Restore that failed, Durable returns %d and error %v, for a state at index %d", d, fmt.Sprint(err), old.index(6))
		}
		if err := m.keeps(old, 0, at%2 == 0); err != nil {
			return fmt.Errorf("after a Restore that failed at byte %d of %d: %w", at, len(body), err)
		}
	}
	// A Restore that failed does not prevent a later Restore.
	return m.restored(meta, bytes.NewReader(body), t, 20)
}

// ruleEOF checks that Restore reads up to the end of the body.
func ruleEOF(s *stage) error {
	t, meta, body, err := s.told(20, 20)
	if err != nil {
		return err
	}
	m, err := s.fresh()
	if err != nil {
		return err
	}
	r := &ended{from: bytes.NewReader(body)}
	if err := m.restored(meta, r, t, 20); err != nil {
		return err
	}
	if !r.eof {
		return fmt.Errorf("method Restore returned before it had read io.EOF, behind %d bytes: it cannot know that the body is whole", len(body))
	}
	return nil
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

func ruleCrashInRestore(s *stage) error {
	t, meta, body, err := s.told(20, 20)
	if err != nil {
		return err
	}
	for _, at := range s.cuts(len(body)) {
		m, old, err := s.behind(t, 6)
		if err != nil {
			return err
		}
		durable, err := m.sm.Durable()
		if err != nil {
			return fmt.Errorf("method Durable: %w", err)
		}
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
		r := io.MultiReader(bytes.NewReader(body[:at]), crash, bytes.NewReader(body[at:]))
		if err := m.restored(meta, r, t, 20); err != nil {
			return err
		}
		m.end()
		for _, dir := range left {
			if err := s.oldOrNew(dir, old, t, durable); err != nil {
				return fmt.Errorf("after a crash at byte %d of %d of a Restore: %w", at, len(body), err)
			}
		}
	}
	return nil
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

func (s *stage) oldOrNew(dir Dir, old, t *story, durable uint64) error {
	m, index, host, err := s.open(dir)
	if err != nil {
		return err
	}
	defer m.end()
	if index == t.index(20) {
		_, err := m.survived(t, index, host)
		return err
	}
	if index < durable {
		return fmt.Errorf("method Load returns index %d, Durable had said %d", index, durable)
	}
	n, err := m.survived(old, index, host)
	if err != nil {
		return err
	}
	if err := m.apply(old, n, 6); err != nil {
		return err
	}
	return m.is(old, 6)
}

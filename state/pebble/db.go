// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package pebblestate

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/weftraft/weft/internal/gate"
	"github.com/weftraft/weft/state"
)

// How long Open and Close wait for room on a full disk: as long again at most; and for a disk
// that does not answer. The log has what Close does not flush.
const (
	openPatience  = 5 * time.Second
	closePatience = time.Second
	stuckPatience = 5 * time.Second
)

// DB is a Pebble database with the states of any number of groups of a node. Its methods
// may be called by several goroutines.
type DB struct {
	opts    Options
	gate    *gate.Gate
	pebble  *pebble.DB
	flushes atomic.Uint64 // that have ended

	lock     io.Closer
	unlocked sync.Once

	mu     sync.Mutex
	users  int            // of pebble: the DB itself until Close, calls, snapshots
	tails  sync.WaitGroup // of commits and flushes, which may go on behind their calls; added to under mu
	closed bool           // users only fall
	groups map[uint64]*State
}

// Open opens the database in opts.Dir, or makes an empty one. Errors wrap
// [state.ErrInvalid], [state.ErrLocked], [state.ErrIdentity], [state.ErrVersion],
// [state.ErrDamaged] or [ErrFull] where one of these applies.
func Open(opts Options) (*DB, error) {
	if err := opts.Validate(); err != nil {
		return nil, err
	}
	opts.setDefaults()
	db := &DB{opts: opts, users: 1, groups: map[uint64]*State{}}
	db.gate = gate.New(gate.Options{Logf: opts.Logf, Full: ErrFull, Failed: ErrFailed, Mark: damage})
	var err error
	if db.lock, err = takeDir(opts.FS, opts.Dir); err != nil {
		return nil, err
	}
	if err := db.bounded(openPatience, db.open); err != nil {
		return nil, errors.Join(err, db.settle())
	}
	return db, nil
}

// takeDir makes a directory, and locks it, unless the disk does not answer.
func takeDir(fs vfs.FS, dir string) (io.Closer, error) {
	type taken struct {
		lock io.Closer
		err  error
	}
	done := make(chan taken, 1)
	go func() {
		if err := makeDir(fs, dir); err != nil {
			done <- taken{nil, err}
			return
		}
		lock, err := fs.Lock(fs.PathJoin(dir, "LOCK"))
		if err != nil {
			err = fmt.Errorf("%w: lock %s: %w; close the other one first", state.ErrLocked, dir, err)
		}
		done <- taken{lock, err}
	}()
	select {
	case t := <-done:
		return t.lock, t.err
	case <-time.After(stuckPatience):
	}
	go func() {
		if t := <-done; t.err == nil {
			_ = t.lock.Close() // nothing was done under it
		}
	}()
	return nil, fmt.Errorf("%w: make state directory: %w", ErrFailed, noAnswer(dir))
}

func noAnswer(dir string) error {
	return fmt.Errorf("the disk of %s does not answer for %v", dir, stuckPatience)
}

// makeDir makes a directory that survives a crash.
func makeDir(fs vfs.FS, dir string) error {
	err := fs.MkdirAll(dir, 0o755)
	if err == nil {
		var parent vfs.File
		if parent, err = fs.OpenDir(fs.PathDir(dir)); err == nil {
			err = errors.Join(parent.Sync(), parent.Close())
		}
	}
	if gate.NoRoom(err) {
		err = fmt.Errorf("%w: %w", ErrFull, err)
	}
	if err != nil {
		return fmt.Errorf("make state directory %s: %w", dir, err)
	}
	return nil
}

// open opens Pebble, and compares whose state it is.
func (db *DB) open() error {
	p, err := pebble.Open(db.opts.Dir, db.pebbleOptions())
	if err != nil {
		return fmt.Errorf("open state in %s: %w", db.opts.Dir, damage(err))
	}
	if err := db.identify(p); err != nil {
		return fmt.Errorf("open state in %s: %w", db.opts.Dir, errors.Join(err, p.Close()))
	}
	db.pebble = p
	return nil
}

func (db *DB) identify(p *pebble.DB) error {
	want := append([]byte{formatVersion}, db.opts.Identity...)
	found, ok, err := get(p, identityKey)
	switch {
	case err != nil:
		return err
	case ok && (len(found) == 0 || found[0] != formatVersion):
		return fmt.Errorf("%w: %x, this program reads %d", state.ErrVersion, found, formatVersion)
	case ok && !bytes.Equal(found, want):
		return fmt.Errorf("%w: of %q, this is %q; give the directory of this node", state.ErrIdentity, found[1:], want[1:])
	case ok:
		return nil
	}
	it, err := p.NewIter(nil)
	if err != nil {
		return damage(err)
	}
	empty := !it.First()
	if err := errors.Join(damage(it.Error()), it.Close()); err != nil {
		return err
	}
	if !empty {
		return fmt.Errorf("%w: there are keys, and no record of whose they are", state.ErrDamaged)
	}
	if err := p.Set(identityKey, want, pebble.NoSync); err != nil {
		return err
	}
	return p.Flush()
}

// bounded runs f, and gives up when the gate shuts, or when the disk has been full for a
// while, or does not answer: then it shuts the gate. f may go on, and begins nothing on the
// disk; what is there already ends before settle.
func (db *DB) bounded(patience time.Duration, f func() error) error {
	done := make(chan error, 1)
	go func() { done <- f() }()
	look := time.NewTicker(patience)
	defer look.Stop()
	stuck := time.NewTicker(stuckPatience)
	defer stuck.Stop()
	_, before := db.gate.Progress()
	for waits := false; ; {
		select {
		case err := <-done:
			return err
		case <-db.gate.Dead():
			return db.gate.Failure()
		case <-look.C:
			full := db.gate.Stalled()
			if full != nil && waits {
				db.gate.Shut(full)
			}
			waits = full != nil
		case <-stuck.C:
			pending, ended := db.gate.Progress()
			if pending > 0 && ended == before {
				db.gate.Fail(noAnswer(db.opts.Dir))
			}
			before = ended
		}
	}
}

// settle unlocks the directory once no operation is on the disk. The gate is shut, or Pebble
// closed. If the disk does not answer, the directory stays locked until it does.
func (db *DB) settle() error {
	unlocked := make(chan error, 1)
	go func() {
		db.gate.Settle()
		unlocked <- db.unlock()
	}()
	select {
	case err := <-unlocked:
		return err
	case <-time.After(closePatience):
		return fmt.Errorf("%s stays locked until the disk answers, or the process ends", db.opts.Dir)
	}
}

// acquire keeps Pebble open until release.
func (db *DB) acquire() error {
	db.mu.Lock()
	defer db.mu.Unlock()
	return db.use()
}

// use is acquire for a caller that holds db.mu.
func (db *DB) use() error {
	if db.closed {
		return fmt.Errorf("%w: %s", state.ErrClosed, db.opts.Dir)
	}
	db.users++
	return nil
}

// start runs f, which writes, and keeps Pebble open meanwhile. The result is sent when f is over;
// nobody need wait for it.
func (db *DB) start(f func() error) (<-chan error, error) {
	db.mu.Lock()
	defer db.mu.Unlock()
	if err := db.use(); err != nil {
		return nil, err
	}
	done := make(chan error, 1)
	db.tails.Go(func() { done <- errors.Join(f(), db.release()) })
	return done, nil
}

// release ends one use of Pebble. The last one, behind Close, flushes and closes it.
func (db *DB) release() error {
	db.mu.Lock()
	db.users--
	last := db.users == 0
	db.mu.Unlock()
	if !last {
		return nil
	}
	err := db.bounded(closePatience, func() error { return errors.Join(db.pebble.Flush(), db.pebble.Close()) })
	return errors.Join(db.cutShort(err), db.settle())
}

// cutShort returns the error of a close, or nil.
func (db *DB) cutShort(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("close state in %s: not all of it is durable, the log replays the rest: %w", db.opts.Dir, err)
}

func (db *DB) unlock() (err error) {
	db.unlocked.Do(func() { err = db.lock.Close() })
	return err
}

// Close flushes and closes the database. Hosts should have stopped, and snapshots have
// been closed; the last snapshot that is open still closes the database. While the disk
// is full, or does not answer, or after a failure, not everything is flushed, and an error says
// so; the log has what is missing. If the disk does not answer, the directory stays locked until
// the disk does. A second call returns [state.ErrClosed].
func (db *DB) Close() error {
	db.mu.Lock()
	if db.closed {
		db.mu.Unlock()
		return state.ErrClosed
	}
	db.closed = true
	db.mu.Unlock()
	if full := db.gate.Stalled(); full != nil {
		db.gate.Shut(full)
	}
	err := db.bounded(closePatience, func() error { db.tails.Wait(); return nil })
	released := db.release()
	if err == nil && released == nil && db.gate.Failure() == nil {
		return nil
	}
	if released != nil {
		return released
	}
	return errors.Join(db.cutShort(db.gate.Failure()), db.settle()) // calls that wait at the gate keep their uses
}

// Flush makes everything durable that was applied before. While the disk is full, or
// when it becomes so, it returns [ErrFull] at once.
func (db *DB) Flush() error {
	if full := db.gate.Stalled(); full != nil {
		return full
	}
	return db.flush(nil)
}

// flush waits for a flush, until there is no room, or the disk fails, or the host ends.
func (db *DB) flush(ended <-chan struct{}) error {
	fills := db.gate.Fills()
	if ended != nil {
		fills = nil // Restore waits for room
	}
	flushed, err := db.start(func() error { return db.pebble.Flush() })
	if err != nil {
		return err
	}
	select {
	case err := <-flushed:
		return err
	case <-db.gate.Dead():
		return db.gate.Failure()
	case <-fills:
		return fmt.Errorf("flush state: %w", ErrFull)
	case <-ended:
		return fmt.Errorf("flush state: %w", state.ErrInterrupted)
	}
}

// Stalled returns nil while the state can be written. Otherwise the disk is full, and
// the error, which wraps [ErrFull], says where. Commands wait; reads go on.
func (db *DB) Stalled() error { return db.gate.Stalled() }

// Failed returns a channel that is closed when the disk has failed; Err then says how.
// The node must stop.
func (db *DB) Failed() <-chan struct{} { return db.gate.Dead() }

// Err returns nil, or why Failed is closed.
func (db *DB) Err() error { return db.gate.Failure() }

// Metrics returns Pebble's own, or nil after Close.
func (db *DB) Metrics() *pebble.Metrics {
	if db.acquire() != nil {
		return nil
	}
	m := db.pebble.Metrics()
	if err := db.release(); err != nil {
		db.opts.Logf("%v", err)
	}
	return m
}

// get returns a copy of a value.
func get(r pebble.Reader, key []byte) (value []byte, found bool, err error) {
	v, closer, err := r.Get(key)
	if errors.Is(err, pebble.ErrNotFound) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, damage(err)
	}
	return append([]byte{}, v...), true, closer.Close()
}

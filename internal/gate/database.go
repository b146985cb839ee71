// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/weftraft/weft/internal/dirlock"
)

const (
	// defaultPatience is how long, or up to twice as long, Open waits for room on a full
	// disk.
	defaultPatience = 5 * time.Second
	// closePatience is the same for Close: the log has all that is not flushed.
	closePatience = time.Second
	// stuckPatience is how long, or up to twice as long, Open and Close wait for a disk that
	// does not answer.
	stuckPatience = 5 * time.Second
)

// Store is what a Database needs of Pebble. The module of this package does not require
// Pebble itself, only the file systems of Pebble.
type Store interface {
	Flush() error
	Close() error
}

// DatabaseOptions configures Open. All fields but Retry, Mark and Patience are required.
type DatabaseOptions struct {
	Options
	// FS is the file system, without a gate.
	FS vfs.FS
	// Dir is the database's directory. The parent directory exists, or is made.
	Dir string
	// Patience is how long, or up to twice as long, Open waits for room; Close waits for
	// as long or for a second, whichever is less. 0 means defaultPatience.
	Patience time.Duration
	// Closed is wrapped by errors after Close, Locked by those of a directory that is in
	// use, Interrupted by those of a Writer whose host has ended.
	Closed, Locked, Interrupted error
}

// Database is a database of Pebble behind a gate. A call that waits for room inside Pebble
// cannot be ended; so each such call runs in a goroutine of its own, which is left behind
// when its caller must go on. All methods may be called by several goroutines.
type Database[S Store] struct {
	*Gate
	opts     DatabaseOptions
	lock     io.Closer
	unlocked sync.Once
	store    S

	// users counts the users of the store: the Database itself until Close, calls, and
	// views. The last user closes the store; nobody becomes a user after that.
	users  atomic.Int64
	closed atomic.Bool

	// tails are calls of run, which may go on behind their callers.
	tails sync.WaitGroup
	// tailing is held to add to tails, which Close ends.
	tailing sync.Mutex
}

// Open makes and locks the directory, and opens the store with a function, which must
// write through the file system of the gate.
func Open[S Store](o DatabaseOptions, open func(*Gate) (S, error)) (*Database[S], error) {
	if o.Patience == 0 {
		o.Patience = defaultPatience
	}
	d := &Database[S]{Gate: New(o.Options), opts: o}
	var err error
	if d.lock, err = o.takeDir(); err != nil {
		return nil, err
	}
	d.users.Store(1)
	opened := make(chan S, 1)
	err = d.bounded(o.Patience, func() error {
		s, err := open(d.Gate)
		if err == nil {
			opened <- s
		}
		return err
	})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open state in %s: %w", o.Dir, err), d.settle())
	}
	d.store = <-opened
	return d, nil
}

// takeDir makes and locks the directory, unless the disk does not answer.
func (o *DatabaseOptions) takeDir() (io.Closer, error) {
	type taken struct {
		lock io.Closer
		err  error
	}
	done := make(chan taken, 1)
	go func() {
		if err := MakeDir(o.FS, o.Dir, o.Full); err != nil {
			done <- taken{nil, err}
			return
		}
		lock, err := dirlock.Take(o.FS, o.Dir)
		if err != nil {
			err = fmt.Errorf("%w: lock %s: %w; close the other one first", o.Locked, o.Dir, err)
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
	return nil, fmt.Errorf("%w: make state directory: %w", o.Failed, o.noAnswer())
}

func (o *DatabaseOptions) noAnswer() error {
	return fmt.Errorf("the disk of %s does not answer for %v", o.Dir, stuckPatience)
}

// MakeDir makes a directory that survives a crash, unless it is there. Its error wraps full
// if there is no room.
func MakeDir(fs vfs.FS, dir string, full error) error {
	err := dirlock.Make(fs, dir)
	if noRoom(err) {
		err = fmt.Errorf("%w: %w", full, err)
	}
	if err != nil {
		return fmt.Errorf("make state directory %s: %w", dir, err)
	}
	return nil
}

// bounded runs f, and gives up when the gate shuts, or when the disk has been full from
// one tick of patience to the next, or does not answer: then bounded shuts the gate. f may go
// on, and begins nothing on the disk; what is on the disk already ends before settle.
func (d *Database[S]) bounded(patience time.Duration, f func() error) error {
	if err := d.Failure(); err != nil {
		return err
	}
	done := make(chan error, 1)
	go func() { done <- f() }()
	look := time.NewTicker(patience)
	defer look.Stop()
	stuck := time.NewTicker(stuckPatience)
	defer stuck.Stop()
	_, before := d.Progress()
	for waits := false; ; {
		select {
		case err := <-done:
			return err
		case <-d.Dead():
			return d.Failure()
		case <-look.C:
			full := d.Stalled()
			if full != nil && waits {
				d.Shut(full)
			}
			waits = full != nil
		case <-stuck.C:
			pending, ended := d.Progress()
			if pending > 0 && ended == before {
				d.Fail(d.opts.noAnswer())
			}
			before = ended
		}
	}
}

// settle unlocks the directory once no operation is on the disk. The gate is shut, or the
// store closed. If the disk does not answer, the directory stays locked until the disk does.
func (d *Database[S]) settle() error {
	unlocked := make(chan error, 1)
	go func() {
		d.Settle()
		unlocked <- d.unlock()
	}()
	select {
	case err := <-unlocked:
		return err
	case <-time.After(closePatience):
		return fmt.Errorf("%s stays locked until the disk answers, or the process ends", d.opts.Dir)
	}
}

// Use returns the store, which stays open until Release.
func (d *Database[S]) Use() (S, error) {
	for !d.closed.Load() {
		n := d.users.Load()
		if n == 0 {
			break
		}
		if d.users.CompareAndSwap(n, n+1) {
			return d.store, nil
		}
	}
	var none S
	return none, fmt.Errorf("%w: %s", d.opts.Closed, d.opts.Dir)
}

// Release ends one Use. The last one, behind Close, closes the store; the log says if that
// fails.
func (d *Database[S]) Release() {
	if err := d.drop(); err != nil {
		d.opts.Logf("%v", err)
	}
}

// drop ends one use.
func (d *Database[S]) drop() error {
	if d.users.Add(-1) > 0 {
		return nil
	}
	err := d.bounded(min(d.opts.Patience, closePatience), func() error { return errors.Join(d.store.Flush(), d.store.Close()) })
	return errors.Join(d.notDurable(err), d.settle())
}

func (d *Database[S]) notDurable(err error) error {
	if err != nil {
		err = fmt.Errorf("close state in %s: not all of it is durable, the log replays the rest: %w", d.opts.Dir, err)
	}
	return err
}

// Close flushes and closes the store. Views should be closed before; the last view that is
// open still closes the store. While the disk is full, or does not answer, or after a
// failure, not everything is flushed, and an error says so; the log has the rest. A second
// call returns Closed.
func (d *Database[S]) Close() error {
	d.tailing.Lock() // run is refused from here on, so tails only falls
	again := d.closed.Swap(true)
	d.tailing.Unlock()
	if again {
		return d.opts.Closed
	}
	if full := d.Stalled(); full != nil {
		d.Shut(full)
	}
	err := d.bounded(min(d.opts.Patience, closePatience), func() error { d.tails.Wait(); return nil })
	if dropped := d.drop(); dropped != nil {
		return dropped
	}
	if err == nil {
		err = d.Failure()
	}
	if err == nil {
		return nil
	}
	return errors.Join(d.notDurable(err), d.settle()) // calls that wait at the gate keep their uses
}

// unlock lets another process have the directory. Nothing of this process may write there
// any more.
func (d *Database[S]) unlock() (err error) {
	d.unlocked.Do(func() { err = d.lock.Close() })
	return err
}

// Flush makes everything durable that was written before. Without room it returns Full at
// once.
func (d *Database[S]) Flush() error {
	return d.Try("flush state", func(s S) error { return s.Flush() })
}

// Try runs f, of which Pebble may wait for room, and returns Full at once if there is no
// room, and as soon as there is none. f may go on behind that, once there is room again.
func (d *Database[S]) Try(what string, f func(S) error) error {
	if full := d.Stalled(); full != nil {
		return fmt.Errorf("%s: %w", what, full)
	}
	done, err := d.run(f)
	if err != nil {
		return err
	}
	select {
	case err := <-done:
		if err != nil {
			return fmt.Errorf("%s: %w", what, err)
		}
		return nil
	case <-d.Dead():
		return d.Failure()
	case <-d.Fills():
		return fmt.Errorf("%s: %w", what, d.opts.Full)
	}
}

// Latest returns what f finds, and keeps it in last. While f would wait for room Latest
// returns what the last call found, and nil if there was none; after Close it returns nil.
func Latest[S Store, T any](d *Database[S], last *atomic.Pointer[T], f func(S) *T) *T {
	err := d.Try("look at the database", func(s S) error {
		last.Store(f(s))
		return nil
	})
	if errors.Is(err, d.opts.Closed) {
		return nil
	}
	return last.Load()
}

// run runs f as a user of its own. The result is sent when f is over; nobody need wait.
func (d *Database[S]) run(f func(S) error) (<-chan error, error) {
	d.tailing.Lock()
	defer d.tailing.Unlock()
	s, err := d.Use()
	if err != nil {
		return nil, err
	}
	done := make(chan error, 1)
	d.tails.Go(func() {
		err := f(s)
		d.Release() // before the caller goes on, and closes perhaps
		done <- err
	})
	return done, nil
}

// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package kv

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/weftraft/weft/internal/gate"
)

// Identity says whose state a directory holds.
type Identity struct {
	Cluster uint64
	Node    uint64
}

func (id Identity) String() string { return fmt.Sprintf("cluster %d, node %d", id.Cluster, id.Node) }

// defaultPatience is how long, or up to twice as long, Open waits for room on a full
// disk; Close waits for closePatience, as the log has what is not flushed.
const (
	defaultPatience = 5 * time.Second
	closePatience   = time.Second
)

// dbDir is where Pebble's files are in the state directory. Format 1 had others.
const dbDir = "db"

// DB holds the states of a node's groups in one Pebble database. All methods may
// be called by several goroutines.
type DB struct {
	dir      string
	opts     Options
	gate     *gate.Gate
	lock     io.Closer
	unlocked sync.Once
	pebble   *pebble.DB
	flushes  atomic.Uint64 // that have ended
	format   atomic.Uint32 // that the directory says
	// raising is held by who raises format.
	raising sync.Mutex

	// refs counts what uses the database: DB itself until Close, calls, views.
	// What finds it at 0 comes too late; what brings it there closes Pebble.
	refs   atomic.Int64
	closed atomic.Bool

	mu     sync.Mutex
	stores map[uint64]*Store
}

// Open opens the states in dir, making an empty database if there is none.
// Errors wrap ErrIdentity, ErrVersion, ErrDamaged or ErrFull where one of them
// applies.
func Open(dir string, opts Options) (*DB, error) {
	opts.setDefaults()
	db := &DB{dir: opts.FS.PathJoin(dir, dbDir), opts: opts, stores: map[uint64]*Store{}, gate: gate.New(gate.Options{Retry: opts.retry, Logf: opts.Logf, Full: ErrFull, Failed: ErrFailed, Mark: damage})}
	if err := makeDir(opts.FS, dir); err != nil {
		return nil, err
	}
	if err := refuseFormat1(opts.FS, dir); err != nil {
		return nil, err
	}
	if err := makeDir(opts.FS, db.dir); err != nil {
		return nil, err
	}
	var err error
	if db.lock, err = opts.FS.Lock(opts.FS.PathJoin(db.dir, "LOCK")); err != nil {
		return nil, fmt.Errorf("lock state directory %s (is another node running on it?): %w", db.dir, err)
	}
	db.refs.Store(1)
	if err := db.bounded(db.opts.patience, db.open); err != nil {
		return nil, errors.Join(err, db.unlock())
	}
	return db, nil
}

// bounded runs f, and gives up when the gate shuts, or when the disk has been
// full for a while: then it shuts the gate. f may go on, and changes nothing.
func (db *DB) bounded(limit time.Duration, f func() error) error {
	if err := db.gate.Failure(); err != nil {
		return err
	}
	done := make(chan error, 1)
	go func() { done <- f() }()
	patience := time.NewTicker(limit)
	defer patience.Stop()
	waits := false // since the tick before
	for {
		select {
		case err := <-done:
			return err
		case <-db.gate.Dead():
			db.gate.Settle()
			return db.gate.Failure()
		case <-patience.C:
			err := db.gate.Stalled()
			if err != nil && waits {
				db.gate.Shut(err)
			}
			waits = err != nil
		}
	}
}

// open opens Pebble.
func (db *DB) open() error {
	p, err := pebble.Open(db.dir, db.pebbleOptions())
	if err != nil {
		return fmt.Errorf("open state in %s: %w", db.dir, damage(err))
	}
	db.pebble = p
	if err := db.identify(); err != nil {
		return fmt.Errorf("open state in %s: %w", db.dir, errors.Join(err, p.Close()))
	}
	return nil
}

// refuseFormat1 looks for the directories of the format before this one.
func refuseFormat1(fs vfs.FS, dir string) error {
	names, err := fs.List(dir)
	if err != nil {
		return fmt.Errorf("list state directory: %w", err)
	}
	for _, name := range names {
		if strings.HasPrefix(name, "gen-") {
			return fmt.Errorf("%w: %s is of format 1, this kvdemo reads %d; read the values out with the kvdemo that wrote them, "+
				"and put them into a cluster of new data directories", ErrVersion, dir, formatVersion)
		}
	}
	return nil
}

// identify compares whose state it is, or writes it down in an empty database.
func (db *DB) identify() error {
	found, err := get(db.pebble, keyIdentity)
	if err != nil {
		return err
	}
	if found != nil {
		if err := db.opts.Identity.check(found); err != nil {
			return err
		}
		db.format.Store(uint32(found[0]))
		return nil
	}
	it, err := db.pebble.NewIter(nil)
	if err != nil {
		return damage(err)
	}
	empty := !it.First()
	if err := errors.Join(damage(it.Error()), it.Close()); err != nil {
		return err
	}
	if !empty {
		return fmt.Errorf("%w: it has no identity record", ErrDamaged)
	}
	if err := db.pebble.Set(keyIdentity, db.opts.Identity.encode(oldestFormat), pebble.NoSync); err != nil {
		return err
	}
	db.format.Store(oldestFormat)
	return db.pebble.Flush()
}

// encode returns format version, cluster and node.
func (id Identity) encode(format byte) []byte {
	b := []byte{format}
	b = binary.BigEndian.AppendUint64(b, id.Cluster)
	return binary.BigEndian.AppendUint64(b, id.Node)
}

// check compares with what encode wrote.
func (id Identity) check(b []byte) error {
	if len(b) > 0 && (b[0] < oldestFormat || b[0] > formatVersion) {
		return fmt.Errorf("%w: it is %d, this kvdemo reads %d to %d; run the kvdemo that wrote it", ErrVersion, b[0], oldestFormat, formatVersion)
	}
	if len(b) != 17 {
		return fmt.Errorf("%w: its identity record is %x", ErrDamaged, b)
	}
	found := Identity{Cluster: binary.BigEndian.Uint64(b[1:]), Node: binary.BigEndian.Uint64(b[9:])}
	if found != id {
		return fmt.Errorf("%w: it is of %v, this is %v; give the directory of this node", ErrIdentity, found, id)
	}
	return nil
}

// Group returns the state of a group, 1 or more, which is empty if it is new.
// It returns the same Store each time.
func (db *DB) Group(id uint64) (*Store, error) {
	if id == 0 {
		return nil, fmt.Errorf("%w group: 0, want 1 or more", ErrInvalid)
	}
	if err := db.acquire(); err != nil {
		return nil, err
	}
	defer db.release()
	db.mu.Lock()
	defer db.mu.Unlock()
	if s := db.stores[id]; s != nil {
		return s, nil
	}
	s := newStore(db, id)
	if err := s.load(); err != nil {
		return nil, fmt.Errorf("open state of group %d in %s: %w", id, db.dir, err)
	}
	db.stores[id] = s
	return s, nil
}

// Flush makes everything durable that was applied before. While the disk is
// full, or when it becomes so, it returns ErrFull at once.
func (db *DB) Flush() error {
	if err := db.gate.Stalled(); err != nil {
		return err
	}
	return db.flush(db.gate.Fills())
}

// flush waits for a flush, or for the gate to shut, as Pebble would wait for ever
// then, or until nobody waits any more.
func (db *DB) flush(ended <-chan struct{}) error {
	if err := db.acquire(); err != nil {
		return err
	}
	flushed := make(chan error, 1)
	go func() {
		err := db.pebble.Flush()
		db.release()
		flushed <- err
	}()
	select {
	case err := <-flushed:
		if err != nil {
			return fmt.Errorf("flush state: %w", err)
		}
		return nil
	case <-db.gate.Dead():
		return db.gate.Failure()
	case <-ended:
		return fmt.Errorf("flush state: %w", ErrFull)
	}
}

// Close flushes and closes. Snapshots and Values should be closed before; the
// last of those that are not closes the database. While the disk is full, or
// after a failure, nothing is flushed, and an error says so; the log has what is
// missing.
func (db *DB) Close() error {
	if db.closed.Swap(true) {
		return ErrClosed
	}
	if err := db.gate.Stalled(); err != nil {
		db.gate.Shut(err)
	}
	err := db.drop()
	if failed := db.gate.Failure(); failed != nil && err == nil {
		// Calls that wait for Pebble for ever still have references.
		db.gate.Settle()
		err = notDurable(failed)
	}
	if err != nil {
		err = errors.Join(err, db.unlock())
	}
	return err
}

func notDurable(err error) error {
	return fmt.Errorf("close state: not all of it is durable, the log replays the rest: %w", err)
}

// unlock lets another process have the directory. Nothing of this one must
// write to it any more.
func (db *DB) unlock() (err error) {
	db.unlocked.Do(func() { err = db.lock.Close() })
	return err
}

// acquire takes a reference.
func (db *DB) acquire() error {
	for !db.closed.Load() {
		n := db.refs.Load()
		if n == 0 {
			break
		}
		if db.refs.CompareAndSwap(n, n+1) {
			return nil
		}
	}
	return ErrClosed
}

// release gives back a reference that was taken with acquire.
func (db *DB) release() {
	if err := db.drop(); err != nil {
		db.opts.Logf("close state: %v", err)
	}
}

// drop gives back a reference. The last one flushes and closes Pebble.
func (db *DB) drop() error {
	if db.refs.Add(-1) > 0 {
		return nil
	}
	err := db.bounded(min(db.opts.patience, closePatience), func() error { return errors.Join(db.pebble.Flush(), db.pebble.Close()) })
	if err != nil {
		err = notDurable(err)
	}
	return errors.Join(err, db.unlock())
}

// Stalled returns nil while the state can be written, and else why it waits: an
// error that wraps ErrFull. Until there is room nothing is applied; reads go on.
func (db *DB) Stalled() error { return db.gate.Stalled() }

// Failed is closed when the state can not be written any more; Err says why.
// The node must stop. A restart loses nothing: the log has what is not durable.
func (db *DB) Failed() <-chan struct{} { return db.gate.Dead() }

// Err returns why Failed is closed, or nil.
func (db *DB) Err() error { return db.gate.Failure() }

// makeDir makes a directory, durably, unless it is there.
func makeDir(fs vfs.FS, dir string) error {
	if err := fs.MkdirAll(dir, 0o755); err != nil {
		if gate.NoRoom(err) {
			err = fmt.Errorf("%w: %w", ErrFull, err)
		}
		return fmt.Errorf("make state directory: %w", err)
	}
	d, err := fs.OpenDir(fs.PathDir(dir))
	if err != nil {
		return fmt.Errorf("sync directory: %w", err)
	}
	if err := errors.Join(d.Sync(), d.Close()); err != nil {
		return fmt.Errorf("sync directory %s: %w", dir, err)
	}
	return nil
}

// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package kv

import (
	"encoding/binary"
	"errors"
	"fmt"
	"log"
	"sync"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// Identity says whose state a directory holds.
type Identity struct {
	Cluster uint64
	Node    uint64
}

func (id Identity) String() string { return fmt.Sprintf("cluster %d, node %d", id.Cluster, id.Node) }

// Defaults of [Options], in bytes.
const (
	DefaultMemTableBytes = 16 << 20
	DefaultCacheBytes    = 32 << 20
)

// Options configures [Open].
type Options struct {
	// Identity is written when the directory is made and compared afterwards.
	Identity Identity
	// FS is the file system; nil means the operating system's.
	FS vfs.FS
	// MemTableBytes is how much is applied before Pebble flushes by itself: what
	// the log replays at most after a crash, roughly. 0 means DefaultMemTableBytes.
	MemTableBytes uint64
	// CacheBytes bounds Pebble's cache of blocks; 0 means DefaultCacheBytes.
	CacheBytes int64
	// Logf is told of what an operator may want to know; nil means silence.
	Logf func(format string, args ...any)
}

// Store is the state machine. Apply, Restore and Close are for one goroutine;
// everything else may be called from any.
type Store struct {
	dir  string
	opts Options
	lock *pebble.Lock

	// Invariant: gen is nil only after Close. What has taken a reference under
	// mu may use its generation without it.
	mu  sync.RWMutex
	gen *generation
}

// Open opens the state in dir, making an empty one if there is none. Errors
// wrap ErrIdentity, ErrVersion or ErrDamaged where one of them applies.
func Open(dir string, opts Options) (*Store, error) {
	if opts.FS == nil {
		opts.FS = vfs.Default
	}
	if opts.MemTableBytes == 0 {
		opts.MemTableBytes = DefaultMemTableBytes
	}
	if opts.CacheBytes == 0 {
		opts.CacheBytes = DefaultCacheBytes
	}
	if opts.Logf == nil {
		opts.Logf = func(string, ...any) {}
	}
	if err := opts.FS.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("make state directory: %w", err)
	}
	if err := syncDir(opts.FS, opts.FS.PathDir(dir)); err != nil {
		return nil, err
	}
	lock, err := pebble.LockDirectory(dir, opts.FS)
	if err != nil {
		return nil, fmt.Errorf("lock state directory %s (is another node running on it?): %w", dir, err)
	}
	s := &Store{dir: dir, opts: opts, lock: lock}
	if s.gen, err = s.openNewest(); err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	return s, nil
}

// Close flushes and closes. Outgoing snapshots must be closed before.
func (s *Store) Close() error {
	s.mu.Lock()
	gen := s.gen
	s.gen = nil
	s.mu.Unlock()
	if gen == nil {
		return ErrClosed
	}
	err := gen.db.Flush()
	gen.release()
	return errors.Join(err, s.lock.Close())
}

// acquire returns the current generation with a reference that the caller
// releases.
func (s *Store) acquire() (*generation, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.gen == nil {
		return nil, ErrClosed
	}
	s.gen.refs.Add(1)
	return s.gen, nil
}

// Applied returns the log index up to which commands are applied.
func (s *Store) Applied() uint64 {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.gen == nil {
		return 0
	}
	return s.gen.applied.Load()
}

// Durable returns the log index up to which the state survives a crash without
// the log's help.
func (s *Store) Durable() (uint64, error) {
	gen, err := s.acquire()
	if err != nil {
		return 0, err
	}
	defer gen.release()
	return gen.durable()
}

// Host returns what the host stored last with Apply or came with Restore.
func (s *Store) Host() ([]byte, error) {
	gen, err := s.acquire()
	if err != nil {
		return nil, err
	}
	defer gen.release()
	return get(gen.db, keyHost)
}

// Flush makes everything applied before durable.
func (s *Store) Flush() error {
	gen, err := s.acquire()
	if err != nil {
		return err
	}
	defer gen.release()
	if err := gen.db.Flush(); err != nil {
		return fmt.Errorf("flush state: %w", err)
	}
	return nil
}

// DiskBytes returns the size of the state's files.
func (s *Store) DiskBytes() uint64 {
	gen, err := s.acquire()
	if err != nil {
		return 0
	}
	defer gen.release()
	return gen.db.Metrics().DiskSpaceUsage()
}

// pebbleOptions are those of each generation.
func (s *Store) pebbleOptions(flushed func()) *pebble.Options {
	o := &pebble.Options{
		FS:                 s.opts.FS,
		FormatMajorVersion: pebble.FormatNewest,
		DisableWAL:         true,
		MemTableSize:       s.opts.MemTableBytes,
		CacheSize:          s.opts.CacheBytes,
		Logger:             logger(s.opts.Logf),
		EventListener:      &pebble.EventListener{FlushEnd: func(pebble.FlushInfo) { flushed() }},
	}
	// Values of some size stay where they were flushed, in blob files, instead
	// of being written again by each compaction of the keys above them.
	o.Experimental.ValueSeparationPolicy = func() pebble.ValueSeparationPolicy {
		return pebble.ValueSeparationPolicy{
			Enabled:               true,
			MinimumSize:           2 << 10,
			MaxBlobReferenceDepth: 10,
			TargetGarbageRatio:    0.3,
		}
	}
	return o
}

// get returns a copy of the value of one of the store's own keys, nil if there
// is none.
func get(r pebble.Reader, key []byte) ([]byte, error) {
	v, closer, err := r.Get(key)
	if errors.Is(err, pebble.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, damage(err)
	}
	return append([]byte{}, v...), closer.Close()
}

// damage marks Pebble's reports of corruption as ErrDamaged.
func damage(err error) error {
	if pebble.IsCorruptionError(err) {
		return fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	return err
}

func appendIndex(index uint64) []byte { return binary.BigEndian.AppendUint64(nil, index) }

// logger passes Pebble's errors on and leaves its reports of progress out.
type logger func(format string, args ...any)

func (l logger) Infof(string, ...any)              {}
func (l logger) Errorf(format string, args ...any) { l("pebble: "+format, args...) }

// Fatalf must not return: Pebble calls it when going on would lose data. The
// Raft log has everything that is not flushed, so stopping loses nothing.
func (l logger) Fatalf(format string, args ...any) {
	log.Fatalf("kvdemo stops, its state cannot be written: "+format, args...)
}

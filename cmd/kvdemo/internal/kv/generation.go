// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package kv

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// formatVersion is the version of what this package writes in a database.
const formatVersion = 1

// Names in the state directory.
const (
	genPrefix = "gen-"
	tmpName   = "tmp" // a generation that is being made; worthless after a crash
)

// generation is one database with a share in the store's life: the first, or
// one that a snapshot brought.
type generation struct {
	store *Store
	dir   string
	db    *pebble.DB

	applied  atomic.Uint64 // log index
	onDisk   atomic.Uint64 // log index as of the last flush, unless flushed is set
	flushed  atomic.Bool   // a flush ended since onDisk was read
	outlived atomic.Bool   // another generation has taken its place
	refs     atomic.Int64  // the store's own and one each user's; closed at 0
}

// openNewest opens the newest generation, or makes the first, and removes what
// a crash left behind.
func (s *Store) openNewest() (*generation, error) {
	fs := s.opts.FS
	if err := fs.RemoveAll(fs.PathJoin(s.dir, tmpName)); err != nil {
		return nil, fmt.Errorf("remove an unfinished state: %w", err)
	}
	numbers, err := s.generations()
	if err != nil {
		return nil, err
	}
	if len(numbers) == 0 {
		return s.replace(1, func(*pebble.DB) error { return nil })
	}
	newest := numbers[len(numbers)-1]
	for _, n := range numbers[:len(numbers)-1] {
		if err := fs.RemoveAll(s.genDir(n)); err != nil {
			return nil, fmt.Errorf("remove an old state: %w", err)
		}
	}
	return s.openGeneration(s.genDir(newest))
}

// generations returns the numbers of the generations on disk, ascending.
func (s *Store) generations() ([]uint64, error) {
	names, err := s.opts.FS.List(s.dir)
	if err != nil {
		return nil, fmt.Errorf("list state directory: %w", err)
	}
	var numbers []uint64
	for _, name := range names {
		if num, ok := strings.CutPrefix(name, genPrefix); ok {
			if n, err := strconv.ParseUint(num, 10, 64); err == nil {
				numbers = append(numbers, n)
			}
		}
	}
	slices.Sort(numbers)
	return numbers, nil
}

func (s *Store) genDir(n uint64) string {
	return s.opts.FS.PathJoin(s.dir, genPrefix+strconv.FormatUint(n, 10))
}

// replace makes generation n: fill writes into an empty database, which is
// flushed and then renamed into place. The rename is what makes it exist.
func (s *Store) replace(n uint64, fill func(*pebble.DB) error) (_ *generation, err error) {
	fs := s.opts.FS
	tmp := fs.PathJoin(s.dir, tmpName)
	if err := fs.RemoveAll(tmp); err != nil {
		return nil, fmt.Errorf("remove an unfinished state: %w", err)
	}
	if err := s.fill(tmp, fill); err != nil {
		return nil, errors.Join(err, fs.RemoveAll(tmp))
	}
	if err := fs.Rename(tmp, s.genDir(n)); err != nil {
		return nil, fmt.Errorf("put the new state in place: %w", err)
	}
	if err := syncDir(fs, s.dir); err != nil {
		return nil, err
	}
	return s.openGeneration(s.genDir(n))
}

// fill makes a database in dir with this store's identity, lets write fill it,
// and makes it durable.
func (s *Store) fill(dir string, write func(*pebble.DB) error) error {
	db, err := pebble.Open(dir, s.pebbleOptions(func() {}))
	if err != nil {
		return fmt.Errorf("make a new state: %w", err)
	}
	err = db.Set(keyIdentity, s.identityRecord(), pebble.NoSync)
	if err == nil {
		err = write(db)
	}
	if err == nil {
		err = db.Flush()
	}
	return errors.Join(err, db.Close())
}

// syncDir makes what was made, renamed or removed in a directory durable.
func syncDir(fs vfs.FS, dir string) error {
	d, err := fs.OpenDir(dir)
	if err != nil {
		return fmt.Errorf("sync directory: %w", err)
	}
	if err := errors.Join(d.Sync(), d.Close()); err != nil {
		return fmt.Errorf("sync directory %s: %w", dir, err)
	}
	return nil
}

func (s *Store) openGeneration(dir string) (*generation, error) {
	g := &generation{store: s, dir: dir}
	g.refs.Store(1)
	opts := s.pebbleOptions(func() { g.flushed.Store(true) })
	opts.ErrorIfNotExists = true
	db, err := pebble.Open(dir, opts)
	if err != nil {
		return nil, fmt.Errorf("open state in %s: %w", dir, damage(err))
	}
	g.db = db
	if err := g.load(); err != nil {
		return nil, fmt.Errorf("open state in %s: %w", dir, errors.Join(err, db.Close()))
	}
	return g, nil
}

// load checks whose state it is and finds out how far it goes.
func (g *generation) load() error {
	id, err := get(g.db, keyIdentity)
	if err != nil {
		return err
	}
	if err := g.store.checkIdentity(id); err != nil {
		return err
	}
	applied, err := get(g.db, keyApplied)
	if err != nil {
		return err
	}
	index, err := parseIndex(applied)
	if err != nil {
		return err
	}
	g.applied.Store(index)
	g.onDisk.Store(index)
	return nil
}

// durable returns the applied index as of the last flush.
func (g *generation) durable() (uint64, error) {
	if !g.flushed.Swap(false) {
		return g.onDisk.Load(), nil
	}
	it, err := g.db.NewIter(&pebble.IterOptions{
		LowerBound:                keyApplied,
		UpperBound:                append(slices.Clone(keyApplied), 0),
		OnlyReadGuaranteedDurable: true,
	})
	if err != nil {
		return 0, damage(err)
	}
	var record []byte
	if it.First() {
		record = slices.Clone(it.Value())
	}
	if err := errors.Join(it.Error(), it.Close()); err != nil {
		g.flushed.Store(true)
		return 0, damage(err)
	}
	index, err := parseIndex(record)
	if err != nil {
		return 0, err
	}
	// Two callers may have read different flushes: keep the later one.
	for old := g.onDisk.Load(); old < index && !g.onDisk.CompareAndSwap(old, index); old = g.onDisk.Load() {
	}
	return g.onDisk.Load(), nil
}

// release gives back a reference. The last one closes the database, and removes
// it if another generation has taken its place.
func (g *generation) release() {
	if g.refs.Add(-1) > 0 {
		return
	}
	err := g.db.Close()
	if g.outlived.Load() {
		err = errors.Join(err, g.store.opts.FS.RemoveAll(g.dir))
	}
	if err != nil {
		g.store.opts.Logf("close state in %s: %v", g.dir, err)
	}
}

// identityRecord is the format version, cluster and node.
func (s *Store) identityRecord() []byte {
	b := []byte{formatVersion}
	b = binary.BigEndian.AppendUint64(b, s.opts.Identity.Cluster)
	return binary.BigEndian.AppendUint64(b, s.opts.Identity.Node)
}

func (s *Store) checkIdentity(b []byte) error {
	if len(b) > 0 && b[0] > formatVersion {
		return fmt.Errorf("%w: it is %d, this kvdemo reads up to %d; run the newer kvdemo that wrote it", ErrVersion, b[0], formatVersion)
	}
	if len(b) != 17 || b[0] != formatVersion {
		return fmt.Errorf("%w: its identity record is %x", ErrDamaged, b)
	}
	found := Identity{Cluster: binary.BigEndian.Uint64(b[1:]), Node: binary.BigEndian.Uint64(b[9:])}
	if found != s.opts.Identity {
		return fmt.Errorf("%w: it is of %v, this is %v; give the directory of this node", ErrIdentity, found, s.opts.Identity)
	}
	return nil
}

// parseIndex reads a record of keyApplied, of which an empty state has none.
func parseIndex(b []byte) (uint64, error) {
	switch len(b) {
	case 0:
		return 0, nil
	case 8:
		return binary.BigEndian.Uint64(b), nil
	}
	return 0, fmt.Errorf("%w: its applied index is %x", ErrDamaged, b)
}

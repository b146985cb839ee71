// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package kv

import (
	"encoding/binary"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/weftraft/weft/internal/gate"
	"github.com/weftraft/weft/rawnode/state"
	pebblestate "github.com/weftraft/weft/rawnode/state/pebble"
)

// Identity says whose state a directory holds.
type Identity struct {
	Cluster uint64
	Node    uint64
}

func (id Identity) String() string { return fmt.Sprintf("cluster %d, node %d", id.Cluster, id.Node) }

// dbDir is where Pebble's files are in the state directory. Format 1 had others.
const dbDir = "db"

// DB holds the states of a node's groups in one Pebble database. All methods may
// be called by several goroutines.
type DB struct {
	*pebblestate.Base
	id     Identity
	dir    string
	fs     vfs.FS
	format atomic.Uint32 // that the directory says
	// raising is held by who raises format.
	raising sync.Mutex

	mu     sync.Mutex
	stores map[uint64]*Store
}

// Open opens the states in dir, making an empty database if there is none.
// Errors wrap state.ErrIdentity, state.ErrVersion, ErrDamaged, state.ErrLocked or pebblestate.ErrFull where one of
// them applies.
func Open(dir string, id Identity, opts Options) (*DB, error) {
	if opts.FS == nil {
		opts.FS = vfs.Default
	}
	db := &DB{id: id, dir: opts.FS.PathJoin(dir, dbDir), fs: opts.FS, stores: map[uint64]*Store{}}
	if err := gate.MakeDir(opts.FS, dir, pebblestate.ErrFull); err != nil {
		return nil, err
	}
	if err := refuseFormat1(opts.FS, dir); err != nil {
		return nil, err
	}
	var err error
	if db.Base, err = pebblestate.OpenBase(db.baseOptions(opts), db.identify); err != nil {
		return nil, err
	}
	return db, nil
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
				"and put them into a cluster of new data directories", state.ErrVersion, dir, formatVersion)
		}
	}
	return nil
}

// identify compares whose state it is, or writes it down in an empty database.
func (db *DB) identify(p *pebble.DB) error {
	found, err := present{p}.get(keyIdentity)
	if err != nil {
		return err
	}
	if found != nil {
		if err := db.id.check(found); err != nil {
			return err
		}
		db.format.Store(uint32(found[0]))
		return nil
	}
	db.format.Store(oldestFormat)
	return pebblestate.Found(p, keyIdentity, db.id.encode(oldestFormat))
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
		return fmt.Errorf("%w: it is %d, this kvdemo reads %d to %d; run the kvdemo that wrote it", state.ErrVersion, b[0], oldestFormat, formatVersion)
	}
	if len(b) != 17 {
		return fmt.Errorf("%w: its identity record is %x", ErrDamaged, b)
	}
	found := Identity{Cluster: binary.BigEndian.Uint64(b[1:]), Node: binary.BigEndian.Uint64(b[9:])}
	if found != id {
		return fmt.Errorf("%w: it is of %v, this is %v; give the directory of this node", state.ErrIdentity, found, id)
	}
	return nil
}

// Group returns the state of a group, 1 or more, which is empty if it is new.
// It returns the same Store each time.
func (db *DB) Group(id uint64) (*Store, error) {
	if id == 0 {
		return nil, fmt.Errorf("%w group: 0, want 1 or more", ErrInvalid)
	}
	p, err := db.Use()
	if err != nil {
		return nil, err
	}
	defer db.Release()
	db.mu.Lock()
	defer db.mu.Unlock()
	if s := db.stores[id]; s != nil {
		return s, nil
	}
	s := newStore(db, id)
	if err := s.load(p); err != nil {
		return nil, fmt.Errorf("open state of group %d in %s: %w", id, db.dir, err)
	}
	s.mark = db.NewMark(s.metaKey, s.meta.applied, func(record []byte) (uint64, error) {
		m, _, err := parseMeta(record)
		return m.applied, err
	})
	db.stores[id] = s
	return s, nil
}

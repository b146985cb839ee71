// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package kv

import (
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2"
)

// A group's level says which commands its replicas know. Level 0 is what all versions
// know: up to OpSystem. Level 1 adds transactions and deadlines. A replica refuses a
// command above the group's level, which is what a replica of an older version does as
// well, so that both stay the same.
//
// The level is a system key. Whoever sets it has made sure that each member knows the
// level (package node). Should a replica of an older version apply the key all the
// same, the directory remembers: only a kvdemo that knows the level writes format 3
// into it, in the batch that sets the key. A kvdemo of an older version refuses format
// 3, and this one refuses a level in a directory of format 2.
const (
	LevelKey = "level"
	// Level1 is the value of LevelKey.
	Level1 = "1"
)

// FreezeKey is a system key. While it has a value, a group of level 1 refuses all
// commands that change what clients read, with ErrFrozen: so all groups of a node can be
// looked at as of one moment. The value says who froze the group, and until when.
const FreezeKey = "freeze"

// ErrFrozen says that a command was refused, and changed nothing, because the group is
// frozen for a moment: send it again.
var ErrFrozen = errors.New("the group is frozen for a backup")

// changes reports whether a command can change what clients read.
func (o Op) changes() bool {
	return o == OpPut || o == OpDelete || o == OpFinish || o == OpTxn || o == OpExpire
}

// frozen reports whether the group is frozen.
func (t *tables) frozen() bool { return t.level() > 0 && len(t.system[FreezeKey]) > 0 }

// ErrLevel says that a command is above the group's level.
var ErrLevel = fmt.Errorf("%w: the group's members have not all said that they know transactions and deadlines", ErrInvalid)

// level returns the level of a state.
func (t *tables) level() int {
	if len(t.system[LevelKey]) > 0 {
		return 1
	}
	return 0
}

// Level returns the group's level, as of the last batch.
func (s *Store) Level() int { return int(s.gauges.level.Load()) }

// Deadlines returns how many keys have a deadline, as of the last batch.
func (s *Store) Deadlines() int64 { return s.gauges.deadlines.Load() }

// formatOf is the format version of a directory with states of these levels.
func formatOf(level int) byte {
	if level > 0 {
		return formatVersion
	}
	return oldestFormat
}

// Upgrade makes the directory one that a kvdemo of an older version refuses, durably. A
// node does that before it says that it knows level 1.
func (db *DB) Upgrade() error {
	if db.format.Load() == formatVersion {
		return nil
	}
	if err := db.acquire(); err != nil {
		return err
	}
	defer db.release()
	if err := db.pebble.Set(keyIdentity, db.opts.Identity.encode(formatVersion), pebble.NoSync); err != nil {
		return err
	}
	if err := db.Flush(); err != nil {
		return err
	}
	db.format.Store(formatVersion)
	return nil
}

// raise adds to a batch what Upgrade writes, if the directory needs it.
func (db *DB) raise(b *pebble.Batch, t *tables) error {
	if t.level() == 0 || db.format.Load() == formatVersion {
		return nil
	}
	return b.Set(keyIdentity, db.opts.Identity.encode(formatVersion), nil)
}

// raised notes that a batch with what raise added was committed.
func (db *DB) raised(t *tables) {
	if t.level() > 0 {
		db.format.Store(formatVersion)
	}
}

// checkLevel compares a state's level with the directory's format.
func (db *DB) checkLevel(t *tables) error {
	if uint32(formatOf(t.level())) <= db.format.Load() {
		return nil
	}
	return fmt.Errorf("%w: an older kvdemo, which does not know transactions, has applied commands behind the group's raise to level %d, and its state may differ from the others: "+
		"remove this node from the cluster, and add another with a directory of its own", ErrVersion, t.level())
}

// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package kv

import (
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2"

	"github.com/weftraft/weft/rawnode/state"
)

// A group's level says which commands its replicas know. Level 0 is what all versions
// know: up to OpSystem. Level 1 adds transactions and deadlines, level 2 hashes, sorted
// sets, and conditions of deadlines, and level 3 revisions of keys. A replica refuses a
// command above the group's level, which is what a replica of an older version does as
// well, so that both stay the same.
//
// The level is a system key. Whoever sets it has made sure that each member knows the
// level (package node). Should a replica of an older version apply the key all the
// same, the directory remembers: only a kvdemo that knows the level writes format 3 for
// level 1, 4 for level 2, and 5 for level 3, into it, just before the batch that sets the
// key. A kvdemo of an older version refuses that format, and this one refuses a level in a
// directory of a lower one.
const (
	// LevelKey is the system key: its value is the level as a decimal number.
	LevelKey = "level"
	// NewestLevel is the last level that this version knows.
	NewestLevel = 3
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

// errLevel says that a command is above the group's level.
var errLevel = fmt.Errorf("%w: the group's members have not all said that they know this kind of command", ErrInvalid)

// level returns the level of a state.
func (t *tables) level() int { return levelOf(t.system[LevelKey]) }

// levelOf reads the value of LevelKey. A value that is no level counts as level 1, which
// is what the first version that knew levels made of it.
func levelOf(value []byte) int {
	switch {
	case len(value) == 0:
		return 0
	case len(value) == 1 && value[0] >= '2' && value[0] <= '0'+NewestLevel:
		return int(value[0] - '0')
	}
	return 1
}

// Level returns the group's level, as of the last batch.
func (s *Store) Level() int { return int(s.gauges.level.Load()) }

// Deadlines returns how many keys have a deadline, as of the last batch.
func (s *Store) Deadlines() int64 { return s.gauges.deadlines.Load() }

// formatOf is the format version of a directory with states of these levels.
func formatOf(level int) byte { return oldestFormat + byte(level) }

// Upgrade makes the directory one that a kvdemo which does not know the level refuses,
// durably. A node does that before it says that it knows the level.
func (db *DB) Upgrade(level int) error {
	return db.Try("upgrade the directory", func(p *pebble.DB) error {
		if err := db.raise(p, level); err != nil {
			return err
		}
		return p.Flush()
	})
}

// raise writes the format of the level, if the directory has a lower one. Pebble keeps the
// order of writes, so a state of that level is in no directory of a lower format.
func (db *DB) raise(p *pebble.DB, level int) error {
	format := formatOf(level)
	if db.format.Load() >= uint32(format) {
		return nil
	}
	db.raising.Lock() // groups raise it at the same time
	defer db.raising.Unlock()
	if db.format.Load() >= uint32(format) {
		return nil
	}
	if err := p.Set(keyIdentity, db.id.encode(format), pebble.NoSync); err != nil {
		return err
	}
	db.format.Store(uint32(format))
	return nil
}

// checkLevel compares a state's level with the directory's format.
func (db *DB) checkLevel(t *tables) error {
	if uint32(formatOf(t.level())) <= db.format.Load() {
		return nil
	}
	return fmt.Errorf("%w: an older kvdemo, which does not know the level, has applied commands behind the group's raise to level %d, and its state may differ from the others: "+
		"remove this node from the cluster, and add another with a directory of its own", state.ErrVersion, t.level())
}

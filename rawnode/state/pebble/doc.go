// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

// Package pebblestate makes a user's state in a Pebble database a
// [rawnode.StateMachine]: a function applies commands through a transaction, and the
// adapter does the rest.
//
//	db, err := pebblestate.Open(pebblestate.Options{Dir: "data/state"})
//	s, err := db.Group(1, func(tx *pebblestate.Tx, command []byte) (any, error) {
//		return nil, tx.Set(key(command), value(command))
//	}, pebblestate.GroupOptions{})
//	group, err := node.Group(1, s) // of a weft.Node
//	_, err = group.Read(ctx)
//	err = s.View(func(r pebblestate.Reader) error { ... })
//
// # How it works
//
// The Raft log is the write-ahead log: Pebble has none of its own. A batch of commands
// is one Pebble batch, with the log index and the host's bytes. After a crash Pebble is
// as of its last flush, and the log replays the rest.
//
// The keys of the user, of sessions and of the host have prefixes of their own, for each
// group. A snapshot from another node is written under the prefix of a new generation,
// which nobody looks at; one write then makes it the state, and the old generation is
// removed.
//
// A state that wants keys of its own is on a [Base]: Base has everything but the keys.
//
// Without room on the disk, commands wait until there is room; reads go on. See
// [Base.Stalled] and [Base.Failed].
package pebblestate

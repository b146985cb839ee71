// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package kv

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/weftraft/weft/rawnode"
	"github.com/weftraft/weft/rawnode/rawnodetest"
)

// contracted is a store with its database, closed together.
type contracted struct {
	*Store
	db *DB
}

func (c contracted) Close() error { return c.db.Close() }

// The store keeps the contract of a state machine, rule by rule.
func TestStoreKeepsTheContract(t *testing.T) {
	rawnodetest.TestStateMachine(t, rawnodetest.StateMachineFactory{
		Open: func(d rawnodetest.Dir) (rawnode.StateMachine, error) {
			db, err := Open(d.Path, testIdentity, Options{FS: d.FS, MemTableBytes: 64 << 10})
			if err != nil {
				return nil, err
			}
			s, err := db.Group(1)
			return contracted{s, db}, err
		},
		Command: func(r *rand.Rand) []byte {
			key := fmt.Sprint("key", r.IntN(20))
			if r.IntN(4) == 0 {
				return del(key)
			}
			return put(key, strings.Repeat("v", r.IntN(5000)))
		},
		Read: func(sm rawnode.StateMachine) (string, error) {
			snap, err := sm.(contracted).Snapshot()
			if err != nil {
				return "", err
			}
			if _, err := io.CopyN(io.Discard, snap, int64(len(snapshotMagic))+16); err != nil { // with index and position
				return "", errors.Join(err, snap.Close())
			}
			body, err := io.ReadAll(snap)
			return string(body[:max(len(body)-4, 0)]), errors.Join(err, snap.Close()) // without the sum of it all
		},
		Flush: func(sm rawnode.StateMachine) error { return sm.(contracted).db.Flush() },
	})
}

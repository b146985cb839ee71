// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package pebblestate_test

import (
	"bytes"
	"fmt"
	"log"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/weftraft/weft/rawnode"
	pebblestate "github.com/weftraft/weft/rawnode/state/pebble"
)

// A key-value store in a few lines. A host calls Apply; here the example does.
func Example() {
	db, err := pebblestate.Open(pebblestate.Options{
		FS:  vfs.NewMem(), // leave this out for files on disk
		Dir: "state",
	})
	if err != nil {
		log.Fatal(err)
	}
	s, err := db.Group(1, func(tx *pebblestate.Tx, command []byte) (any, error) {
		key, value, _ := bytes.Cut(command, []byte("="))
		if len(key) > pebblestate.MaxKeyBytes {
			return "the key is too long", nil
		}
		old, _, err := tx.Get(key)
		if err != nil {
			return nil, err
		}
		return string(old), tx.Set(key, value)
	}, pebblestate.GroupOptions{})
	if err != nil {
		log.Fatal(err)
	}
	results, err := s.Apply(rawnode.Batch{Index: 1, Commands: [][]byte{[]byte("a=1"), []byte("b=2"), []byte("a=3")}})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%q\n", results)
	err = s.View(func(r pebblestate.Reader) error {
		return r.Scan(nil, nil, func(key, value []byte) bool {
			fmt.Printf("%s is %s\n", key, value)
			return true
		})
	})
	if err != nil {
		log.Fatal(err)
	}
	if err := db.Close(); err != nil {
		log.Fatal(err)
	}
	// Output:
	// ["" "" "1"]
	// a is 3
	// b is 2
}

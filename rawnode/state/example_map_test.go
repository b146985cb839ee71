// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package state_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/weftraft/weft/rawnode"
	"github.com/weftraft/weft/rawnode/state"
)

// shelf is a state with many keys, whose checkpoints no command waits for.
type shelf struct{ books *state.Map[string, int] }

func newShelf() shelf { return shelf{&state.Map[string, int]{}} }

// Fork sets the present state aside.
func (s shelf) Fork() state.Machine { return shelf{s.books.Fork()} }

// Apply adds a book.
func (s shelf) Apply(command []byte) any {
	n, _ := s.books.Get(string(command))
	s.books.Set(string(command), n+1)
	return n + 1
}

// Write writes a pair for each key, in the order of keys; a key as bytes, whatever these are.
func (s shelf) Write(w io.Writer) error {
	to := json.NewEncoder(w)
	for key, n := range s.books.All() {
		if err := to.Encode(pair{[]byte(key), n}); err != nil {
			return err
		}
	}
	return nil
}

// Digest is for comparisons of replicas.
func (s shelf) Digest(w io.Writer) error { return s.Write(w) }

// Read fills an empty shelf.
func (s shelf) Read(r io.Reader) error {
	for from := json.NewDecoder(r); ; {
		var p pair
		if err := from.Decode(&p); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		s.books.Set(string(p.Key), p.N)
	}
}

type pair struct {
	Key []byte
	N   int
}

func ExampleMap() {
	disk := vfs.NewMem()
	open := func() *state.Memory[shelf] {
		m, err := state.OpenMemory(newShelf, state.Options{FS: disk, Dir: "state"})
		if err != nil {
			log.Fatal(err)
		}
		return m
	}
	m := open()
	if _, err := m.Apply(rawnode.Batch{Index: 3, Commands: [][]byte{[]byte("middlemarch"), []byte("emma"), []byte("emma")}}); err != nil {
		log.Fatal(err)
	}
	if err := errors.Join(m.Checkpoint(), m.Close()); err != nil {
		log.Fatal(err)
	}
	m = open()
	m.View(func(s shelf) {
		for book, n := range s.books.All() {
			fmt.Println(book, n)
		}
	})
	// Output:
	// emma 2
	// middlemarch 1
}

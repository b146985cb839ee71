// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package pebblestate

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2"

	"github.com/weftraft/weft/rawnode/state"
)

// Reader reads a user's keys. It is for one goroutine at a time.
type Reader interface {
	// Get returns a copy of a key's value, and whether there is one.
	Get(key []byte) (value []byte, found bool, err error)
	// Scan calls f with the keys from from up to and without to, in ascending order, until
	// f returns false; nil stands for no bound. Key and value are valid until f returns.
	Scan(from, to []byte, f func(key, value []byte) (more bool)) error
}

// Tx is a transaction: what the commands of a batch have written, over the state before
// them. It is for the goroutine, and the time, of the function that applies a command.
type Tx struct {
	view
	batch *pebble.Batch
}

// Set writes a key. Errors of keys and values out of bounds wrap [state.ErrInvalid], write
// nothing, and belong into the result; all others are the database's, and are to be returned.
func (tx *Tx) Set(key, value []byte) error {
	if len(key) > MaxKeyBytes {
		return fmt.Errorf("%w: a key of %d bytes, the bound is %d", state.ErrInvalid, len(key), MaxKeyBytes)
	}
	if len(value) > MaxValueBytes {
		return fmt.Errorf("%w: a value of %d bytes, the bound is %d", state.ErrInvalid, len(value), MaxValueBytes)
	}
	return tx.batch.Set(tx.key(key), value, nil)
}

// Delete removes a key, if it is there.
func (tx *Tx) Delete(key []byte) error { return tx.batch.Delete(tx.key(key), nil) }

// DeleteRange removes the keys from from up to and without to; nil stands for no bound.
func (tx *Tx) DeleteRange(from, to []byte) error {
	lower, upper := tx.bounds(from, to)
	if bytes.Compare(lower, upper) >= 0 {
		return nil
	}
	return tx.batch.DeleteRange(lower, upper, nil)
}

// source is where keys are read from.
type source interface {
	get(key []byte) (value []byte, found bool, err error)
	iter(lower, upper []byte) (*pebble.Iterator, error)
}

// present reads the present state of a database or a batch.
type present struct{ pebble.Reader }

func (p present) get(key []byte) ([]byte, bool, error) { return get(p.Reader, key) }

func (p present) iter(lower, upper []byte) (*pebble.Iterator, error) {
	return p.NewIter(&pebble.IterOptions{LowerBound: lower, UpperBound: upper})
}

// frozen reads a state that stays as it is: an iterator's. A snapshot of Pebble would do
// as well, but on a full disk its Close waits for room, and readers must not.
type frozen struct{ at *pebble.Iterator }

func freeze(db *pebble.DB) (frozen, error) {
	it, err := db.NewIter(nil)
	return frozen{it}, damage(err)
}

func (f frozen) get(key []byte) ([]byte, bool, error) {
	if !f.at.SeekGE(key) || !bytes.Equal(f.at.Key(), key) {
		return nil, false, damage(f.at.Error())
	}
	value, err := f.at.ValueAndErr()
	return bytes.Clone(value), true, damage(err)
}

func (f frozen) iter(lower, upper []byte) (*pebble.Iterator, error) {
	return f.at.Clone(pebble.CloneOptions{IterOptions: &pebble.IterOptions{LowerBound: lower, UpperBound: upper}})
}

// view is the user's keys of one generation.
type view struct {
	from   source
	prefix []byte
}

func (v *view) key(key []byte) []byte {
	return append(v.prefix[:len(v.prefix):len(v.prefix)], key...)
}

func (v *view) bounds(from, to []byte) (lower, upper []byte) {
	if to == nil {
		return v.key(from), after(v.prefix)
	}
	return v.key(from), v.key(to)
}

// Get implements Reader.
func (v *view) Get(key []byte) (value []byte, found bool, err error) {
	return v.from.get(v.key(key))
}

// Scan implements Reader.
func (v *view) Scan(from, to []byte, f func(key, value []byte) bool) error {
	lower, upper := v.bounds(from, to)
	if bytes.Compare(lower, upper) >= 0 {
		return nil
	}
	it, err := v.from.iter(lower, upper)
	if err != nil {
		return damage(err)
	}
	for ok := it.First(); ok; ok = it.Next() {
		value, err := it.ValueAndErr()
		if err != nil {
			return errors.Join(damage(err), it.Close())
		}
		if !f(it.Key()[len(v.prefix):], value) {
			break
		}
	}
	return errors.Join(damage(it.Error()), it.Close())
}

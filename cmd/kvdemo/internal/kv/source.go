// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package kv

import (
	"bytes"
	"errors"

	"github.com/cockroachdb/pebble/v2"
)

// source is where records are read from: a database as it is, or as it was.
type source interface {
	// get returns a copy of a key's value, nil if there is none.
	get(key []byte) ([]byte, error)
	iter(lower, upper []byte) (*pebble.Iterator, error)
}

// present reads a database as it is.
type present struct{ db *pebble.DB }

func (p present) get(key []byte) ([]byte, error) {
	v, closer, err := p.db.Get(key)
	if errors.Is(err, pebble.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, damage(err)
	}
	return append([]byte{}, v...), closer.Close()
}

func (p present) iter(lower, upper []byte) (*pebble.Iterator, error) {
	it, err := p.db.NewIter(&pebble.IterOptions{LowerBound: lower, UpperBound: upper})
	return it, damage(err)
}

// frozen reads a database as it was when an iterator was opened. A snapshot of Pebble would
// do as well, but closing one waits until Pebble has room for its manifest, and readers
// must go on while the disk is full.
type frozen struct{ at *pebble.Iterator }

func freeze(db *pebble.DB) (frozen, error) {
	it, err := db.NewIter(nil)
	return frozen{it}, damage(err)
}

func (f frozen) get(key []byte) ([]byte, error) {
	if !f.at.SeekPrefixGE(key) || !bytes.Equal(f.at.Key(), key) {
		return nil, damage(f.at.Error())
	}
	v, err := f.at.ValueAndErr()
	if err != nil {
		return nil, damage(err)
	}
	return append([]byte{}, v...), nil
}

func (f frozen) iter(lower, upper []byte) (*pebble.Iterator, error) {
	it, err := f.at.Clone(pebble.CloneOptions{IterOptions: &pebble.IterOptions{LowerBound: lower, UpperBound: upper}})
	return it, damage(err)
}

// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package kv

import (
	"errors"

	"github.com/cockroachdb/pebble/v2"
)

// Export is all keys and values of a group as of one revision, for a backup. Close it
// soon: what it refers to stays on disk until then. It is for one goroutine.
type Export struct {
	view     *view
	Revision uint64
}

// Export opens the present state.
func (s *Store) Export() (*Export, error) {
	v, err := s.view()
	if err != nil {
		return nil, err
	}
	m, _, err := v.readMeta(s.metaKey)
	if err != nil {
		return nil, errors.Join(err, v.close())
	}
	return &Export{view: v, Revision: m.position}, nil
}

// Exported is a key of an Export, good until the next.
type Exported struct {
	Key      string
	Size     int64 // of the value
	Deadline int64 // milliseconds since 1970, 0 for none
	Type     Type

	pieces
}

// Each calls f with each key in order, until f returns an error.
func (e *Export) Each(f func(*Exported) error) error {
	lower := e.view.space.key(secData, nil)
	it, err := e.view.now.iter(lower, prefixEnd(lower))
	if err != nil {
		return err
	}
	for ok := it.First(); ok && err == nil; ok = it.Next() {
		err = e.one(it, f)
	}
	return errors.Join(err, damage(it.Error()), it.Close())
}

// one calls f with the key that the iterator stands on.
func (e *Export) one(it *pebble.Iterator, f func(*Exported) error) error {
	key := it.Key()[nameStart:]
	b, err := it.ValueAndErr()
	if err != nil {
		return damage(err)
	}
	r, err := openRecord(key, b)
	if err != nil {
		return err
	}
	x := &Exported{Key: string(key), Size: r.size(), Type: typeOf(b)}
	if x.Deadline, err = storedDeadline(e.view.now, e.view.space, key); err != nil {
		return err
	}
	if x.pieces, err = e.view.pieces(r); err != nil {
		return err
	}
	return errors.Join(f(x), x.pieces.close())
}

// Close gives the state free. Closing twice does no harm.
func (e *Export) Close() error {
	if e.view == nil {
		return nil
	}
	err := e.view.close()
	e.view = nil
	return err
}

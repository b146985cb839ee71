// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package kv

import (
	"errors"
	"io"

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
	b, err := v.now.get(s.metaKey)
	var m meta
	if err == nil {
		m, _, err = parseMeta(b)
	}
	if err != nil {
		return nil, errors.Join(err, v.close())
	}
	v.space.generation = m.generation // as Snapshot has it
	return &Export{view: v, Revision: m.position}, nil
}

// Exported is a key of an Export, good until the next.
type Exported struct {
	Key      string
	Size     int64 // of the value
	Deadline int64 // milliseconds since 1970, 0 for none
	Type     Type

	inline  []byte
	parts   *parts
	members *setMembers
}

// Next returns the next piece of the value, at most PartBytes and good until the next
// call, or io.EOF. The value of a hash is what ActHash returns, that of a sorted set what
// ActSortedRange would. What is not what was put ends with ErrDamaged.
func (x *Exported) Next() ([]byte, error) {
	if x.members != nil {
		return x.members.next()
	}
	if x.parts != nil {
		return x.parts.next()
	}
	if x.inline == nil {
		return nil, io.EOF
	}
	b := x.inline
	x.inline = nil
	return b, nil
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
	x := &Exported{Key: string(key), Size: r.size(), Type: typeOf(b), inline: r.value}
	if x.Deadline, err = storedDeadline(e.view.now, e.view.space, key); err != nil {
		return err
	}
	if r.sorted != nil {
		if x.members, err = e.view.members(r.sorted); err != nil {
			return err
		}
		return errors.Join(f(x), x.members.close())
	}
	if r.large == nil {
		return f(x)
	}
	if x.parts, err = e.view.parts(*r.large); err != nil {
		return err
	}
	return errors.Join(f(x), x.parts.close())
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

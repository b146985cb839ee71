// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package kv

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"

	"github.com/cockroachdb/pebble/v2"
)

// Bounds of a page of List.
const (
	MaxPage     = 10000
	DefaultPage = 1000
	// A page with digests ends once it has read this many bytes of values.
	maxDigestBytes = 32 << 20
)

// Get returns a copy of a key's value, and the log index of the state that it
// was read from.
func (s *Store) Get(key string) (value []byte, applied uint64, err error) {
	if err := CheckKey(key); err != nil {
		return nil, 0, err
	}
	gen, err := s.acquire()
	if err != nil {
		return nil, 0, err
	}
	defer gen.release()
	// The index is taken first: the value may be newer, never older.
	applied = gen.applied.Load()
	record, closer, err := gen.db.Get(dataKey(key))
	switch {
	case errors.Is(err, pebble.ErrNotFound):
		return nil, applied, fmt.Errorf("%w: %q", ErrNotFound, key)
	case err != nil:
		return nil, 0, damage(err)
	}
	value, err = openRecord([]byte(key), record)
	value = append([]byte{}, value...)
	return value, applied, errors.Join(err, closer.Close())
}

// Query selects a page of keys.
type Query struct {
	Prefix  string // only keys that begin with it
	After   string // only keys above it
	Limit   int    // at most so many, 1 to MaxPage; 0 means DefaultPage
	Digests bool   // read the values and return their SHA-256
}

// Item is a key in a page.
type Item struct {
	Key    string
	Size   int
	SHA256 []byte // with Query.Digests
}

// Page is a part of the answer to a query, all of it from one state.
type Page struct {
	Items   []Item
	Next    string // Query.After of the next page; empty if this is the last
	Applied uint64 // log index of the state, or of one just before it
}

// List returns keys in the order of their bytes.
func (s *Store) List(q Query) (Page, error) {
	if q.Limit == 0 {
		q.Limit = DefaultPage
	}
	if q.Limit < 0 || q.Limit > MaxPage {
		return Page{}, fmt.Errorf("%w limit: %d, want 1 to %d (0 means %d)", ErrInvalid, q.Limit, MaxPage, DefaultPage)
	}
	gen, err := s.acquire()
	if err != nil {
		return Page{}, err
	}
	defer gen.release()
	page := Page{Applied: gen.applied.Load()}
	it, err := gen.db.NewIter(q.bounds())
	if err != nil {
		return Page{}, damage(err)
	}
	err = page.fill(it, q)
	return page, errors.Join(err, damage(it.Error()), it.Close())
}

// bounds are the keys of the database that can answer the query.
func (q Query) bounds() *pebble.IterOptions {
	lower := dataKey(q.Prefix)
	upper := prefixEnd(lower)
	if after := append(dataKey(q.After), 0); q.After != "" && slices.Compare(after, lower) > 0 {
		lower = after
	}
	if slices.Compare(lower, upper) > 0 {
		lower = upper
	}
	return &pebble.IterOptions{LowerBound: lower, UpperBound: upper}
}

// prefixEnd returns the least key above all that begin with prefix. A prefix
// begins with dataPrefix, so there is one.
func prefixEnd(prefix []byte) []byte {
	end := slices.Clone(prefix)
	for end[len(end)-1] == 0xff {
		end = end[:len(end)-1]
	}
	end[len(end)-1]++
	return end
}

func (p *Page) fill(it *pebble.Iterator, q Query) error {
	read := 0
	for ok := it.First(); ok; ok = it.Next() {
		if len(p.Items) == q.Limit || read > maxDigestBytes {
			p.Next = p.Items[len(p.Items)-1].Key
			return nil
		}
		item, err := q.item(it)
		if err != nil {
			return err
		}
		if q.Digests {
			read += item.Size
		}
		p.Items = append(p.Items, item)
	}
	return nil
}

// item describes the key that it stands on. Without digests the value is not
// read, only its length.
func (q Query) item(it *pebble.Iterator) (Item, error) {
	key := it.Key()[1:]
	if !q.Digests {
		lazy := it.LazyValue()
		return Item{Key: string(key), Size: lazy.Len() - sumBytes}, nil
	}
	record, err := it.ValueAndErr()
	if err != nil {
		return Item{}, damage(err)
	}
	value, err := openRecord(key, record)
	if err != nil {
		return Item{}, err
	}
	digest := sha256.Sum256(value)
	return Item{Key: string(key), Size: len(value), SHA256: digest[:]}, nil
}

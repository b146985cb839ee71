// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package kv

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/cockroachdb/pebble/v2"

	pebblestate "github.com/weftraft/weft/rawnode/state/pebble"
)

// Bounds of a page of List.
const (
	MaxPage     = 10000
	DefaultPage = 1000
	// A page ends once its items have so many bytes: see Item.Bytes.
	MaxPageBytes = 1 << 20
	// A page with digests ends once it has read this many bytes of values.
	maxDigestBytes = 32 << 20
)

// find calls f with what stands under a name, valid during the call, or returns
// ErrNotFound. The index is one that the record is not older than.
func (s *Store) find(sec section, name []byte, f func(b []byte) error) (applied uint64, err error) {
	p, err := s.db.Use()
	if err != nil {
		return 0, err
	}
	defer s.db.Release()
	for {
		applied = s.applied.Load()
		generation := s.generation.Load()
		b, closer, err := p.Get(space{s.group, generation}.key(sec, name))
		switch {
		case errors.Is(err, pebble.ErrNotFound):
			// What a snapshot replaced is removed after the switch.
			if s.generation.Load() == generation {
				return applied, ErrNotFound
			}
		case err != nil:
			return 0, damage(err)
		default:
			return applied, errors.Join(f(b), closer.Close())
		}
	}
}

// Get returns a copy of a key's value, and the log index of a state that it is
// not older than. A value above MaxInlineBytes it refuses with ErrLarge.
func (s *Store) Get(key string) (value []byte, applied uint64, err error) {
	if err := CheckKey(key); err != nil {
		return nil, 0, err
	}
	applied, err = s.find(secData, []byte(key), func(b []byte) error {
		r, err := openRecord([]byte(key), b)
		switch {
		case err != nil:
		case r.large != nil:
			err = fmt.Errorf("%w: %d bytes, read it in parts", ErrLarge, r.large.size)
		case r.kind != kindInline:
			err = fmt.Errorf("%w: key %q has a %v; read it with a client of Redis", ErrType, key, typeOf(b))
		}
		value = append([]byte{}, r.value...)
		return err
	})
	if errors.Is(err, ErrNotFound) {
		err = fmt.Errorf("%w: %q", ErrNotFound, key)
	}
	if err != nil {
		return nil, applied, err
	}
	return value, applied, nil
}

// System returns the system keys and their values, as of the log index or later.
func (s *Store) System() (map[string][]byte, uint64, error) {
	v, err := s.view()
	if err != nil {
		return nil, 0, err
	}
	system := map[string][]byte{}
	err = scan(v.now, v.space, secSystem, func(name, value []byte) error {
		system[string(name)] = slices.Clone(value)
		return nil
	})
	return system, v.applied, errors.Join(err, v.close())
}

// view is a group's state as it stays while Apply and Restore go on. It is for one
// goroutine at a time.
type view struct {
	db      *pebblestate.Base
	now     frozen
	space   space
	applied uint64 // an index that the state is not older than
}

// view is a user of the database until close.
func (s *Store) view() (*view, error) {
	p, err := s.db.Use()
	if err != nil {
		return nil, err
	}
	for {
		v := &view{db: s.db.Base, applied: s.applied.Load()}
		v.space = space{s.group, s.generation.Load()}
		if v.now, err = freeze(p); err != nil {
			s.db.Release()
			return nil, err
		}
		// What a snapshot replaced is removed after the switch: what is still
		// the state now is whole in the view.
		if s.generation.Load() == v.space.generation {
			return v, nil
		}
		if err := v.now.at.Close(); err != nil {
			s.db.Release()
			return nil, err
		}
	}
}

func (v *view) close() error {
	err := v.now.at.Close()
	v.db.Release()
	return err
}

// Query selects a page of keys.
type Query struct {
	Prefix  string // only keys that begin with it
	After   string // only keys above it
	Limit   int    // at most so many, 1 to MaxPage; 0 means DefaultPage
	Digests bool   // read the values and return their SHA-256
	// Share is how many pages of different groups make one, and share its bounds in bytes; 0 means 1.
	Share int
}

// Item is a key in a page.
type Item struct {
	Key    string
	Size   int64
	SHA256 []byte // with Query.Digests; see Store.List
}

// Bytes is about what the item takes in memory and in a message.
func (i *Item) Bytes() int { return len(i.Key) + 64 }

// Page is a part of the answer to a query, all of it from one state.
type Page struct {
	Items   []Item
	Next    string // Query.After of the next page; empty if this is the last
	Applied uint64 // log index of the state, or of one just before it
}

// List returns keys in the order of their bytes. The digest of a hash is that of the byte
// 2 and the fields and values as ActHash returns them, that of a sorted set the one of the
// byte 3 and the members in the order of ActSortedRange.
func (s *Store) List(q Query) (Page, error) {
	if q.Limit == 0 {
		q.Limit = DefaultPage
	}
	if q.Limit < 0 || q.Limit > MaxPage {
		return Page{}, fmt.Errorf("%w limit: %d, want 1 to %d (0 means %d)", ErrInvalid, q.Limit, MaxPage, DefaultPage)
	}
	v, err := s.view()
	if err != nil {
		return Page{}, err
	}
	page := Page{Applied: v.applied}
	it, err := v.now.iter(q.bounds(v.space))
	if err != nil {
		return Page{}, errors.Join(err, v.close())
	}
	err = page.fill(v, it, q)
	return page, errors.Join(err, damage(it.Error()), it.Close(), v.close())
}

// bounds are the keys of the database that can answer the query.
func (q Query) bounds(sp space) (lower, upper []byte) {
	lower = sp.key(secData, []byte(q.Prefix))
	upper = prefixEnd(lower)
	if after := append(sp.key(secData, []byte(q.After)), 0); q.After != "" && slices.Compare(after, lower) > 0 {
		lower = after
	}
	if slices.Compare(lower, upper) > 0 {
		lower = upper
	}
	return lower, upper
}

// countStep is after how many keys Count asks whether its caller has gone.
const countStep = 4096

// Count returns how many keys there are, by reading all of them. Rows of sorted sets are
// no keys.
func (s *Store) Count(ctx context.Context) (n int64, err error) {
	v, err := s.view()
	if err != nil {
		return 0, err
	}
	it, err := v.now.iter(Query{}.bounds(v.space))
	if err != nil {
		return 0, errors.Join(err, v.close())
	}
	for ok := it.First(); ok && err == nil; ok = it.Next() {
		if n++; n%countStep == 0 {
			err = ctx.Err()
		}
	}
	return n, errors.Join(err, damage(it.Error()), it.Close(), v.close())
}

func (p *Page) fill(v *view, it *pebble.Iterator, q Query) error {
	read, bytes, share := int64(0), 0, max(q.Share, 1)
	for ok := it.First(); ok; ok = it.Next() {
		if len(p.Items) == q.Limit || read > int64(maxDigestBytes/share) || bytes > MaxPageBytes/share {
			p.Next = p.Items[len(p.Items)-1].Key
			return nil
		}
		item, err := q.item(v, it)
		if err != nil {
			return err
		}
		if q.Digests {
			read += item.Size
		}
		bytes += item.Bytes()
		p.Items = append(p.Items, item)
	}
	return nil
}

// item describes the key that it stands on. Without digests only a record that
// may be large is read.
func (q Query) item(v *view, it *pebble.Iterator) (Item, error) {
	key := it.Key()[nameStart:]
	item := Item{Key: string(key)}
	lazy := it.LazyValue()
	if !q.Digests && lazy.Len() != largeBytes && lazy.Len() != headBytes {
		item.Size = int64(lazy.Len() - inlineHead)
		return item, nil
	}
	b, err := it.ValueAndErr()
	if err != nil {
		return Item{}, damage(err)
	}
	r, err := openRecord(key, b)
	if err != nil {
		return Item{}, err
	}
	item.Size = r.size()
	switch {
	case !q.Digests:
		return item, nil
	case r.large != nil:
		item.SHA256, err = v.digest(*r.large)
		return item, err
	case r.sorted != nil:
		item.SHA256, err = v.sortedDigest(r.sorted)
		return item, err
	}
	digest := r.digest()
	item.SHA256 = digest[:]
	return item, nil
}

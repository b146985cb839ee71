// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package kv

import (
	"encoding/binary"
	"fmt"
)

// A hash is one record: its fields and their values in turn, in the order in which the
// fields came, each a uvarint length and the bytes. So a hash is read and written as a
// whole, and has at most MaxInlineBytes. Rejected: a record for each field. It would cost
// each read of all fields an iterator, and records of the size that clients keep in
// hashes, some hundred bytes, gain nothing from it.

// AppendItem appends a length and the bytes: the form of the items of a list, such as the
// fields and values of ActHashSet.
func AppendItem[T string | []byte](b []byte, item T) []byte { return appendBytes(b, item) }

// Items are the items of a list, one after the other. They share its memory.
type Items struct {
	in   input
	item []byte
}

// ItemsOf returns the items of a list that AppendItem made.
func ItemsOf(b []byte) *Items { return &Items{in: input{b: b}} }

// Next moves to the next item, if there is one.
func (i *Items) Next() bool {
	if len(i.in.b) == 0 {
		return false
	}
	i.item = i.in.take("item", i.in.uvarint("length"))
	return i.in.what == ""
}

// Item returns the present one. It is not to be changed.
func (i *Items) Item() []byte { return i.item }

// Err says whether the list was cut off.
func (i *Items) Err() error {
	if i.in.what == "" {
		return nil
	}
	return fmt.Errorf("%w list: it is cut off at %q", ErrInvalid, i.in.what)
}

// split returns the items of a list.
func split(b []byte) (items [][]byte, err error) {
	list := ItemsOf(b)
	for list.Next() {
		items = append(items, list.Item())
	}
	return items, list.Err()
}

// checkList looks at a list of at least one item, and of a multiple of step.
func checkList(b []byte, step int) error {
	list, n := ItemsOf(b), 0
	for list.Next() {
		n++
	}
	if err := list.Err(); err != nil {
		return err
	}
	if n == 0 || n%step != 0 {
		return fmt.Errorf("%w list: %d items, want 1 or more, in steps of %d", ErrInvalid, n, step)
	}
	return nil
}

// listed is the length of an item with its own length in front.
func listed(item []byte) int {
	var b [binary.MaxVarintLen64]byte
	return binary.PutUvarint(b[:], uint64(len(item))) + len(item)
}

// fields are those of a hash, with their values: field, value, field, value.
type fields struct {
	items [][]byte
	at    map[string]int // where a field is; nil while there are few
}

// fewFields are found by looking at one after the other.
const fewFields = 32

func (f *fields) find(field []byte) (at int, ok bool) {
	if f.at == nil && len(f.items) > 2*fewFields {
		f.at = make(map[string]int, len(f.items)/2)
		for i := 0; i < len(f.items); i += 2 {
			f.at[string(f.items[i])] = i
		}
	}
	if f.at != nil {
		at, ok = f.at[string(field)]
		return at, ok
	}
	for i := 0; i < len(f.items); i += 2 {
		if string(f.items[i]) == string(field) {
			return i, true
		}
	}
	return 0, false
}

// set sets a field, and says whether it is a new one.
func (f *fields) set(field, value []byte, onlyNew bool) bool {
	at, ok := f.find(field)
	if ok {
		if !onlyNew {
			f.items[at+1] = value
		}
		return false
	}
	if f.at != nil {
		f.at[string(field)] = len(f.items)
	}
	f.items = append(f.items, field, value)
	return true
}

// remove removes the fields that are there, and says how many.
func (f *fields) remove(gone [][]byte) (n int64) {
	drop := make(map[string]bool, len(gone))
	for _, field := range gone {
		drop[string(field)] = true
	}
	kept := f.items[:0]
	for i := 0; i < len(f.items); i += 2 {
		if drop[string(f.items[i])] {
			n++
			continue
		}
		kept = append(kept, f.items[i], f.items[i+1])
	}
	f.items, f.at = kept, nil
	return n
}

func (f *fields) size() (n int) {
	for _, item := range f.items {
		n += listed(item)
	}
	return n
}

// record returns the record of the hash.
func (f *fields) record(key []byte) []byte {
	b := make([]byte, inlineHead, inlineHead+f.size())
	for _, item := range f.items {
		b = appendBytes(b, item)
	}
	return seal(kindHash, key, b)
}

// hash returns the fields of a key as of the commands before. An absent key has none; of
// another type, the result says so and ok is false.
func (w *writer) hash(key []byte, r *ActionResult) (f *fields, ok bool, err error) {
	stored, err := w.lookup(key)
	if stored == nil || err != nil {
		return &fields{}, err == nil, err
	}
	r.Existed = true
	found, err := openRecord(key, stored)
	if err != nil {
		return nil, false, err
	}
	if found.kind != kindHash {
		r.Code = TxnWrongType
		return nil, false, nil
	}
	items, err := hashItems(key, found.value)
	return &fields{items: items}, err == nil, err
}

// hashItems returns the fields and values of a record.
func hashItems(key, b []byte) ([][]byte, error) {
	items, err := split(b)
	if err != nil || len(items) == 0 || len(items)%2 != 0 {
		return nil, fmt.Errorf("%w: the hash of key %q has %d items: %w", ErrDamaged, key, len(items), err)
	}
	return items, nil
}

// hashSet sets fields.
func (w *writer) hashSet(a *parsedAction, r *ActionResult) error {
	f, ok, err := w.hash(a.key, r)
	if !ok {
		return err
	}
	items, err := split(a.value)
	if err != nil {
		return err
	}
	for i := 0; i+1 < len(items); i += 2 {
		if f.set(items[i], items[i+1], a.flags&IfAbsent != 0) {
			r.Number++
		}
	}
	if a.flags&IfAbsent != 0 && r.Number == 0 {
		return nil
	}
	if f.size() > MaxInlineBytes {
		r.Code, r.Number = TxnFull, 0
		return nil
	}
	return w.store(EventHashSet, a.key, f.record(a.key))
}

// hashRemove removes fields, and the key with the last one.
func (w *writer) hashRemove(a *parsedAction, r *ActionResult) error {
	f, ok, err := w.hash(a.key, r)
	if !ok || !r.Existed {
		return err
	}
	gone, err := split(a.value)
	if err != nil {
		return err
	}
	if r.Number = f.remove(gone); r.Number == 0 {
		return nil
	}
	if len(f.items) == 0 {
		_, err := w.remove(a.key)
		return err
	}
	return w.store(EventHashRemove, a.key, f.record(a.key))
}

// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package state

import (
	"cmp"
	"iter"
	"slices"
)

// Map is a map for the state of a [Machine]: in the order of its keys, and with a Fork that takes the same
// short time at any size, so that commands do not wait for checkpoints and comparisons ([Forker]). The
// zero value is empty. A Map must not be copied but by Fork.
//
// A value with pointers, slices or maps in it is shared with forks, and is replaced by Set, not changed.
// Readers may use a Map at the same time if nobody changes it, and a fork while the original is changed.
type Map[K cmp.Ordered, V any] struct {
	root  *mapNode[K, V] // nil: empty
	count int
	// owner marks the nodes that this map alone has, and changes in place.
	owner *mapOwner
}

// Two maps share nodes after a fork. A map changes a node of its own in place, and any other node by
// changing a copy, so that the nodes from the root to a changed leaf are copied once after each fork.
//
// The nodes are those of a B+ tree. Considered and left out: a Go map with a copy of the changes since a
// fork beside it, because the changes must be merged some time, and commands wait for that.
type mapNode[K cmp.Ordered, V any] struct {
	owner *mapOwner
	// keys are those of values in a leaf. In an inner node keys[i] is at most every key below kids[i], and
	// above every key below kids[i-1]; keys[0] is not looked at.
	keys   []K
	values []V              // of a leaf
	kids   []*mapNode[K, V] // of an inner node; nil in a leaf
}

// mapOwner is not of size 0: two of its pointers must differ.
type mapOwner struct{ _ byte }

// maxKeys is the number of keys of a full node: each change after a fork copies one node a level.
const maxKeys = 32

// Len returns the number of keys.
func (m *Map[K, V]) Len() int { return m.count }

// Get returns the value of a key, and whether there is one.
func (m *Map[K, V]) Get(key K) (value V, ok bool) {
	n := m.root
	if n == nil {
		return value, false
	}
	for n.kids != nil {
		n = n.kids[n.kid(key)]
	}
	i, found := slices.BinarySearch(n.keys, key)
	if !found {
		return value, false
	}
	return n.values[i], true
}

// kid returns the place of the child below which a key is, or would be.
func (n *mapNode[K, V]) kid(key K) int {
	i, found := slices.BinarySearch(n.keys[1:], key)
	if found {
		i++
	}
	return i
}

// Fork returns a copy of the map, in a time that does not depend on its size. A change of either map is
// not seen in the other one. Fork counts as a change of the map.
func (m *Map[K, V]) Fork() *Map[K, V] {
	m.owner = nil // of no node any more
	return &Map[K, V]{root: m.root, count: m.count}
}

// own returns a node that this map may change.
func (m *Map[K, V]) own(n *mapNode[K, V]) *mapNode[K, V] {
	if m.owner == nil {
		m.owner = &mapOwner{}
	}
	if n != nil && n.owner == m.owner {
		return n
	}
	c := &mapNode[K, V]{owner: m.owner}
	if n != nil {
		c.keys = append(make([]K, 0, maxKeys+1), n.keys...)
		if n.kids == nil {
			c.values = append(make([]V, 0, maxKeys+1), n.values...)
		} else {
			c.kids = append(make([]*mapNode[K, V], 0, maxKeys+1), n.kids...)
		}
	}
	return c
}

// Set gives a key a value.
func (m *Map[K, V]) Set(key K, value V) {
	root, right := m.set(m.root, key, value)
	if m.root = root; right != nil {
		m.root = &mapNode[K, V]{owner: m.owner, keys: []K{root.keys[0], right.keys[0]}, kids: []*mapNode[K, V]{root, right}}
	}
}

// set returns the node in place of n, and another one behind it if one would be too full.
func (m *Map[K, V]) set(n *mapNode[K, V], key K, value V) (_, right *mapNode[K, V]) {
	n = m.own(n)
	if n.kids == nil {
		i, found := slices.BinarySearch(n.keys, key)
		if found {
			n.values[i] = value
			return n, nil
		}
		n.keys, n.values = slices.Insert(n.keys, i, key), slices.Insert(n.values, i, value)
		m.count++
	} else {
		i := n.kid(key)
		var more *mapNode[K, V]
		if n.kids[i], more = m.set(n.kids[i], key, value); more == nil {
			return n, nil
		}
		n.keys, n.kids = slices.Insert(n.keys, i+1, more.keys[0]), slices.Insert(n.kids, i+1, more)
	}
	if len(n.keys) <= maxKeys {
		return n, nil
	}
	return n, m.split(n)
}

// split moves the second half of a node to a new one.
func (m *Map[K, V]) split(n *mapNode[K, V]) *mapNode[K, V] {
	half := len(n.keys) / 2
	right := m.own(&mapNode[K, V]{keys: n.keys[half:], values: n.values[min(half, len(n.values)):], kids: n.kids[min(half, len(n.kids)):]})
	n.cut(half)
	return right
}

// cut drops all behind the first keys, and lets their values go.
func (n *mapNode[K, V]) cut(keys int) {
	n.keys = slices.Delete(n.keys, keys, len(n.keys))
	if n.kids == nil {
		n.values = slices.Delete(n.values, keys, len(n.values))
	} else {
		n.kids = slices.Delete(n.kids, keys, len(n.kids))
	}
}

// Delete removes a key, and reports whether it was there.
func (m *Map[K, V]) Delete(key K) bool {
	if _, ok := m.Get(key); !ok {
		return false // and nothing is copied
	}
	m.root = m.remove(m.root, key)
	for len(m.root.kids) == 1 {
		m.root = m.root.kids[0]
	}
	if m.count--; m.count == 0 {
		m.root = nil
	}
	return true
}

// remove returns the node in place of n without a key that is there.
func (m *Map[K, V]) remove(n *mapNode[K, V], key K) *mapNode[K, V] {
	n = m.own(n)
	if n.kids == nil {
		i, _ := slices.BinarySearch(n.keys, key)
		n.keys, n.values = slices.Delete(n.keys, i, i+1), slices.Delete(n.values, i, i+1)
		return n
	}
	i := n.kid(key)
	n.kids[i] = m.remove(n.kids[i], key)
	switch {
	case i > 0 && n.fit(i-1):
		m.join(n, i-1)
	case i+1 < len(n.kids) && n.fit(i):
		m.join(n, i)
	}
	return n
}

// fit reports whether child i and the next one go into one node with room for more, or one of them is empty.
func (n *mapNode[K, V]) fit(i int) bool {
	return len(n.kids[i].keys)+len(n.kids[i+1].keys) <= maxKeys*3/4 || len(n.kids[i].keys) == 0 || len(n.kids[i+1].keys) == 0
}

// join moves all of the child behind child i to it.
func (m *Map[K, V]) join(n *mapNode[K, V], i int) {
	left, right := m.own(n.kids[i]), n.kids[i+1]
	if left.kids != nil {
		left.keys = append(left.keys, n.keys[i+1]) // right.keys[0] may be any
		left.keys = append(left.keys, right.keys[1:]...)
	} else {
		left.keys = append(left.keys, right.keys...)
	}
	left.values, left.kids = append(left.values, right.values...), append(left.kids, right.kids...)
	n.kids[i] = left
	n.keys, n.kids = slices.Delete(n.keys, i+1, i+2), slices.Delete(n.kids, i+1, i+2)
}

// All yields all keys, ascending, and their values. The map must not be changed meanwhile; a fork may be.
func (m *Map[K, V]) All() iter.Seq2[K, V] {
	return func(yield func(K, V) bool) {
		if m.root != nil {
			m.root.each(nil, yield)
		}
	}
}

// From is All without the keys below key.
func (m *Map[K, V]) From(key K) iter.Seq2[K, V] {
	return func(yield func(K, V) bool) {
		if m.root != nil {
			m.root.each(&key, yield)
		}
	}
}

// each yields what is at or behind a key, unless that is nil, and reports whether to go on.
func (n *mapNode[K, V]) each(from *K, yield func(K, V) bool) bool {
	first := 0
	if from != nil && n.kids != nil {
		first = n.kid(*from)
	} else if from != nil {
		first, _ = slices.BinarySearch(n.keys, *from)
	}
	for i, kid := range n.kids[min(first, len(n.kids)):] {
		if i > 0 {
			from = nil
		}
		if !kid.each(from, yield) {
			return false
		}
	}
	for i := first; i < len(n.values); i++ {
		if !yield(n.keys[i], n.values[i]) {
			return false
		}
	}
	return true
}

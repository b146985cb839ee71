// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package kv

import (
	"bytes"
	"cmp"
	"errors"
	"slices"

	"github.com/cockroachdb/pebble/v2"
)

// newScore is a score that this batch of commands gave a member, or that it took away.
type newScore struct {
	score float64
	gone  bool
}

// sorted returns the head of a key's sorted set as of the commands before, or nil for an absent key. For a key of another
// type ok is false, and the result has the code.
func (w *writer) sorted(key []byte, r *ActionResult) (h *head, ok bool, err error) {
	stored, err := w.lookup(key)
	if stored == nil || err != nil {
		return nil, err == nil, err
	}
	r.Existed = true
	found, err := openRecord(key, stored)
	if err != nil {
		return nil, false, err
	}
	if found.sorted == nil {
		r.Code = TxnWrongType
		return nil, false, nil
	}
	return found.sorted, true, nil
}

// score returns the score of a member as of the commands before.
func (w *writer) score(n setNumber, member []byte) (score float64, ok bool, err error) {
	name := n.memberName(member)
	if s, known := w.scores[string(name)]; known {
		return s.score, !s.gone, nil
	}
	return storedScore(present{w.pebble}, w.space, name)
}

// storedScore returns what stands under the name of a member.
func storedScore(r source, sp space, name []byte) (float64, bool, error) {
	b, err := r.get(sp.key(secMember, name))
	if b == nil || err != nil {
		return 0, false, err
	}
	score, err := openMember(name, b)
	return score, true, err
}

// setScore writes the rows of a member. The old score is that of the rows that are there.
func (w *writer) setScore(n setNumber, member []byte, score, old float64, had bool) error {
	var err error
	if had {
		err = w.delete(secScore, n.scoreName(old, member))
	}
	name := n.memberName(member)
	w.remember(name, newScore{score: score})
	at := n.scoreName(score, member)
	return errors.Join(err, w.set(secMember, name, memberRow(name, score)), w.set(secScore, at, scoreRow(at)))
}

func (w *writer) remember(name []byte, s newScore) {
	if w.scores == nil {
		w.scores = map[string]newScore{}
	}
	w.scores[string(name)] = s
}

// sortedAdd adds members, or changes their scores.
func (w *writer) sortedAdd(a *parsedAction, r *ActionResult) error {
	h, ok, err := w.sorted(a.key, r)
	if !ok {
		return err
	}
	if h == nil {
		h = &head{number: newSetNumber(w.tables.position, w.action)}
	}
	if h.bytes+uint64(len(a.value)) > MaxSortedBytes {
		r.Code = TxnFull
		return nil
	}
	added, changed := int64(0), int64(0)
	for list := ScoredOf(a.value); list.Next(); {
		member, score := list.Member(), list.Score()
		old, had, err := w.score(h.number, member)
		if err != nil {
			return err
		}
		if !a.flags.wants(score, old, had) {
			continue
		}
		if had {
			changed++
		} else {
			added++
			h.take(member)
		}
		if err := w.setScore(h.number, member, score, old, had); err != nil {
			return err
		}
	}
	if r.Number = added; a.flags&CountChanged != 0 {
		r.Number += changed
	}
	if added+changed == 0 {
		return nil
	}
	if !r.Existed {
		w.tables.sorted++
	}
	h.changed = w.tables.position
	return w.store(EventSortedAdd, a.key, h.record(a.key))
}

// wants reports whether a member that has the old score, or is not there, is to get the
// new one.
func (f ActionFlags) wants(score, old float64, had bool) bool {
	switch {
	case !had:
		return f&IfPresent == 0
	case f&IfAbsent != 0, score == old:
		return false
	case f&IfGreater != 0:
		return score > old
	case f&IfLess != 0:
		return score < old
	}
	return true
}

// sortedRemove removes members, and the key with the last one.
func (w *writer) sortedRemove(a *parsedAction, r *ActionResult) error {
	h, ok, err := w.sorted(a.key, r)
	if !ok || h == nil {
		return err
	}
	list := ItemsOf(a.value)
	for list.Next() {
		member := list.Item()
		old, had, err := w.score(h.number, member)
		if err != nil {
			return err
		}
		if !had {
			continue
		}
		r.Number++
		name := h.number.memberName(member)
		w.remember(name, newScore{gone: true})
		if err := errors.Join(w.delete(secMember, name), w.delete(secScore, h.number.scoreName(old, member))); err != nil {
			return err
		}
		if h.drop(member); h.members == 0 {
			_, err := w.remove(a.key)
			return err
		}
	}
	if r.Number == 0 {
		return nil
	}
	h.changed = w.tables.position
	return w.store(EventSortedRemove, a.key, h.record(a.key))
}

// dropRows removes the rows of the sorted set that a key has, if it has one. It does so
// before the key's record is replaced.
func (w *writer) dropRows(key []byte) error {
	if w.tables.sorted == 0 {
		return nil
	}
	stored, err := w.lookup(key)
	if stored == nil || err != nil || typeOf(stored) != TypeSortedSet {
		return err
	}
	r, err := openRecord(key, stored)
	if err != nil {
		return err
	}
	w.tables.sorted--
	for _, sec := range []section{secMember, secScore} {
		from := w.space.key(sec, r.sorted.number[:])
		err = errors.Join(err, w.batch.DeleteRange(from, prefixEnd(from), nil))
	}
	return err
}

// inRange collects members of a range, of a state and what a batch changed since.
type inRange struct {
	Range
	room int // bytes that the members may take
	full bool
	list []byte
}

type foundMember struct {
	score  float64
	member []byte
}

// order is that of the rows in secScore.
func (m foundMember) order(other foundMember) int {
	return cmp.Or(cmp.Compare(ordered(m.score), ordered(other.score)), bytes.Compare(m.member, other.member))
}

// take takes the next member in the order of the range, and reports whether more are wanted.
func (q *inRange) take(m foundMember) bool {
	switch {
	case q.Offset > 0:
		q.Offset--
		return true
	case q.Count == 0:
		return false
	case scored(m.member) > q.room:
		q.list, q.full = nil, true
		return false
	}
	q.Count--
	q.room -= scored(m.member)
	q.list = AppendScored(q.list, m.score, m.member)
	return q.Count != 0
}

// collect returns the list of the members in the range. Changed are those of the batch. The members, and whether there is room for
// them, depend on the set alone: other replicas may have its changes in other batches.
func (q *inRange) collect(r source, sp space, n setNumber, changed map[string]newScore) ([]byte, error) {
	var own []foundMember
	for name, s := range changed {
		if member, ok := bytes.CutPrefix([]byte(name), n[:]); ok && !s.gone && q.holds(s.score) {
			own = append(own, foundMember{s.score, member})
		}
	}
	slices.SortFunc(own, foundMember.order)
	lower, upper := q.bounds(n)
	it, err := r.iter(sp.key(secScore, lower), sp.key(secScore, upper))
	if err != nil {
		return nil, err
	}
	more := q.Count != 0
	for ok := it.First(); ok && more; ok = it.Next() {
		score, member, err := scoreAt(it)
		if err != nil {
			return nil, errors.Join(err, it.Close())
		}
		if len(changed) > 0 {
			if _, known := changed[string(n.memberName(member))]; known {
				continue
			}
		}
		m := foundMember{score, member}
		for ; more && len(own) > 0 && own[0].order(m) < 0; own = own[1:] {
			more = q.take(own[0])
		}
		more = more && q.take(m)
	}
	for ; more && len(own) > 0; own = own[1:] {
		more = q.take(own[0])
	}
	return q.list, errors.Join(damage(it.Error()), it.Close())
}

// scoreAt reads the row of secScore that an iterator stands on.
func scoreAt(it *pebble.Iterator) (score float64, member []byte, err error) {
	b, err := it.ValueAndErr()
	if err != nil {
		return 0, nil, damage(err)
	}
	return openScore(it.Key()[nameStart:], b)
}

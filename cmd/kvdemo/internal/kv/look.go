// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package kv

import (
	"errors"
	"fmt"
)

// Look does actions that only read on one state: that which was applied. Their results are those that a transaction has.
func (s *Store) Look(actions []Action) (results []ActionResult, err error) {
	results = make([]ActionResult, len(actions))
	if len(actions) == 1 && actions[0].Kind == ActGet {
		return results, s.lookOne(actions[0].Key, &results[0])
	}
	v, err := s.view()
	if err != nil {
		return nil, err
	}
	reply := 0
	for i := range actions {
		if err = v.look(&actions[i], &results[i], &reply); err != nil {
			break
		}
	}
	return results, errors.Join(err, v.close())
}

// lookOne is Look for one ActGet, which needs no view.
func (s *Store) lookOne(key string, r *ActionResult) error {
	if err := CheckKey(key); err != nil {
		return err
	}
	reply := 0
	_, err := s.find(secData, []byte(key), func(b []byte) error {
		r.Existed = true
		return r.fill([]byte(key), append([]byte{}, b...), &reply)
	})
	if errors.Is(err, ErrNotFound) {
		return nil
	}
	return err
}

func (v *view) look(a *Action, r *ActionResult, reply *int) error {
	if err := CheckKey(a.Key); err != nil {
		return err
	}
	key := []byte(a.Key)
	stored, err := v.now.get(v.space.key(secData, key))
	if err != nil || stored == nil {
		return err
	}
	r.Existed = true
	switch a.Kind {
	case ActGet:
		return r.fill(key, stored, reply)
	case ActHas:
		return nil
	case ActTTL:
		r.Number, err = storedDeadline(v.now, v.space, key)
		return err
	case ActType, ActHash, ActSortedScore, ActSortedCount, ActSortedRange:
		t := typed{reader: v.now, space: v.space}
		return t.read(a.Kind, key, a.Value, stored, r, reply)
	default:
	}
	return fmt.Errorf("%w action %d: it changes the state, want one that reads", ErrInvalid, a.Kind)
}

// fill takes the value of a record into a result, as far as there is room.
func (r *ActionResult) fill(key, stored []byte, reply *int) error {
	found, err := openRecord(key, stored)
	if err != nil {
		return err
	}
	switch {
	case found.kind > kindLarge:
		r.Code = TxnWrongType
	case found.large != nil:
		r.Code = TxnLarge
	default:
		return r.take(found.value, reply)
	}
	return nil
}

// Condition returns a comparison that holds as long as the key is as it is now: absent,
// or with the value that it has.
func (s *Store) Condition(key string) (Compare, error) {
	c := Compare{Kind: CompareAbsent, Key: key}
	if err := CheckKey(key); err != nil {
		return c, err
	}
	_, err := s.find(secData, []byte(key), func(b []byte) error {
		r, err := openRecord([]byte(key), b)
		if err != nil {
			return err
		}
		c.Kind, c.SHA256, c.Bytes = CompareDigest, r.digest(), max(1, len(r.value))
		return nil
	})
	if errors.Is(err, ErrNotFound) {
		err = nil
	}
	return c, err
}

// typed reads what is no string, in the state that the reader has and what a batch changed
// since.
type typed struct {
	reader  source
	space   space
	changed map[string]newScore
}

// read does an action that reads the record of a key, which there is.
func (t typed) read(kind ActionKind, key, value, stored []byte, r *ActionResult, reply *int) error {
	r.Existed = true
	if kind == ActType {
		r.Number = int64(typeOf(stored))
		return nil
	}
	found, err := openRecord(key, stored)
	if err != nil {
		return err
	}
	if (kind == ActHash) != (found.kind == kindHash) || (kind != ActHash) != (found.sorted != nil) {
		r.Code = TxnWrongType
		return nil
	}
	switch kind {
	case ActHash:
		return r.take(found.value, reply)
	case ActSortedCount:
		r.Number = int64(found.sorted.members)
		return nil
	case ActSortedScore:
		return t.score(found.sorted.number, value, r, reply)
	default:
		return t.ranged(found.sorted.number, value, r, reply)
	}
}

// take takes a value into a result if there is room.
func (r *ActionResult) take(value []byte, reply *int) error {
	if len(value) > MaxTxnReplyBytes-*reply {
		r.Code = TxnReplyFull
		return nil
	}
	*reply += len(value)
	r.Value = value
	return nil
}

func (t typed) score(n setNumber, member []byte, r *ActionResult, reply *int) error {
	if len(member) > MaxMemberBytes {
		return badMember(member)
	}
	name := n.memberName(member)
	s, known := t.changed[string(name)]
	score, ok := s.score, known && !s.gone
	if !known {
		var err error
		if score, ok, err = storedScore(t.reader, t.space, name); err != nil {
			return err
		}
	}
	if !ok {
		return nil
	}
	return r.take(AppendScored(nil, score, member), reply)
}

func (t typed) ranged(n setNumber, value []byte, r *ActionResult, reply *int) error {
	limits, err := parseRange(value)
	if err != nil {
		return err
	}
	q := inRange{Range: limits, room: MaxTxnReplyBytes - *reply}
	list, err := q.collect(t.reader, t.space, n, t.changed)
	if err != nil {
		return err
	}
	if q.full {
		r.Code = TxnReplyFull
		return nil
	}
	return r.take(list, reply)
}

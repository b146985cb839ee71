// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package kv

import (
	"crypto/sha256"
	"errors"
	"fmt"
)

// Look does actions that only read, ActGet, ActHas and ActTTL, on one state: that which
// was applied. Their results are those that a transaction has.
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
	stored, err := get(v.snap, v.space.key(secData, key))
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
		r.Number, err = storedDeadline(v.snap, v.space, key)
		return err
	case ActPut, ActDelete, ActAdd, ActDeadline:
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
	case found.large != nil:
		r.Code = TxnLarge
	case len(found.value) > MaxTxnReplyBytes-*reply:
		r.Code = TxnReplyFull
	default:
		*reply += len(found.value)
		r.Value = found.value
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
		c.Kind = CompareDigest
		if r.large != nil {
			c.SHA256 = r.large.sha256
		} else {
			c.SHA256 = sha256.Sum256(r.value)
		}
		return nil
	})
	if errors.Is(err, ErrNotFound) {
		err = nil
	}
	return c, err
}

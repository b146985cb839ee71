// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package kv

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// A key can have a deadline. The state machine has no clock: a key stays until a
// command, OpExpire, names it and a time at or after its deadline. The node that leads
// the group sends that command by its own clock, so all replicas remove the key at the
// same place in the log, and a replica that replays the log does, too.

// MaxExpireKeys is how many keys an OpExpire can name. It is part of the data format.
const MaxExpireKeys = 1024

// Expire says which keys are to be removed if their deadlines are at or before Now.
type Expire struct {
	Now  int64 // milliseconds since 1970
	Keys []string
}

func (e *Expire) appendTo(b []byte) []byte {
	b = binary.AppendUvarint(b, uint64(e.Now))
	b = binary.AppendUvarint(b, uint64(len(e.Keys)))
	for _, key := range e.Keys {
		b = appendBytes(b, key)
	}
	return b
}

// parsedExpire is an Expire that shares the memory of its bytes.
type parsedExpire struct {
	now  int64
	keys [][]byte
}

func (in *input) expire() *parsedExpire {
	e := &parsedExpire{now: in.deadline()}
	n := in.uvarint("keys")
	if n > MaxExpireKeys {
		in.cut("keys")
		return e
	}
	for range n {
		e.keys = append(e.keys, in.take("key", in.uvarint("key")))
	}
	return e
}

// dueName returns the name in secDue of a key's deadline.
func dueName(deadline int64, key []byte) []byte {
	return append(binary.BigEndian.AppendUint64(make([]byte, 0, 8+len(key)), uint64(deadline)), key...)
}

// decodeDeadline reads a record of secDeadline.
func decodeDeadline(key, b []byte) (int64, error) {
	if len(b) == 8 {
		if d := binary.BigEndian.Uint64(b); d > 0 && d <= uint64(MaxDeadline) {
			return int64(d), nil
		}
	}
	return 0, fmt.Errorf("%w: the deadline of key %q is %x", ErrDamaged, key, b[:min(len(b), 16)])
}

// deadline returns a key's deadline as of the commands before this one, 0 for none.
func (w *writer) deadline(key []byte) (int64, error) {
	if d, known := w.deadlines[string(key)]; known {
		return d, nil
	}
	if w.tables.deadlines == 0 {
		return 0, nil
	}
	return storedDeadline(present{w.pebble}, w.space, key)
}

func storedDeadline(r source, sp space, key []byte) (int64, error) {
	b, err := r.get(sp.key(secDeadline, key))
	if b == nil || err != nil {
		return 0, err
	}
	return decodeDeadline(key, b)
}

// setDeadline sets or, with 0, removes a key's deadline.
func (w *writer) setDeadline(key []byte, deadline int64) error {
	old, err := w.deadline(key)
	if err != nil || old == deadline {
		return err
	}
	if w.deadlines == nil {
		w.deadlines = map[string]int64{}
	}
	w.deadlines[string(key)] = deadline
	if old != 0 {
		w.tables.deadlines--
		err = errors.Join(w.delete(secDue, dueName(old, key)), w.delete(secDeadline, key))
	}
	if deadline == 0 {
		return err
	}
	w.tables.deadlines++
	return errors.Join(err,
		w.set(secDue, dueName(deadline, key), nil),
		w.set(secDeadline, key, binary.BigEndian.AppendUint64(nil, uint64(deadline))))
}

// overdue removes the keys that are due, and says how many there were.
func (w *writer) overdue(e *parsedExpire) (any, error) {
	n := int64(0)
	for _, key := range e.keys {
		d, err := w.deadline(key)
		if err != nil {
			return nil, err
		}
		if d == 0 || d > e.now {
			continue
		}
		w.cause = EventExpire
		existed, err := w.remove(key)
		w.cause = EventDelete
		if err != nil {
			return nil, err
		}
		if existed {
			n++
		}
	}
	return Result{Expired: n}, nil
}

// Deadline returns the deadline of a key in milliseconds since 1970, 0 for none, or
// ErrNotFound, from the same state.
func (s *Store) Deadline(key string) (int64, error) {
	if err := CheckKey(key); err != nil {
		return 0, err
	}
	v, err := s.view()
	if err != nil {
		return 0, err
	}
	stored, err := v.now.get(v.space.key(secData, []byte(key)))
	d := int64(0)
	if err == nil && stored == nil {
		err = fmt.Errorf("%w: %q", ErrNotFound, key)
	}
	if err == nil {
		d, err = storedDeadline(v.now, v.space, []byte(key))
	}
	return d, errors.Join(err, v.close())
}

// Due returns keys whose deadlines are at or before now, the earliest first: at most
// MaxExpireKeys, and as many as fit into one command. A state without deadlines is not
// looked at.
func (s *Store) Due(now int64) (keys []string, err error) {
	if s.gauges.deadlines.Load() == 0 {
		return nil, nil
	}
	v, err := s.view()
	if err != nil {
		return nil, err
	}
	it, err := v.now.iter(v.space.key(secDue, nil), v.space.key(secDue, dueName(now+1, nil)))
	if err != nil {
		return nil, errors.Join(err, v.close())
	}
	size := 0
	for ok := it.First(); ok && len(keys) < MaxExpireKeys; ok = it.Next() {
		name := it.Key()[nameStart:]
		if len(name) < 8 {
			err = fmt.Errorf("%w: a deadline has the key %x", ErrDamaged, name)
			break
		}
		if size += len(name); size > MaxInlineBytes {
			break
		}
		keys = append(keys, string(name[8:]))
	}
	return keys, errors.Join(err, damage(it.Error()), it.Close(), v.close())
}

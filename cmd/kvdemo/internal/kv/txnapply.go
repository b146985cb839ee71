// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package kv

import (
	"bytes"
	"errors"
	"math"
	"strconv"
)

// txn applies a transaction.
func (w *writer) txn(p *parsedTxn) (any, error) {
	r := &TxnResult{Succeeded: true}
	for _, c := range p.compares {
		holds, err := w.holds(c)
		if err != nil {
			return nil, err
		}
		if r.Succeeded = holds; !holds {
			break // the values of the others need not be read
		}
	}
	list := p.lists[1]
	if r.Succeeded {
		list = p.lists[0]
	}
	r.Actions = make([]ActionResult, len(list))
	reply := 0
	for i := range list {
		a := &list[i]
		w.action = i
		if err := w.act(a, &r.Actions[i], &reply); err != nil {
			return nil, err
		}
	}
	return Result{Txn: r, Revision: w.tables.position}, nil
}

// holds says whether a comparison holds.
func (w *writer) holds(c parsedCompare) (bool, error) {
	if c.kind.byRevision() {
		r, err := w.revision(c.key)
		return r == c.revision && c.kind == CompareRevision || r > c.revision && c.kind == CompareChanged, err
	}
	if c.kind != CompareDigest {
		exists, err := w.has(c.key)
		return exists == (c.kind == ComparePresent), err
	}
	stored, err := w.lookup(c.key)
	if stored == nil || err != nil {
		return false, err
	}
	r, err := openRecord(c.key, stored)
	if err != nil {
		return false, err
	}
	digest := r.digest()
	return bytes.Equal(digest[:], c.digest), nil
}

// act does one action. The reply is how many bytes of values were returned so far.
func (w *writer) act(a *parsedAction, r *ActionResult, reply *int) (err error) {
	switch a.kind {
	case ActGet:
		err = w.read(a.key, r, reply)
	case ActHas:
		r.Existed, err = w.has(a.key)
	case ActPut:
		err = w.actPut(a, r, reply)
	case ActDelete:
		err = w.actDelete(a, r, reply)
	case ActAdd:
		err = w.add(a, r)
	case ActDeadline:
		err = w.actDeadline(a, r)
	case ActTTL:
		if r.Existed, err = w.has(a.key); r.Existed && err == nil {
			r.Number, err = w.deadline(a.key)
		}
	case ActHashSet:
		err = w.hashSet(a, r)
	case ActHashRemove:
		err = w.hashRemove(a, r)
	case ActSortedAdd:
		err = w.sortedAdd(a, r)
	case ActSortedRemove:
		err = w.sortedRemove(a, r)
	case ActType, ActHash, ActSortedScore, ActSortedCount, ActSortedRange:
		stored, found := w.lookup(a.key)
		if err = found; stored != nil && err == nil {
			t := typed{reader: present{w.pebble}, space: w.space, changed: w.scores}
			err = t.read(a.kind, a.key, a.value, stored, r, reply)
		}
	}
	return err
}

// actDelete removes a key; with ReturnOld, only one whose value can be returned.
func (w *writer) actDelete(a *parsedAction, r *ActionResult, reply *int) (err error) {
	if a.flags&ReturnOld != 0 {
		if err := w.read(a.key, r, reply); err != nil || r.Code != TxnDone {
			return err
		}
	}
	r.Existed, err = w.remove(a.key)
	return err
}

// actDeadline sets a key's deadline if the condition holds.
func (w *writer) actDeadline(a *parsedAction, r *ActionResult) (err error) {
	if r.Existed, err = w.has(a.key); !r.Existed || err != nil {
		return err
	}
	if a.flags&^RemoveNow != 0 {
		now, err := w.deadline(a.key)
		if err != nil {
			return err
		}
		if !a.flags.wantsDeadline(a.deadline, now) {
			r.Code = TxnSkipped
			return nil
		}
	}
	if a.flags&RemoveNow != 0 {
		_, err = w.remove(a.key)
		return err
	}
	return errors.Join(w.event(EventDeadline, a.key, nil), w.setDeadline(a.key, a.deadline))
}

// wantsDeadline reports whether a key gets another deadline. Its present deadline is now; 0 is
// none.
func (f ActionFlags) wantsDeadline(deadline, now int64) bool {
	never := now == 0
	return (f&IfAbsent == 0 || never) && (f&IfPresent == 0 || !never) &&
		(f&IfGreater == 0 || !never && deadline > now) && (f&IfLess == 0 || never || deadline < now)
}

// read puts a key's value into a result, as far as there is room.
func (w *writer) read(key []byte, r *ActionResult, reply *int) error {
	stored, err := w.lookup(key)
	if stored == nil || err != nil {
		return err
	}
	r.Existed = true
	return r.fill(key, stored, reply)
}

func (w *writer) actPut(a *parsedAction, r *ActionResult, reply *int) (err error) {
	if a.flags&ReturnOld != 0 {
		if err := w.read(a.key, r, reply); err != nil || r.Code != TxnDone {
			return err
		}
	} else if a.flags&(IfAbsent|IfPresent) != 0 {
		if r.Existed, err = w.has(a.key); err != nil {
			return err
		}
	}
	if a.flags&IfAbsent != 0 && r.Existed || a.flags&IfPresent != 0 && !r.Existed {
		r.Code = TxnSkipped
		return nil
	}
	if a.flags&KeepDeadline != 0 {
		return w.replace(a.key, a.record)
	}
	if err := w.put(a.key, a.record); err != nil || a.deadline == 0 {
		return err
	}
	return w.setDeadline(a.key, a.deadline)
}

// add adds to a number. The key keeps its deadline.
func (w *writer) add(a *parsedAction, r *ActionResult) error {
	stored, err := w.lookup(a.key)
	if err != nil {
		return err
	}
	number := int64(0)
	if stored != nil {
		found, err := openRecord(a.key, stored)
		if err != nil {
			return err
		}
		r.Existed = true
		if found.kind > kindLarge {
			r.Code = TxnWrongType
			return nil
		}
		var ok bool
		if number, ok = decimal(found.value); !ok {
			r.Code = TxnNoNumber
			return nil
		}
	}
	if a.delta > 0 && number > math.MaxInt64-a.delta || a.delta < 0 && number < math.MinInt64-a.delta {
		r.Code = TxnOverflow
		return nil
	}
	r.Number = number + a.delta
	return w.replace(a.key, appendInline(nil, a.key, strconv.AppendInt(nil, r.Number, 10)))
}

// decimal reads a number in the one form that it is written in.
func decimal(b []byte) (int64, bool) {
	if len(b) == 0 || len(b) > 20 {
		return 0, false
	}
	n, err := strconv.ParseInt(string(b), 10, 64)
	return n, err == nil && strconv.FormatInt(n, 10) == string(b)
}

// lookup returns a key's record as of the commands before this one, nil if there is
// none. It is not to be changed.
func (w *writer) lookup(key []byte) ([]byte, error) {
	if stored, known := w.touched[string(key)]; known {
		return stored, nil
	}
	return present{w.pebble}.get(w.space.key(secData, key))
}

// has says whether a key has a value as of the commands before this one.
func (w *writer) has(key []byte) (bool, error) {
	if stored, known := w.touched[string(key)]; known {
		return stored != nil, nil
	}
	return w.exists(key)
}

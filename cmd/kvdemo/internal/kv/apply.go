// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package kv

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2"

	"github.com/weftraft/weft/rawnode"
	"github.com/weftraft/weft/rawnode/session"
	pebblestate "github.com/weftraft/weft/rawnode/state/pebble"
)

// retainedBatchBytes is how much memory a store keeps for its next batch.
const retainedBatchBytes = 256 << 10

// Apply implements rawnode.StateMachine: it applies commands in order and brings
// the state to the given log index, all at once. Each result is a Result.
//
// While the disk is full Apply waits, until Interrupt. An index at or below Applied is an
// error: the caller lost count. After any other error the batch may be in the database or
// not, and nothing is applied until Load.
func (s *Store) Apply(b rawnode.Batch) ([]any, error) {
	p, err := s.db.Use()
	if err != nil {
		return nil, err
	}
	defer s.db.Release()
	if s.broken != nil {
		return nil, s.broken
	}
	if b.Index <= s.meta.applied {
		return nil, fmt.Errorf("%w index: %d is applied again, the state is at %d", ErrInvalid, b.Index, s.meta.applied)
	}
	if err := s.changes.Ready(); err != nil {
		return nil, err
	}
	w := s.begin(p, b.Commands)
	results := make([]any, len(b.Commands))
	for i, data := range b.Commands {
		var err error
		if results[i], err = w.command(data); err != nil {
			return nil, s.breaks(fmt.Errorf("apply index %d, command %d: %w", b.Index, i, err))
		}
	}
	if b.Host != nil {
		s.host = append(s.host[:0], b.Host...)
	}
	s.meta.applied, s.meta.position = b.Index, s.tables.position
	if err := w.finish(s.meta, s.host); err != nil {
		return nil, s.breaks(fmt.Errorf("apply index %d: %w", b.Index, err))
	}
	batch, level := w.batch, s.tables.level()
	err = s.changes.Do(func(p *pebble.DB) error {
		if err := s.db.raise(p, level); err != nil {
			return err
		}
		return batch.Commit(pebble.NoSync)
	})
	if err != nil {
		return nil, s.breaks(fmt.Errorf("apply index %d: %w", b.Index, err))
	}
	s.applied.Store(b.Index)
	s.revision.Store(s.meta.position)
	s.gauges.set(s.tables)
	s.history.add(w.changes.list, s.meta.position)
	if w.system {
		s.notify()
	}
	return results, nil
}

// breaks notes that memory and database may differ from now on. A commit that was left may
// still use the batch.
func (s *Store) breaks(err error) error {
	s.batch = nil
	s.broken = fmt.Errorf("%w: %w", pebblestate.ErrFailed, err)
	return s.broken
}

// SystemChanged has a token when system keys have changed since the last was
// taken.
func (s *Store) SystemChanged() <-chan struct{} { return s.system }

func (s *Store) notify() {
	select {
	case s.system <- struct{}{}:
	default:
	}
}

// writer turns the commands of one batch into one of Pebble's.
type writer struct {
	space  space
	tables *tables
	pebble *pebble.DB
	batch  *pebble.Batch
	// metaKey is the group's.
	metaKey []byte
	// touched has the records of keys that this batch changed, nil for those that it
	// removed. It is nil if no command of the batch has to know.
	touched map[string][]byte
	// deadlines has the deadlines that this batch changed, 0 for none.
	deadlines map[string]int64
	// revisions has the revisions of keys that this batch changed, 0 for those that it
	// removed. It has all if touched is not nil.
	revisions map[string]uint64
	// scores has the scores that this batch changed, by the names in secMember.
	scores  map[string]newScore
	action  int // of the transaction under way, counted from 0
	changes changes
	cause   EventKind // of a removal
	system  bool      // a system key was changed
}

// begin starts a batch that has room for the commands.
func (s *Store) begin(p *pebble.DB, commands [][]byte) *writer {
	need, looks := 1<<10, s.tables.sorted > 0
	for _, c := range commands {
		need += len(c) + 64
		looks = looks || len(c) > 0 && (Op(c[0]&^inSession) == OpDelete || Op(c[0]&^inSession) > lastOfBase)
	}
	w := &s.writer
	*w = writer{space: s.space(), tables: s.tables, pebble: p, metaKey: s.metaKey, cause: EventDelete}
	switch {
	case need > retainedBatchBytes:
		w.batch = p.NewBatchWithSize(need)
	case s.batch == nil:
		s.batch = p.NewBatchWithSize(retainedBatchBytes, pebble.WithMaxRetainedSizeBytes(2*retainedBatchBytes))
		w.batch = s.batch
	default:
		s.batch.Reset()
		w.batch = s.batch
	}
	w.changes = changes{list: make([]change, 0, len(commands)), fresh: min(need-(1<<10), retainedBatchBytes)}
	if looks {
		w.touched = map[string][]byte{}
	}
	return w
}

// finish adds what goes with the commands.
func (w *writer) finish(m meta, host []byte) error {
	for id, row := range w.tables.sessions.Changes() {
		var name [8]byte
		binary.BigEndian.PutUint64(name[:], uint64(id))
		var err error
		if row == nil {
			err = w.delete(secSession, name[:])
		} else {
			err = w.set(secSession, name[:], row)
		}
		if err != nil {
			return err
		}
	}
	op := w.batch.SetDeferred(len(w.metaKey), metaBytes+len(host))
	copy(op.Key, w.metaKey)
	copy(op.Value[len(m.append(op.Value[:0])):], host)
	return op.Finish()
}

// set writes a record into the batch's own memory, so that a large value is
// copied once.
func (w *writer) set(sec section, name, value []byte) error {
	op := w.batch.SetDeferred(nameStart+len(name), len(value))
	w.space.appendKey(op.Key[:0], sec, name)
	copy(op.Value, value)
	return op.Finish()
}

func (w *writer) delete(sec section, name []byte) error {
	op := w.batch.DeleteDeferred(nameStart + len(name))
	w.space.appendKey(op.Key[:0], sec, name)
	return op.Finish()
}

// command applies one command. Whatever is wrong with it is its result; an error
// is the database's.
func (w *writer) command(data []byte) (any, error) {
	t := w.tables
	t.position++
	if t.position > t.uploads.expiry {
		if err := w.expire(); err != nil {
			return nil, err
		}
	}
	p, err := parse(data)
	if err != nil {
		return Result{Err: err}, nil
	}
	if p.level() > t.level() {
		return Result{Err: fmt.Errorf("%w (%v)", errLevel, p.op)}, nil
	}
	if p.op.changes() && t.frozen() {
		return Result{Err: ErrFrozen, Value: t.system[FreezeKey]}, nil
	}
	if p.session == 0 || !p.op.sessions() {
		return w.run(&p)
	}
	verdict, value := t.sessions.Admit(p.session, p.sequence)
	if verdict == session.Repeated {
		return kept(value), nil
	}
	if err := refusal(verdict); err != nil {
		return Result{Err: fmt.Errorf("%w: session %d, command %d", err, p.session, p.sequence)}, nil
	}
	result, err := w.run(&p)
	if err != nil {
		return nil, err
	}
	r := result.(Result)
	return result, t.sessions.Applied(p.session, p.sequence, p.acknowledged, r.keep())
}

// refusal returns what a verdict other than Repeated means for the client.
func refusal(v session.Verdict) error {
	switch v {
	case session.Fresh:
		return nil
	case session.Overtaken:
		return ErrOvertaken
	case session.Forgotten:
		return ErrForgotten
	}
	return ErrExpired
}

// run applies a command that is admitted. It returns a Result.
func (w *writer) run(p *parsed) (any, error) {
	switch p.op {
	case OpPut:
		return w.done(false), w.put(p.key, p.record)
	case OpDelete:
		existed, err := w.remove(p.key)
		return w.done(existed), err
	case OpOpenSession:
		return Result{Session: w.tables.sessions.Open()}, nil
	case opEndSession:
		return Result{Existed: w.tables.sessions.End(p.session)}, nil
	case OpPart:
		return w.part(p)
	case OpFinish:
		return w.finishUpload(p)
	case opAbort:
		u := w.tables.uploads.byID[p.upload]
		if u == nil {
			return resultOK, nil
		}
		return resultExisted, w.dropUpload(u)
	case OpSystem:
		return w.swap(p)
	case OpTxn:
		return w.txn(p.txn)
	case OpExpire:
		return w.overdue(p.expire)
	}
	return Result{Err: fmt.Errorf("%w command: op %d", ErrInvalid, p.op)}, nil
}

// done is the result of a command that clients may watch behind.
func (w *writer) done(existed bool) any {
	return Result{Existed: existed, Revision: w.tables.position}
}

// put sets a key's record. The key has no deadline then.
func (w *writer) put(key, record []byte) error {
	return errors.Join(w.setDeadline(key, 0), w.replace(key, record))
}

// replace sets a key's record, and leaves the deadline as it is.
func (w *writer) replace(key, record []byte) error {
	return errors.Join(w.disown(key), w.store(EventPut, key, record))
}

// store sets the record of a key that owns nothing but the record, or goes on owning what
// it owns.
func (w *writer) store(kind EventKind, key, record []byte) error {
	if w.touched != nil {
		w.touched[string(key)] = record
	}
	return errors.Join(w.event(kind, key, record), w.set(secData, key, record))
}

// remove removes a key, and says whether there was one.
func (w *writer) remove(key []byte) (bool, error) {
	existed, err := w.has(key)
	if err != nil {
		return false, err
	}
	if !existed {
		w.touched[string(key)] = nil
		return false, nil
	}
	err = w.disown(key)
	w.touched[string(key)] = nil
	return true, errors.Join(err, w.event(w.cause, key, nil), w.setDeadline(key, 0), w.delete(secData, key))
}

// exists looks a key up in the state as it was before the batch. An iterator
// does not fetch the value.
func (w *writer) exists(key []byte) (bool, error) {
	k := w.space.key(secData, key)
	it, err := w.pebble.NewIter(&pebble.IterOptions{LowerBound: k, UpperBound: append(k[:len(k):len(k)], 0)})
	if err != nil {
		return false, damage(err)
	}
	found := it.SeekPrefixGE(k)
	return found, errors.Join(damage(it.Error()), it.Close())
}

// disown removes the parts of a key's value if it is large, and the rows if it is a
// sorted set. It is called while the key has its old record.
func (w *writer) disown(key []byte) error {
	if err := w.dropRows(key); err != nil || len(w.tables.large) == 0 {
		return err
	}
	ref, ok := w.tables.large[string(key)]
	if !ok {
		return nil
	}
	delete(w.tables.large, string(key))
	err := w.delete(secLarge, key)
	for i := range partsOf(ref.size) {
		err = errors.Join(err, w.delete(secPart, partName(ref.number, i)))
	}
	return err
}

// swap sets a system key if it is as wanted.
func (w *writer) swap(p *parsed) (any, error) {
	t, name := w.tables, string(p.key)
	found := t.system[name]
	if string(found) != string(p.want) {
		return Result{Value: found}, nil
	}
	if len(p.value) == 0 {
		if found == nil {
			return Result{Swapped: true}, nil
		}
		t.setSystem(name, nil)
		w.system = true
		return Result{Swapped: true}, w.delete(secSystem, p.key)
	}
	if found == nil && len(t.system) >= maxSystemKeys {
		return Result{Err: fmt.Errorf("%w system key %q: there are %d, want at most that", ErrInvalid, name, maxSystemKeys)}, nil
	}
	if n := t.systemBytes - len(found) + len(name) + len(p.value); n > maxSystemBytes {
		return Result{Err: fmt.Errorf("%w system key %q: %d bytes of system keys and values, want at most %d", ErrInvalid, name, n, maxSystemBytes)}, nil
	}
	value, level := append([]byte(nil), p.value...), t.level()
	t.setSystem(name, value)
	w.system = true
	return Result{Swapped: true, Value: value}, errors.Join(w.set(secSystem, p.key, value), w.raised(level))
}

// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package kv

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2"
)

// Result is the outcome of one command, the same at every replica.
type Result struct {
	// Err is ErrInvalid if the command was refused and changed nothing.
	Err error
	// Existed says whether a deleted key had a value.
	Existed bool
}

// Apply applies commands in order and brings the state to the given log index,
// all at once. host, if not nil, replaces the host's own bytes in the same step.
//
// An index at or below Applied is an error: the caller lost count. Any other
// error means that the state could not be written; it is unchanged, and nothing
// may be applied any more.
func (s *Store) Apply(index uint64, commands [][]byte, host []byte) ([]Result, error) {
	gen, err := s.acquire()
	if err != nil {
		return nil, err
	}
	defer gen.release()
	if applied := gen.applied.Load(); index <= applied {
		return nil, fmt.Errorf("%w index: %d is applied again, the state is at %d", ErrInvalid, index, applied)
	}
	// An indexed batch, so that a delete sees what commands before it put.
	b := gen.db.NewIndexedBatch()
	results := make([]Result, len(commands))
	for i, data := range commands {
		if results[i], err = applyOne(b, data); err != nil {
			return nil, errors.Join(fmt.Errorf("apply index %d, command %d: %w", index, i, err), b.Close())
		}
	}
	if err := errors.Join(setOwn(b, index, host), b.Commit(pebble.NoSync)); err != nil {
		return nil, fmt.Errorf("apply index %d: %w", index, err)
	}
	gen.applied.Store(index)
	return results, nil
}

// setOwn adds the store's own keys to a batch.
func setOwn(w pebble.Writer, index uint64, host []byte) error {
	err := w.Set(keyApplied, appendIndex(index), pebble.NoSync)
	if host != nil {
		err = errors.Join(err, w.Set(keyHost, host, pebble.NoSync))
	}
	return err
}

// applyOne adds one command to the batch. Whatever is wrong with the command is
// its result; an error is the database's.
func applyOne(b *pebble.Batch, data []byte) (Result, error) {
	c, err := Decode(data)
	if err != nil {
		return Result{Err: err}, nil
	}
	key := dataKey(c.Key)
	if c.Op == OpPut {
		return Result{}, putRecord(b, key, c.Value)
	}
	_, closer, err := b.Get(key)
	switch {
	case errors.Is(err, pebble.ErrNotFound):
		return Result{}, nil
	case err != nil:
		return Result{}, damage(err)
	}
	if err := closer.Close(); err != nil {
		return Result{}, err
	}
	return Result{Existed: true}, b.Delete(key, nil)
}

// putRecord writes the checksum and the value into the batch's own memory, so
// that a large value is copied once.
func putRecord(b *pebble.Batch, key, value []byte) error {
	op := b.SetDeferred(len(key), sumBytes+len(value))
	copy(op.Key, key)
	binary.LittleEndian.PutUint32(op.Value, sum(key[1:], value))
	copy(op.Value[sumBytes:], value)
	return op.Finish()
}

// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package loop

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2"

	"github.com/weftraft/weft/cmd/internal/stuck"
)

// Keys of the database: clients' keys follow a byte of their own.
var keyApplied = []byte{0}

const dataPrefix = 1

// state is the applied state: a Pebble database without a log, configured as
// kvdemo's is.
type state struct {
	db      *pebble.DB
	applied uint64
}

func openState(dir string, disk stuck.Disk) (*state, error) {
	opts := &pebble.Options{
		FormatMajorVersion: pebble.FormatNewest, DisableWAL: true,
		MemTableSize: 16 << 20, CacheSize: 32 << 20, Logger: quiet{}, FS: disk.FS(),
	}
	opts.Experimental.ValueSeparationPolicy = func() pebble.ValueSeparationPolicy {
		return pebble.ValueSeparationPolicy{Enabled: true, MinimumSize: 2 << 10, MaxBlobReferenceDepth: 10, TargetGarbageRatio: 0.3}
	}
	db, err := pebble.Open(dir, opts)
	if err != nil {
		return nil, err
	}
	s := &state{db: db}
	v, err := s.get(db, keyApplied)
	if err == nil && len(v) == 8 {
		s.applied = binary.BigEndian.Uint64(v)
	}
	return s, err
}

// quiet leaves out Pebble's reports of progress.
type quiet struct{ pebble.Logger }

func (quiet) Infof(string, ...any)              {}
func (quiet) Errorf(string, ...any)             {}
func (quiet) Fatalf(format string, args ...any) { pebble.DefaultLogger.Fatalf(format, args...) }

func dataKey(key string) []byte { return append([]byte{dataPrefix}, key...) }

// get returns a copy of a value, nil if there is none.
func (s *state) get(r pebble.Reader, key []byte) ([]byte, error) {
	v, closer, err := r.Get(key)
	if errors.Is(err, pebble.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return append([]byte{}, v...), closer.Close()
}

// apply applies commands, encoded by encodePut, and notes the index they bring
// the state to.
func (s *state) apply(index uint64, commands [][]byte) error {
	b := s.db.NewBatch()
	for _, c := range commands {
		key, value, err := decodePut(c)
		if err != nil {
			return err
		}
		if err := b.Set(dataKey(key), value, nil); err != nil {
			return err
		}
	}
	return s.commit(b, index)
}

func (s *state) commit(b *pebble.Batch, index uint64) error {
	if err := b.Set(keyApplied, binary.BigEndian.AppendUint64(nil, index), nil); err != nil {
		return err
	}
	s.applied = index
	return b.Commit(pebble.NoSync)
}

// snapshot returns the whole state in one piece, and its index.
func (s *state) snapshot() (data []byte, index uint64, err error) {
	snap := s.db.NewSnapshot()
	defer func() { err = errors.Join(err, snap.Close()) }()
	applied, err := s.get(snap, keyApplied)
	if err != nil || len(applied) != 8 {
		return nil, 0, fmt.Errorf("no state yet: %w", errors.Join(err, pebble.ErrNotFound))
	}
	it, err := snap.NewIter(&pebble.IterOptions{LowerBound: []byte{dataPrefix}})
	if err != nil {
		return nil, 0, err
	}
	for ok := it.First(); ok; ok = it.Next() {
		one := encodePut(string(it.Key()[1:]), it.Value())
		data = binary.AppendUvarint(data, uint64(len(one)))
		data = append(data, one...)
	}
	return data, binary.BigEndian.Uint64(applied), errors.Join(it.Error(), it.Close())
}

// restore replaces the state by that of a snapshot, durably.
func (s *state) restore(data []byte, index uint64) error {
	b := s.db.NewBatch()
	if err := b.DeleteRange([]byte{dataPrefix}, []byte{dataPrefix + 1}, nil); err != nil {
		return err
	}
	for len(data) > 0 {
		n, w := binary.Uvarint(data)
		if w <= 0 || n > uint64(len(data)-w) {
			return errors.New("the snapshot is cut off")
		}
		key, value, err := decodePut(data[w:][:n])
		if err != nil {
			return err
		}
		if err := b.Set(dataKey(key), value, nil); err != nil {
			return err
		}
		data = data[w:][n:]
	}
	return errors.Join(s.commit(b, index), s.db.Flush())
}

// encodePut encodes a command: the key's length, the key, the value.
func encodePut(key string, value []byte) []byte {
	b := make([]byte, 0, binary.MaxVarintLen32+len(key)+len(value))
	b = binary.AppendUvarint(b, uint64(len(key)))
	b = append(b, key...)
	return append(b, value...)
}

func decodePut(b []byte) (key string, value []byte, err error) {
	n, w := binary.Uvarint(b)
	if w <= 0 || n > uint64(len(b)-w) {
		return "", nil, fmt.Errorf("a command of %d bytes whose key is cut off", len(b))
	}
	return string(b[w:][:n]), b[w:][n:], nil
}

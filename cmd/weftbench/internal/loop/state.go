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

// State is the applied state, of this loop and of other libraries that are compared: a Pebble database without a log, configured as
// kvdemo's is.
type State struct {
	db      *pebble.DB
	applied uint64
}

// OpenState opens the state in a directory, which is made if it is not there; an empty disk is the directory's own.
func OpenState(dir string, disk stuck.Disk) (*State, error) {
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
	s := &State{db: db}
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
func (s *State) get(r pebble.Reader, key []byte) ([]byte, error) {
	v, closer, err := r.Get(key)
	if errors.Is(err, pebble.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return append([]byte{}, v...), closer.Close()
}

// Apply applies commands, encoded by EncodePut, and notes the index they bring
// the state to.
func (s *State) Apply(index uint64, commands [][]byte) error {
	b := s.db.NewBatch()
	for _, c := range commands {
		key, value, err := DecodePut(c)
		if err != nil {
			return err
		}
		if err := b.Set(dataKey(key), value, nil); err != nil {
			return err
		}
	}
	return s.commit(b, index)
}

func (s *State) commit(b *pebble.Batch, index uint64) error {
	if err := b.Set(keyApplied, binary.BigEndian.AppendUint64(nil, index), nil); err != nil {
		return err
	}
	s.applied = index
	return b.Commit(pebble.NoSync)
}

// Applied returns the index that the commands have brought the state to.
func (s *State) Applied() uint64 { return s.applied }

// Flush makes what is applied durable.
func (s *State) Flush() error { return s.db.Flush() }

// Close flushes and closes the database.
func (s *State) Close() error { return errors.Join(s.db.Flush(), s.db.Close()) }

// Frozen is the state as of one moment, while commands go on. Read closes it.
type Frozen struct {
	of *State
	at *pebble.Snapshot
}

// Freeze returns the state as of now.
func (s *State) Freeze() *Frozen { return &Frozen{s, s.db.NewSnapshot()} }

// Close forgets the state.
func (f *Frozen) Close() error { return f.at.Close() }

// Read returns the whole state in one piece, and its index.
func (f *Frozen) Read() (data []byte, index uint64, err error) {
	snap := f.at
	defer func() { err = errors.Join(err, snap.Close()) }()
	applied, err := f.of.get(snap, keyApplied)
	if err != nil || len(applied) != 8 {
		return nil, 0, fmt.Errorf("no state yet: %w", errors.Join(err, pebble.ErrNotFound))
	}
	it, err := snap.NewIter(&pebble.IterOptions{LowerBound: []byte{dataPrefix}})
	if err != nil {
		return nil, 0, err
	}
	for ok := it.First(); ok; ok = it.Next() {
		one := EncodePut(string(it.Key()[1:]), it.Value())
		data = binary.AppendUvarint(data, uint64(len(one)))
		data = append(data, one...)
	}
	return data, binary.BigEndian.Uint64(applied), errors.Join(it.Error(), it.Close())
}

// Restore replaces the state by that of a snapshot, durably.
func (s *State) Restore(data []byte, index uint64) error {
	b := s.db.NewBatch()
	if err := b.DeleteRange([]byte{dataPrefix}, []byte{dataPrefix + 1}, nil); err != nil {
		return err
	}
	for len(data) > 0 {
		n, w := binary.Uvarint(data)
		if w <= 0 || n > uint64(len(data)-w) {
			return errors.New("the snapshot is cut off")
		}
		key, value, err := DecodePut(data[w:][:n])
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

// EncodePut encodes a command: the key's length, the key, the value.
func EncodePut(key string, value []byte) []byte {
	b := make([]byte, 0, binary.MaxVarintLen32+len(key)+len(value))
	b = binary.AppendUvarint(b, uint64(len(key)))
	b = append(b, key...)
	return append(b, value...)
}

// DecodePut decodes a command.
func DecodePut(b []byte) (key string, value []byte, err error) {
	n, w := binary.Uvarint(b)
	if w <= 0 || n > uint64(len(b)-w) {
		return "", nil, fmt.Errorf("a command of %d bytes whose key is cut off", len(b))
	}
	return string(b[w:][:n]), b[w:][n:], nil
}

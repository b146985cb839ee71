// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package kv

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
)

// Keys of the database. All of the store's own stand below all of the clients'.
var (
	keyIdentity = []byte("\x00identity") // format version, cluster and node
	keyApplied  = []byte("\x00applied")  // log index of the state, in each batch
	keyHost     = []byte("\x00host")     // the host's own bytes
)

const (
	dataPrefix = 0x01 // before a client's key
	dataEnd    = 0x02 // above all of them
	sumBytes   = 4    // before a value
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// dataKey returns the database key of a client's key.
func dataKey(key string) []byte {
	return append([]byte{dataPrefix}, key...)
}

// sum is the checksum stored before a value. It covers the key, so that a value
// that turns up under another key is noticed.
func sum(key, value []byte) uint32 {
	return crc32.Update(crc32.Checksum(key, castagnoli), castagnoli, value)
}

// openRecord returns the value in a stored record, compared with its checksum.
func openRecord(key, record []byte) ([]byte, error) {
	if len(record) < sumBytes {
		return nil, fmt.Errorf("%w: the record of key %q has %d bytes, want at least %d", ErrDamaged, key, len(record), sumBytes)
	}
	value := record[sumBytes:]
	if want, got := binary.LittleEndian.Uint32(record), sum(key, value); want != got {
		return nil, fmt.Errorf("%w: the value of key %q (%d bytes) has checksum %08x, want %08x", ErrDamaged, key, len(value), got, want)
	}
	return value, nil
}

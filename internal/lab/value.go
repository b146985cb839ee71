// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
)

// stampBytes begin a value.
const stampBytes = 8

// Value fills a value for a key. The stamp, which begins the value, tells values of one key apart;
// all other bytes are drawn from the key and the stamp, so that no part of a value can stand for
// the same part of another one, and a store cannot compress them.
func Value(key string, stamp uint64, value []byte) {
	h := fnv.New64a()
	_, _ = h.Write([]byte(key)) // a hash does not fail
	draws := rand.NewPCG(h.Sum64(), stamp)
	var word [8]byte
	binary.LittleEndian.PutUint64(word[:], stamp)
	for at := copy(value, word[:]); at < len(value); {
		binary.LittleEndian.PutUint64(word[:], draws.Uint64())
		at += copy(value[at:], word[:])
	}
}

// CheckValue returns an error if a value of a key has other bytes than Value gives for any stamp,
// or another size. A value of at most 8 bytes is nothing but a stamp.
func CheckValue(key string, value []byte, size int) error {
	if len(value) != size {
		return fmt.Errorf("key %s has %d bytes, want %d", key, len(value), size)
	}
	if size <= stampBytes {
		return nil
	}
	want := make([]byte, size)
	if Value(key, binary.LittleEndian.Uint64(value), want); !bytes.Equal(value, want) {
		return fmt.Errorf("key %s has %d bytes that nobody wrote", key, size)
	}
	return nil
}

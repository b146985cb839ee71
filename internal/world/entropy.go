// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package world

import (
	cryptorand "crypto/rand"
	"encoding/binary"
	"sync"
)

// entropy stands in for crypto/rand's reader, which belongs to the process.
type entropy struct{ Draws }

// SetEntropy has crypto/rand draw from the given randomness until restore is called.
// Upstream's library draws election timeouts from there.
func SetEntropy(d Draws) (restore func()) {
	before := cryptorand.Reader
	cryptorand.Reader = entropy{d}
	return func() { cryptorand.Reader = before }
}

var entropyIsSet sync.Mutex

// WithEntropy is SetEntropy during a call. Calls of other goroutines wait meanwhile, and a call must
// not make another.
func WithEntropy(d Draws, call func()) {
	entropyIsSet.Lock()
	defer entropyIsSet.Unlock()
	defer SetEntropy(d)()
	call()
}

// Read fills b with draws.
func (e entropy) Read(b []byte) (int, error) {
	for i := 0; i < len(b); i += 8 {
		var word [8]byte
		binary.LittleEndian.PutUint64(word[:], e.Uint64())
		copy(b[i:], word[:])
	}
	return len(b), nil
}

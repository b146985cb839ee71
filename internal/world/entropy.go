// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package world

import (
	cryptorand "crypto/rand"
	"encoding/binary"
	"sync"
)

// entropy stands in for crypto/rand's reader, which belongs to the process.
type entropy struct {
	mu    sync.Mutex
	draws Draws
}

var theEntropy entropy

// WithEntropy makes a call during which crypto/rand draws from the given randomness.
// Upstream's library draws election timeouts from there. Calls of other goroutines wait
// meanwhile, and a call must not make another.
func WithEntropy(d Draws, call func()) {
	e := &theEntropy
	e.mu.Lock()
	before := cryptorand.Reader
	defer func() {
		cryptorand.Reader = before
		e.mu.Unlock()
	}()
	e.draws, cryptorand.Reader = d, e
	call()
}

// Read fills b with draws.
func (e *entropy) Read(b []byte) (int, error) {
	for i := 0; i < len(b); i += 8 {
		var word [8]byte
		binary.LittleEndian.PutUint64(word[:], e.draws.Uint64())
		copy(b[i:], word[:])
	}
	return len(b), nil
}

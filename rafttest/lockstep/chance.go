// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package lockstep

import (
	cryptorand "crypto/rand"
	"encoding/binary"
	"math/rand/v2"
	"sync"
)

// chance draws all random choices of a schedule from a single seed.
type chance struct{ *rand.Rand }

func newChance(seed uint64) chance {
	return chance{rand.New(rand.NewPCG(seed, 0x5eed))}
}

// oneIn is true once in n draws, on average.
func (c chance) oneIn(n int) bool { return c.IntN(n) == 0 }

// between draws from [lo, hi].
func (c chance) between(lo, hi int) int { return lo + c.IntN(hi-lo+1) }

func pick[T any](c chance, from ...T) T { return from[c.IntN(len(from))] }

// bytes draws n bytes.
func (c chance) bytes(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(c.Uint32())
	}
	return b
}

// entropy replaces the source of election timeouts: both libraries read crypto/rand.Reader, which
// is a variable. Before each call on each side entropy is set to the same state, so that both
// libraries draw the same numbers.
//
// A reader that repeats a single byte would be simpler, but rand.Int draws again until the number
// fits, and with such a reader might never return.
type entropy struct {
	mu    sync.Mutex // for nodes, which have goroutines
	state uint64
}

// theEntropy is installed once, at the first schedule of the process.
var theEntropy entropy

var installEntropy = sync.OnceFunc(func() { cryptorand.Reader = &theEntropy })

func (e *entropy) reset(seed, call uint64) {
	e.mu.Lock()
	e.state = seed*0x9e3779b97f4a7c15 ^ call*0xbf58476d1ce4e5b9
	e.mu.Unlock()
}

// Read fills b with the next numbers of a splitmix generator.
func (e *entropy) Read(b []byte) (int, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for i := 0; i < len(b); i += 8 {
		e.state += 0x9e3779b97f4a7c15
		z := e.state
		z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
		z = (z ^ z>>27) * 0x94d049bb133111eb
		var word [8]byte
		binary.LittleEndian.PutUint64(word[:], z^z>>31)
		copy(b[i:], word[:])
	}
	return len(b), nil
}

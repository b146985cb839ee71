// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package raft

import (
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"math/big"
)

// randomBoot returns a number no other run of a node has drawn.
func randomBoot() uint64 {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails
	return binary.LittleEndian.Uint64(b[:]) | 1
}

// cryptoRand is the default source of election timeouts. Many groups may use it at
// once, and there is no seed for two nodes to share by accident.
type cryptoRand struct{}

func (cryptoRand) IntN(n int) int {
	v, err := rand.Int(rand.Reader, big.NewInt(int64(n)))
	if err != nil {
		// The system's generator never fails; a replaced Reader may.
		panic(fmt.Sprintf("raft: crypto/rand.Reader failed: %v", err))
	}
	return int(v.Int64())
}

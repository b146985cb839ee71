// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package rawnode_test

import "math/rand/v2"

// newRand returns a source for pebble's crash clones.
func newRand(seed int64) *rand.Rand { return rand.New(rand.NewPCG(uint64(seed), 3)) }

// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package storagetest_test

import (
	"testing"

	"github.com/weftraft/weft/raft"
	"github.com/weftraft/weft/storage/storagetest"
)

// TestMemoryStorage: the reference passes its own suite.
func TestMemoryStorage(t *testing.T) {
	storagetest.Run(t, func(storagetest.T) storagetest.Log { return raft.NewMemoryStorage() })
}

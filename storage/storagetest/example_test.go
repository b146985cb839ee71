// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package storagetest_test

import (
	"testing"

	"github.com/weftraft/weft/raft"
	"github.com/weftraft/weft/storage/storagetest"
)

// A test of a log hands the suite a new log for each case.
func Example() {
	_ = func(t *testing.T) { // TestMyLog
		storagetest.Run(t, func(storagetest.T) storagetest.Log { return raft.NewMemoryStorage() })
	}
	// Output:
}

// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package lockstep

import (
	"errors"

	"github.com/weftraft/weft/raft"
)

// Upstream panics where Weft refuses, so no error of its says that.
func (upstream) refused(error) bool { return false }

func (weft) refused(err error) bool {
	return errors.Is(err, raft.ErrMalformedMessage) || errors.Is(err, raft.ErrStorage)
}

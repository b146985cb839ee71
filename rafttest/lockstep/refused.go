// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package lockstep

import (
	"errors"

	"github.com/weftraft/weft/raft"
)

// refused is always false for upstream, which panics in the cases that Weft refuses.
func (upstream) refused(error) bool { return false }

func (weft) refused(err error) bool {
	return errors.Is(err, raft.ErrMalformedMessage) || errors.Is(err, raft.ErrStorage)
}

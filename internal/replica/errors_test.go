// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package replica

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// A read has no effect in any case, so its error does not say so.
func TestErrorOfAReadSpeaksOfNoEffect(t *testing.T) {
	require.EqualError(t, &CallError{Op: opRead, Verdict: ErrRefused, Cause: ErrNoLeader}, "read: not answered: no leader is known")
	require.EqualError(t, &CallError{Op: "propose", Verdict: ErrRefused, Cause: ErrNoLeader}, "propose: refused, it has no effect: no leader is known")
}

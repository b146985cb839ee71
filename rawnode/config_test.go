// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package rawnode

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestHostConfigNamesEveryMistake(t *testing.T) {
	err := Config{}.Validate()
	for _, want := range []string{"ID is 0", "Log is", "StateMachine is", "Transport is"} {
		require.ErrorContains(t, err, want)
	}
	require.ErrorIs(t, err, ErrInvalid)
}

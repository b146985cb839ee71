// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package room

import (
	"errors"
	"math"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestFreeOfADirectoryThatIsNotThereYet(t *testing.T) {
	dir := t.TempDir()
	have, err := Free(dir)
	require.NoError(t, err)
	require.Positive(t, have)
	_, err = Free(filepath.Join(dir, "not", "yet"))
	require.NoError(t, err)
	err = Check(Free, filepath.Join(dir, "not", "yet"), math.MaxUint64)
	require.ErrorIs(t, err, ErrLittle)
	require.ErrorContains(t, err, filepath.Join(dir, "not", "yet")+" has ")
}

func TestCheck(t *testing.T) {
	for _, c := range []struct {
		have uint64
		err  error
		want error
	}{
		{1_000_000, nil, nil}, {999_999, nil, ErrLittle}, {0, nil, ErrLittle}, {0, errors.New("nobody knows"), nil},
	} {
		err := Check(func(string) (uint64, error) { return c.have, c.err }, "d", 1_000_000)
		require.ErrorIs(t, err, c.want)
	}
}

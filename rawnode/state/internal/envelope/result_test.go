// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package envelope

import (
	"errors"
	"fmt"
	"io/fs"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weftraft/weft/rawnode/session"
)

func TestResultsReachGateways(t *testing.T) {
	for _, r := range []any{nil, true, false, -3, int64(-1 << 63), uint64(1<<64 - 1), []byte("b"), "s", session.ID(7), ErrMalformed, ErrResult, ErrPanicked,
		&RefusedError{Session: 1, Sequence: 2, Verdict: session.Forgotten}} {
		b, err := EncodeResult(r)
		require.NoError(t, err, "%v", r)
		got, err := DecodeResult(b)
		require.NoError(t, err, "%v", r)
		require.Equal(t, r, got)
	}
	b, err := EncodeResult(fmt.Errorf("%w: ann has only 3", fs.ErrInvalid))
	require.NoError(t, err)
	got, err := DecodeResult(b)
	require.NoError(t, err)
	require.Equal(t, errors.New("invalid argument: ann has only 3"), got, "an error arrives by its text")
	_, err = EncodeResult(struct{}{})
	require.ErrorIs(t, err, ErrResult)
	for _, b := range [][]byte{nil, {resultSession}, {resultRefused, 1, 2}, {resultBool}, {99}} {
		_, err := DecodeResult(b)
		require.Error(t, err, "%v", b)
	}
}

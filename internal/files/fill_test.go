// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package files

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"
)

// silent returns nothing, ever.
type silent struct{}

func (silent) Read([]byte) (int, error) { return 0, nil }

func TestFillTellsAnEndFromAFailure(t *testing.T) {
	text := func() io.Reader { return strings.NewReader("12345678") }
	for _, r := range []io.Reader{text(), iotest.OneByteReader(text()), iotest.DataErrReader(text()), iotest.HalfReader(text())} {
		buf := make([]byte, 6)
		n, ended, err := Fill(r, buf)
		require.NoError(t, err)
		require.False(t, ended)
		require.Equal(t, "123456", string(buf[:n]))
		n, ended, err = Fill(r, buf)
		require.NoError(t, err)
		require.True(t, ended)
		require.Equal(t, "78", string(buf[:n]))
	}
	for _, broken := range []error{io.ErrUnexpectedEOF, fmt.Errorf("file: %w", io.EOF), errors.New("disk")} {
		n, ended, err := Fill(io.MultiReader(strings.NewReader("123"), iotest.ErrReader(broken)), make([]byte, 6))
		require.ErrorIs(t, err, broken)
		require.False(t, ended)
		require.Equal(t, 3, n)
	}
	_, _, err := Fill(silent{}, make([]byte, 1))
	require.ErrorIs(t, err, io.ErrNoProgress)
}

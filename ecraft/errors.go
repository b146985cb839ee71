// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package ecraft

import (
	"errors"
	"fmt"
)

var (
	// ErrMalformed is wrapped by the errors of bytes that are no envelope or strip, and of headers
	// with impossible values.
	ErrMalformed = errors.New("ecraft: malformed")
	// ErrCorrupt is wrapped by the errors of units and payloads whose checksum
	// is wrong.
	ErrCorrupt = errors.New("ecraft: corrupt")
	// ErrIncomplete is returned where too few units are held to decode.
	ErrIncomplete = errors.New("ecraft: too few units")
)

func malformed(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrMalformed, fmt.Sprintf(format, args...))
}

func corrupt(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrCorrupt, fmt.Sprintf(format, args...))
}

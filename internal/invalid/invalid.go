// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

// Package invalid has the error of mistakes in options and arguments of package weft.
package invalid

import (
	"errors"
	"fmt"
	"reflect"
)

// Err is weft.ErrInvalid.
var Err = errors.New("weft: invalid")

// Errorf returns a mistake of a caller.
func Errorf(format string, args ...any) error {
	return fmt.Errorf("%w: %w", Err, fmt.Errorf(format, args...))
}

// IsNil reports whether v is nil, or an interface around a nil pointer.
func IsNil(v any) bool {
	if v == nil {
		return true
	}
	r := reflect.ValueOf(v)
	return r.Kind() == reflect.Pointer && r.IsNil()
}

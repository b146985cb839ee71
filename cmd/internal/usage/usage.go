// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

// Package usage says what is wrong with a command line.
package usage

import (
	"errors"
	"fmt"

	"github.com/spf13/pflag"
)

// wants says what the values of a type of flag look like.
var wants = map[string]string{
	"bool":         "true or false",
	"duration":     "a duration such as 250ms or 5s",
	"float64":      "a number",
	"float64Slice": "numbers, separated by commas",
	"int":          "a whole number",
	"intSlice":     "whole numbers, separated by commas",
	"uint":         "0 to 18446744073709551615",
	"uint32":       "0 to 4294967295",
	"uint64":       "0 to 18446744073709551615",
}

// Explain turns the flag parser's error about a value into an error with the flag, the
// value and the allowed values. Other errors stay as they are.
func Explain(err error) error {
	var bad *pflag.InvalidValueError
	if !errors.As(err, &bad) {
		return err
	}
	f := bad.GetFlag()
	if want := wants[f.Value.Type()]; want != "" {
		return fmt.Errorf("--%s: %q, want %s", f.Name, bad.GetValue(), want)
	}
	return fmt.Errorf("--%s: %w", f.Name, bad.Unwrap())
}

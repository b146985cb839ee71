// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package torture

import "errors"

func mountSmall(string, int) error { return errors.ErrUnsupported }
func unmountSmall(string) error    { return nil }
func isFull(error) bool            { return false }

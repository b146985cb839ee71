// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !unix

package process

import "time"

// OwnCPU is 0 here.
func OwnCPU() time.Duration { return 0 }

// OwnSleeps is 0 here.
func OwnSleeps() uint64 { return 0 }

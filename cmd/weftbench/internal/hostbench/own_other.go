// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !unix

package hostbench

import "time"

func ownCPU() time.Duration { return 0 }

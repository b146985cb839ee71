// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package process

import (
	"errors"
	"time"
)

func processCPU(int) (time.Duration, error) {
	return 0, errors.New("this system does not say")
}

// MachineTime is zero here.
func MachineTime() Machine { return Machine{} }

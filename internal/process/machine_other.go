// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package process

// MachineTime is zero here.
func MachineTime() Machine { return Machine{} }

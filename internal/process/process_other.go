// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !unix

package process

import (
	"os"
	"syscall"
)

func childAttributes() *syscall.SysProcAttr { return nil }

func killGroup(p *os.Process) error { return p.Kill() }

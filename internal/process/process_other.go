// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !unix

package process

import (
	"errors"
	"os"
	"syscall"
)

func childAttributes() *syscall.SysProcAttr { return nil }

var errNoPause = errors.New("processes cannot be paused on this system")

// Pause is an error here.
func (p *Process) Pause() error { return errNoPause }

// Resume is an error here.
func (p *Process) Resume() error { return errNoPause }

func killGroup(p *os.Process) error { return p.Kill() }

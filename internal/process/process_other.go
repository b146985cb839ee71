// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !unix

package process

import (
	"errors"
	"os"
	"syscall"
	"time"
)

func childAttributes() *syscall.SysProcAttr { return nil }

var errNoPause = errors.New("processes cannot be paused on this system")

// Pause is an error here.
func (p *Process) Pause() error { return errNoPause }

// Resume is an error here.
func (p *Process) Resume() error { return errNoPause }

func killGroup(p *os.Process) error { return p.Kill() }

// OwnCPU is 0 here.
func OwnCPU() time.Duration { return 0 }

// OwnSleeps is 0 here.
func OwnSleeps() uint64 { return 0 }

// Written is an error here.
func Written(*os.ProcessState) (uint64, error) {
	return 0, errors.New("this system does not say what a process has written")
}

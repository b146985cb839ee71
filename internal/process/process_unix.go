// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package process

import (
	"errors"
	"fmt"
	"os"
	"syscall"
)

// Pause has the process stand still until Resume, or until it is killed.
func (p *Process) Pause() error { return p.signal(syscall.SIGSTOP) }

// Resume lets a process go on that Pause stopped.
func (p *Process) Resume() error { return p.signal(syscall.SIGCONT) }

func (p *Process) signal(s syscall.Signal) error {
	if err := p.cmd.Process.Signal(s); err != nil {
		return fmt.Errorf("send %v to process %d: %w", s, p.PID(), err)
	}
	return nil
}

// killGroup kills a child and its process group.
func killGroup(p *os.Process) error {
	err := syscall.Kill(-p.Pid, syscall.SIGKILL)
	if errors.Is(err, syscall.ESRCH) {
		return os.ErrProcessDone
	}
	return err
}

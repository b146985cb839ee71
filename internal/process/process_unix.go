// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package process

import (
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"
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

// own returns what the kernel counts for this process; zero if it does not say.
func own() (u syscall.Rusage) {
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u) // it fails for wrong arguments alone
	return u
}

// OwnCPU returns the CPU time that this process has used.
func OwnCPU() time.Duration {
	u := own()
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// OwnSleeps returns how often threads of this process have given a processor back because they had to wait: for a
// frame, for each other, for a disk.
func OwnSleeps() uint64 {
	u := own()
	return uint64(max(u.Nvcsw, 0))
}

// Written returns what a process that is gone had written to disk.
func Written(s *os.ProcessState) (uint64, error) {
	usage, ok := s.SysUsage().(*syscall.Rusage)
	if !ok {
		return 0, errors.New("this system does not say what a process has written")
	}
	return uint64(usage.Oublock) * 512, nil
}

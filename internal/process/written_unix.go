// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package process

import (
	"errors"
	"os"
	"syscall"
)

// Written returns what a process that is gone had written to disk.
func Written(s *os.ProcessState) (uint64, error) {
	usage, ok := s.SysUsage().(*syscall.Rusage)
	if !ok {
		return 0, errors.New("this system does not say what a process has written")
	}
	return uint64(usage.Oublock) * 512, nil
}

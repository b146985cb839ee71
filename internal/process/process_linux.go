// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package process

import "syscall"

// childAttributes puts a child into a process group of its own, so that it is
// ours to stop, not the terminal's, and has the system kill it when we die.
func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

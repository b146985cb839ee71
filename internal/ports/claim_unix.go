// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package ports

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"syscall"
)

// claims are the locked files of the ports given to this process. The locks end
// with the process, however it ends; the files stay, empty.
var claims struct {
	sync.Mutex
	files map[int]*os.File
}

// claim reports whether a port is this process's from now on. Nodes are restarted
// at their ports, so a port must be kept while nobody listens there. Without a
// directory for the locks every port counts as claimed.
func claim(port int) bool {
	claims.Lock()
	defer claims.Unlock()
	if claims.files[port] != nil {
		return false // given before: its node may be down for a moment
	}
	dir := filepath.Join(os.TempDir(), fmt.Sprintf("weft-ports-%d", os.Getuid()))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return true
	}
	f, err := os.OpenFile(filepath.Join(dir, fmt.Sprint(port)), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return true
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		_ = f.Close() // nothing was written
		return false
	}
	if claims.files == nil {
		claims.files = map[int]*os.File{}
	}
	claims.files[port] = f
	return true
}

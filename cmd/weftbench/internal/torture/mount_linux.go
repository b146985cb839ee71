// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package torture

import (
	"errors"
	"fmt"
	"syscall"
)

// mountSmall mounts a file system of so many bytes, in memory.
func mountSmall(path string, bytes int) error {
	return syscall.Mount("weftbench", path, "tmpfs", 0, fmt.Sprintf("size=%d", bytes))
}

func unmountSmall(path string) error { return syscall.Unmount(path, syscall.MNT_DETACH) }

// isFull reports whether there is no room.
func isFull(err error) bool { return errors.Is(err, syscall.ENOSPC) }

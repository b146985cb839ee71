// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package node

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/weftraft/weft/cmd/kvdemo/internal/room"
)

// checkRoom looks at the room on the disk before anything is written. A new node
// is refused a disk that it would fill at once. One that has data is not: it is
// of use to the others even if it can write nothing more.
func checkRoom(cfg Config, free func(dir string) (uint64, error)) error {
	err := room.Check(free, cfg.Data, room.ForNode)
	if err == nil {
		return nil
	}
	if _, stat := os.Stat(filepath.Join(cfg.Data, settingsFile)); errors.Is(stat, fs.ErrNotExist) {
		return fmt.Errorf("%w for a new node; make room, or name another directory", err)
	}
	cfg.Log.Warn("the disk is almost full; make room", "error", err)
	return nil
}

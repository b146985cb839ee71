// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package state

import (
	"errors"
	"fmt"
	"io"
	"io/fs"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/weftraft/weft/internal/dirlock"
	"github.com/weftraft/weft/rawnode"
	"github.com/weftraft/weft/rawnode/state/internal/envelope"
)

// limitsFile has the limits of sessions beside the checkpoints. The limits decide at which command a
// session ends, so a replica that replays the log from a checkpoint with other limits than before comes
// to another state than the other replicas. The file is there before the first checkpoint, and not
// earlier: a state without a checkpoint replays from the beginning, with whatever limits.
const limitsFile = "session-limits"

// Settings is looked for by hosts: see [rawnode.StateMachine].
func (m *Memory[M]) Settings() []rawnode.Setting { return envelope.Settings(m.opts.Sessions) }

// checkLimits returns an error if the last checkpoint was made with other limits of sessions.
func (m *Memory[M]) checkLimits() error {
	kept, err := m.keptLimits()
	if err != nil || kept == "" {
		return err
	}
	return envelope.CheckKept(kept, m.opts.Sessions)
}

// keptLimits returns the contents of limitsFile, or "" if there is none.
func (m *Memory[M]) keptLimits() (string, error) {
	f, err := m.opts.FS.Open(m.path(limitsFile))
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("open the limits of sessions: %w", err)
	}
	b, err := io.ReadAll(io.LimitReader(f, 1<<10))
	if err = errors.Join(err, f.Close()); err != nil {
		return "", fmt.Errorf("read the limits of sessions: %w", err)
	}
	return string(b), nil
}

// keepLimits writes limitsFile, unless it is there, durably: or power may take the limits, and leave the checkpoint behind them. The
// process that wrote the file may have been killed before its name was durable.
func (m *Memory[M]) keepLimits() error {
	if m.opts.Sessions == nil || m.limitsKept {
		return nil
	}
	kept, err := m.keptLimits()
	if want := envelope.Describe(m.opts.Sessions); err == nil && kept != want {
		err = m.writeLimits(want)
	}
	if err == nil {
		err = dirlock.Sync(m.opts.FS, m.opts.Dir)
	}
	if err != nil {
		return fmt.Errorf("keep the limits of sessions: %w", err)
	}
	m.limitsKept = true
	return nil
}

// writeLimits puts limitsFile in its place; the directory is still to be synced.
func (m *Memory[M]) writeLimits(text string) error {
	on, temp := m.opts.FS, m.path(tempPrefix+limitsFile)
	f, err := on.Create(temp, vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	_, err = io.WriteString(f, text)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = on.Rename(temp, m.path(limitsFile))
	}
	if err != nil {
		return errors.Join(err, on.Remove(temp))
	}
	return nil
}

// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package copies

import (
	"errors"
	"fmt"
	"log/slog"
	"os"

	"github.com/weftraft/weft/internal/book"
	"github.com/weftraft/weft/storage"
)

// Config says whose directory it is, and of which group: a node that is not open.
type Config struct {
	Cluster, ID, Group uint64
	Dir                string
	LogDir             string // in Dir
	OpenLog            func() (*storage.Engine, error)
	Book               book.Config
	Voters             []uint64 // with whom a restored group begins
	ClearPrefix        int      // of coded entries
	Logger             *slog.Logger
}

// directory is one whose log is open, but for a restore, which opens the log late.
type directory struct {
	Config
	engine *storage.Engine
	log    *storage.Group
}

// open opens the log, which makes a new directory the node's.
func (d *directory) open() (err error) {
	if d.engine, err = d.OpenLog(); err != nil {
		return err
	}
	if d.log, err = d.engine.Group(d.Group); err != nil {
		return errors.Join(err, d.engine.Close())
	}
	return nil
}

// openSurvivor opens the log of one group in a directory that has one, and makes none.
func openSurvivor(c Config) (*directory, error) {
	if _, err := os.Stat(c.LogDir); err != nil {
		return nil, fmt.Errorf("there is no log, so nothing survived in Options.Dir (%s), or the directory is another one: %w", c.Dir, err)
	}
	d := &directory{Config: c}
	return d, d.open()
}

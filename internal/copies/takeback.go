// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package copies

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/weftraft/weft/internal/book"
	"github.com/weftraft/weft/internal/files"
	"github.com/weftraft/weft/internal/invalid"
	"github.com/weftraft/weft/rawnode"
)

// TakeBack is weft.TakeBack.
func TakeBack(c Config, sm rawnode.StateMachine) error {
	d, err := openSurvivor(c)
	if err != nil {
		return fmt.Errorf("take back a recovery: %w", err)
	}
	r := &recovery{directory: d, user: sm}
	if err = errors.Join(r.takeBack(), d.engine.Close()); err != nil {
		return fmt.Errorf("take back the recovery of group %d at node %d: %w", c.Group, c.ID, err)
	}
	return nil
}

func (r *recovery) takeBack() error {
	p, err := r.begun()
	if err != nil {
		return err
	}
	if p == nil || p.Group != r.Group {
		return invalid.Errorf("no recovery of the group is under way in %s", r.Dir)
	}
	begun, err := r.logHasBegun(p)
	if err != nil {
		return err
	}
	if begun {
		return invalid.Errorf("the log has begun anew already: call Recover with the lost members %v, which ends the recovery", p.Lost)
	}
	applied, _, err := r.user.Load()
	if err != nil {
		return fmt.Errorf("load the state machine: %w", err)
	}
	if applied > p.Before.Index {
		if err := r.restoreFile(p.Before, p.beforePath(r.Dir)); err != nil {
			return err
		}
	}
	if err := r.putBookBack(p); err != nil {
		return err
	}
	return r.forget(p)
}

// putBookBack makes the file of addresses as it was: the recovery may have read entries that
// were never committed.
func (r *recovery) putBookBack(p *recoveryPlan) error {
	path := filepath.Join(r.Dir, book.FileName)
	if len(p.Book) > 0 {
		return files.Replace(path, p.Book)
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return files.SyncDir(r.Dir)
}

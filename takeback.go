// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package weft

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/weftraft/weft/internal/book"
	"github.com/weftraft/weft/internal/files"
	"github.com/weftraft/weft/internal/invalid"
)

// TakeBack undoes a [Recover] that has not ended, for example because another member turned out to
// be alive: the state is again as before, and the node can be opened as a member of its old
// group. A directory without a recovery that can be taken back is [ErrInvalid], and nothing is
// changed: what Recover has ended stays. After an interruption TakeBack is called again.
func TakeBack(o Options, group uint64, sm StateMachine, options ...GroupOption) error {
	if invalid.IsNil(sm) {
		return invalid.Errorf("the state machine of group %d is nil", group)
	}
	d, err := openSurvivor(o, group, options)
	if err != nil {
		return fmt.Errorf("take back a recovery: %w", err)
	}
	r := &recovery{directory: d, user: sm}
	if err = errors.Join(r.takeBack(), d.engine.Close()); err != nil {
		return fmt.Errorf("take back the recovery of group %d at node %d: %w", group, o.ID, err)
	}
	return nil
}

func (r *recovery) takeBack() error {
	p, err := readPlan(r.options.Dir)
	if err != nil {
		return err
	}
	if p == nil || p.Group != r.group {
		return invalid.Errorf("no recovery of the group is under way in %s", r.options.Dir)
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
		if err := r.restoreFile(p.Before, p.beforePath(r.options.Dir)); err != nil {
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
	path := filepath.Join(r.options.Dir, book.FileName)
	if len(p.Book) > 0 {
		return files.Replace(path, p.Book)
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return files.SyncDir(r.options.Dir)
}

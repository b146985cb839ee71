// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package copies

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/weftraft/weft/internal/front"
	"github.com/weftraft/weft/internal/invalid"
	"github.com/weftraft/weft/internal/replica"
	"github.com/weftraft/weft/raft"
	"github.com/weftraft/weft/rawnode"
	"github.com/weftraft/weft/storage"
)

// Restore is weft.Restore.
func Restore(c Config, sm rawnode.StateMachine, r io.Reader) (Info, error) {
	in, err := newReader(r)
	if err != nil {
		return Info{}, fmt.Errorf("restore group %d at node %d: %w", c.Group, c.ID, err)
	}
	d := &directory{Config: c}
	if err := d.restore(sm, in); err != nil {
		return in.info, fmt.Errorf("restore group %d at node %d: %w", c.Group, c.ID, err)
	}
	return in.info, nil
}

// restore restores a snapshot. The directory is opened behind the checks that need no
// directory, because a new one becomes that of cluster and node for good.
func (d *directory) restore(sm rawnode.StateMachine, in *reader) error {
	if in.info.Cluster == d.Cluster {
		return invalid.Errorf("Options.Cluster is %d, and so is that of the snapshot: give the new cluster another number, or nodes of the old one could take it for theirs", d.Cluster)
	}
	begin := replica.Refounding{
		Index: max(in.info.Index, 2), Term: 1, Voters: d.Voters,
		Mark: replica.Mark(fmt.Appendf(nil, "restored %s cluster %d", in.info.ID, d.Cluster)),
	}
	if err := emptyState(sm, begin); err != nil {
		return err
	}
	if err := d.open(); err != nil {
		return err
	}
	return errors.Join(d.begin(sm, begin, in), d.engine.Close())
}

// begin restores the state and then begins the log with it.
func (d *directory) begin(sm rawnode.StateMachine, begin replica.Refounding, in *reader) error {
	if err := CheckFinished(d.Dir); err != nil {
		return err
	}
	if err := d.emptyLog(); err != nil {
		return err
	}
	host, write, err := begin.Begin()
	if err != nil {
		return err
	}
	if err := d.log.AppendWait(context.Background(), storage.Write{HardState: replica.RestoreBegun()}); err != nil {
		return err
	}
	if err := restoreWhole(sm, rawnode.SnapshotMeta{Index: begin.Index, Host: host}, in); err != nil {
		return err
	}
	defer front.Timed(d.Logger, "beginning the log with the restored state", "node", d.ID, "group", d.Group)()
	return d.log.AppendWait(context.Background(), *write)
}

// emptyLog returns an error unless there is no log, or what an earlier attempt has left.
func (d *directory) emptyLog() error {
	hs, _, err := d.log.InitialState()
	if err != nil {
		return err
	}
	if last, err := d.log.LastIndex(); err != nil || last > 0 || !raft.IsEmptyHardState(hs) && !replica.IsRestoreBegun(hs, last) {
		return errors.Join(err, fmt.Errorf("%w: group %d has a log of %d entries in %s: restore into an empty directory", rawnode.ErrState, d.Group, last, d.Dir))
	}
	return nil
}

// emptyState returns an error unless there is no state, or that of an earlier attempt, with which no group has gone on.
func emptyState(sm rawnode.StateMachine, begin replica.Refounding) error {
	applied, host, err := sm.Load()
	if err != nil {
		return fmt.Errorf("load the state machine: %w", err)
	}
	if applied == 0 {
		return nil
	}
	if f, err := replica.ReadFounded(host); err != nil || f.Mark != begin.Mark || applied != begin.Index {
		return errors.Join(err, fmt.Errorf("%w: the state machine is at index %d: restore into an empty one, and an empty directory", rawnode.ErrState, applied))
	}
	return nil
}

// restoreWhole restores a state and makes sure that the snapshot is whole.
func restoreWhole(sm rawnode.StateMachine, meta rawnode.SnapshotMeta, in *reader) error {
	if err := sm.Restore(meta, in); err != nil {
		return fmt.Errorf("the state machine's Restore: %w", err)
	}
	if _, err := io.Copy(io.Discard, in); err != nil {
		return err // what Restore did not read
	}
	return nil
}

// openSnapshotFile opens a snapshot in a file. The caller closes the file.
func openSnapshotFile(path string) (*os.File, *reader, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, nil, err
	}
	in, err := newReader(f)
	if err != nil {
		return nil, nil, errors.Join(err, f.Close())
	}
	return f, in, nil
}

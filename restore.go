// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package weft

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/weftraft/weft/internal/invalid"
	"github.com/weftraft/weft/internal/replica"
	"github.com/weftraft/weft/raft"
	"github.com/weftraft/weft/rawnode"
	"github.com/weftraft/weft/storage"
)

// Restore begins a group of a new cluster with a snapshot of [Group.Snapshot]. It is called at
// each first member, before [Open] and with the same options, on an empty directory and an
// empty state machine; the number of members is free. The new cluster has a number of
// its own, because the nodes of the old one may still be there. Restore reads r to the end. It has no
// context, because it lasts as long as r and the disk do, and nothing waits for it: a reader that
// returns an error ends it, and the next call begins again. A wait of 10 s for the log is logged.
//
// A snapshot that is damaged or cut off is [ErrSnapshot], and the group is not begun; neither
// does it begin at a node where Restore was interrupted, until Restore is called again. A member
// without the snapshot cannot take part: the others refuse its messages. (A majority without the
// snapshot could begin an empty group, which the others refuse in the same way.)
func Restore(o Options, group uint64, sm StateMachine, r io.Reader, options ...GroupOption) (SnapshotInfo, error) {
	switch {
	case invalid.IsNil(sm):
		return SnapshotInfo{}, invalid.Errorf("the state machine of group %d is nil", group)
	case invalid.IsNil(r):
		return SnapshotInfo{}, invalid.Errorf("the reader of the snapshot is nil")
	case o.Join:
		return SnapshotInfo{}, invalid.Errorf("Options.Join is set: a node that joins gets the state from the others, Restore is for the first members")
	}
	d, err := newDirectory(o, group, options)
	if err != nil {
		return SnapshotInfo{}, fmt.Errorf("restore: %w", err)
	}
	in, err := newSnapshotReader(r)
	if err != nil {
		return SnapshotInfo{}, fmt.Errorf("restore group %d at node %d: %w", group, o.ID, err)
	}
	if err := d.restore(sm, in); err != nil {
		return in.info, fmt.Errorf("restore group %d at node %d: %w", group, o.ID, err)
	}
	return in.info, nil
}

// directory is that of a node which is not open.
type directory struct {
	options Options // with defaults
	group   uint64
	config  groupConfig
	engine  *storage.Engine
	log     *storage.Group
}

// openDirectory opens the log of one group.
func openDirectory(o Options, group uint64, options []GroupOption) (*directory, error) {
	d, err := newDirectory(o, group, options)
	if err == nil {
		err = d.open()
	}
	return d, err
}

// newDirectory checks the arguments, and touches nothing.
func newDirectory(o Options, group uint64, options []GroupOption) (*directory, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	if group == 0 {
		return nil, invalid.Errorf("the group's id is 0, want 1 or more")
	}
	d := &directory{options: o.withDefaults(), group: group}
	d.config.host.Replica = rawnode.ReplicaConfig{ID: o.ID, Group: group}
	for i, option := range options {
		if option == nil {
			return nil, invalid.Errorf("option %d of %d for group %d is nil", i+1, len(options), group)
		}
		option(&d.config)
	}
	if err := errors.Join(d.config.errs...); err != nil {
		return nil, err
	}
	return d, nil
}

// open opens the log, which makes a new directory the node's.
func (d *directory) open() (err error) {
	if d.engine, err = openEngine(d.options); err != nil {
		return err
	}
	if d.log, err = d.engine.Group(d.group); err != nil {
		return errors.Join(err, d.engine.Close())
	}
	return nil
}

// restore restores a snapshot. The directory is opened behind the checks that need no
// directory, because a new one becomes that of cluster and node for good.
func (d *directory) restore(sm StateMachine, in *snapshotReader) error {
	if in.info.Cluster == d.options.Cluster {
		return invalid.Errorf("Options.Cluster is %d, and so is that of the snapshot: give the new cluster another number, or nodes of the old one could take it for theirs", d.options.Cluster)
	}
	voters, err := d.config.firstMembers(d.options)
	if err != nil {
		return err
	}
	begin := replica.Refounding{
		Index: max(in.info.Index, 2), Term: 1, Voters: voters,
		Mark: replica.Mark(fmt.Appendf(nil, "restored %s cluster %d", in.info.ID, d.options.Cluster)),
	}
	if err := emptyState(sm, begin.Mark); err != nil {
		return err
	}
	if err := d.open(); err != nil {
		return err
	}
	return errors.Join(d.begin(sm, begin, in), d.engine.Close())
}

// begin restores the state and then begins the log with it.
func (d *directory) begin(sm StateMachine, begin replica.Refounding, in *snapshotReader) error {
	if err := checkFinished(d.options.Dir); err != nil {
		return err
	}
	if err := d.emptyLog(); err != nil {
		return err
	}
	host, write, err := begin.Begin()
	if err != nil {
		return err
	}
	if err := restoreWhole(sm, rawnode.SnapshotMeta{Index: begin.Index, Host: host}, in); err != nil {
		return err
	}
	defer timed(d.options.Logger, "beginning the log with the restored state", "node", d.options.ID, "group", d.group)()
	return d.log.AppendWait(context.Background(), *write)
}

// emptyLog returns an error unless there is no log.
func (d *directory) emptyLog() error {
	hs, _, err := d.log.InitialState()
	if err != nil {
		return err
	}
	if last, err := d.log.LastIndex(); err != nil || last > 0 || !raft.IsEmptyHardState(hs) {
		return errors.Join(err, fmt.Errorf("%w: group %d has a log of %d entries in %s: restore into an empty directory", ErrState, d.group, last, d.options.Dir))
	}
	return nil
}

// emptyState returns an error unless there is no state, or that of an earlier attempt.
func emptyState(sm StateMachine, mark uint64) error {
	applied, host, err := sm.Load()
	if err != nil {
		return fmt.Errorf("load the state machine: %w", err)
	}
	if applied == 0 {
		return nil
	}
	if f, err := replica.ReadFounded(host); err != nil || f.Mark != mark {
		return errors.Join(err, fmt.Errorf("%w: the state machine is at index %d: restore into an empty one, and an empty directory", ErrState, applied))
	}
	return nil
}

// restoreWhole restores a state and makes sure that the snapshot is whole.
func restoreWhole(sm StateMachine, meta rawnode.SnapshotMeta, in *snapshotReader) error {
	if err := sm.Restore(meta, in); err != nil {
		return fmt.Errorf("the state machine's Restore: %w", err)
	}
	if _, err := io.Copy(io.Discard, in); err != nil {
		return err // what Restore did not read
	}
	return nil
}

// openSnapshotFile opens a snapshot in a file. The caller closes the file.
func openSnapshotFile(path string) (*os.File, *snapshotReader, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, nil, err
	}
	in, err := newSnapshotReader(f)
	if err != nil {
		return nil, nil, errors.Join(err, f.Close())
	}
	return f, in, nil
}

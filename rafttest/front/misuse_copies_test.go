// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package front_test

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weftraft/weft"
)

var copyMistakes = []misuse{
	{"restoring garbage", func(t *testing.T, c *misused) error {
		return ignore(weft.Restore(c.fresh(t).options, 1, newJournal(t, t.TempDir()), strings.NewReader("PK\x03\x04, a zip perhaps")))
	}, weft.ErrSnapshot, "does not begin with"},
	{"restoring nothing", func(t *testing.T, c *misused) error {
		return ignore(weft.Restore(c.fresh(t).options, 1, newJournal(t, t.TempDir()), nil))
	}, weft.ErrInvalid, "reader of the snapshot is nil"},
	{"restoring into no state machine", func(t *testing.T, c *misused) error {
		return ignore(weft.Restore(c.fresh(t).options, 1, nil, strings.NewReader("")))
	}, weft.ErrInvalid, "state machine of group 1 is nil"},
	{"restoring into the same cluster", func(t *testing.T, c *misused) error {
		o := c.fresh(t).options
		right := o.Cluster
		o.Cluster = testCluster
		err := ignore(weft.Restore(o, 1, newJournal(t, t.TempDir()), c.backup(t)))
		o.Cluster = right
		require.NoError(t, ignore(weft.Restore(o, 1, newJournal(t, t.TempDir()), c.backup(t))), "the refused one has not made the directory its own")
		return err
	}, weft.ErrInvalid, "another number"},
	{"restoring at a node that joins", func(t *testing.T, c *misused) error {
		return ignore(weft.Restore(joiner(t, 7, c.all[1]).options, 1, newJournal(t, t.TempDir()), c.backup(t)))
	}, weft.ErrInvalid, "Join is set"},
	{"restoring for a group that this node joins", func(t *testing.T, c *misused) error {
		return ignore(weft.Restore(c.fresh(t).options, 1, newJournal(t, t.TempDir()), c.backup(t), weft.Joining()))
	}, weft.ErrInvalid, "or Joining"},
	{"restoring with a first member twice", func(t *testing.T, c *misused) error {
		return ignore(weft.Restore(c.fresh(t).options, 1, newJournal(t, t.TempDir()), c.backup(t), weft.FirstMembers(1, 1)))
	}, weft.ErrInvalid, "FirstMembers are [1 1], want each id once"},
	{"restoring over a group", func(t *testing.T, c *misused) error {
		m := c.fresh(t)
		m.start(t)
		m.propose(t, "a line")
		m.stop(t)
		return ignore(weft.Restore(m.options, 1, newJournal(t, filepath.Join(m.options.Dir, "state")), c.backup(t)))
	}, weft.ErrState, "empty directory"},
	{"restoring over a state", func(t *testing.T, c *misused) error {
		return ignore(weft.Restore(c.fresh(t).options, 1, c.all[1].state, c.backup(t)))
	}, weft.ErrState, "restore into an empty one"},
	{"restoring while the node is open", func(t *testing.T, c *misused) error {
		m := c.fresh(t)
		m.start(t)
		return ignore(weft.Restore(m.options, 1, newJournal(t, t.TempDir()), c.backup(t)))
	}, weft.ErrLocked, ""},
	{"a Restore that fails", func(t *testing.T, c *misused) error {
		m := c.fresh(t)
		j := newJournal(t, filepath.Join(m.options.Dir, "state"))
		j.restore = func() error { return errBroken }
		err := ignore(weft.Restore(m.options, 1, j, c.backup(t)))
		j.restore = nil
		require.NoError(t, ignore(weft.Restore(m.options, 1, j, c.backup(t))), "it can be tried again")
		return err
	}, errBroken, "the state machine's Restore"},
	{"recovering an empty directory", func(t *testing.T, c *misused) error {
		return ignore(weft.Recover(within(t), c.fresh(t).options, 1, newJournal(t, t.TempDir()), []uint64{2}))
	}, nil, "nothing survived"},
	{"looking at a directory that is not there", func(t *testing.T, c *misused) error {
		o := c.fresh(t).options
		o.Dir = filepath.Join(o.Dir, "mistyped")
		err := ignore(weft.Inspect(o, 1))
		require.ErrorContains(t, ignore(weft.Recover(within(t), o, 1, newJournal(t, t.TempDir()), []uint64{2})), "nothing survived")
		require.NoDirExists(t, o.Dir)
		return err
	}, os.ErrNotExist, "the directory is another one"},
	{"recovering without a state machine", func(t *testing.T, c *misused) error {
		return ignore(weft.Recover(within(t), c.fresh(t).options, 1, nil, []uint64{2}))
	}, weft.ErrInvalid, "is nil"},
}

// backup returns a snapshot of the cluster.
func (c *misused) backup(t *testing.T) io.Reader {
	var b bytes.Buffer
	_, err := c.all[1].group.Snapshot(within(t), &b)
	require.NoError(t, err)
	return &b
}

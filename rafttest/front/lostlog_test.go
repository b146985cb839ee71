// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package front_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weftraft/weft"
)

// A later leader knows nothing of what a node has acknowledged to an earlier one, and would take the node
// with its new, empty log.
func TestLostLogIsRememberedOverRestartsOfAllNodes(t *testing.T) {
	all := startCluster(t, 3)
	all[1].propose(t, "a line")
	for {
		all[3].read(t)
		all[3].stop(t)
		for _, name := range []string{"log", "state", "addresses"} {
			require.NoError(t, os.RemoveAll(filepath.Join(all[3].options.Dir, name)))
		}
		all[3].start(t)
		if _, err := all[3].group.Read(within(t)); err != nil {
			break // otherwise there was another leader, and the node is like a new one
		}
	}
	<-all[3].group.Done()
	require.ErrorIs(t, all[3].group.Err(), weft.ErrLogLost)
	for _, m := range all {
		m.stop(t)
	}
	all[1].start(t)
	all[2].start(t)
	all[1].propose(t, "a line of another leader")

	node, err := weft.Open(all[3].options)
	require.NoError(t, err)
	_, err = node.Group(1, newJournal(t, t.TempDir()))
	require.ErrorIs(t, err, weft.ErrLogLost)
	require.ErrorContains(t, err, "an id that was never used and an empty directory")
	require.NoError(t, node.Close(within(t)))

	// Behind a recovery the group could not be opened.
	all[1].stop(t)
	all[2].stop(t)
	_, err = all[3].recoverGroup(t, 1, 2)
	require.ErrorIs(t, err, weft.ErrLogLost)
	note := filepath.Join(all[3].options.Dir, "log-lost-1")
	require.ErrorContains(t, err, "remove the file "+note)
	require.NoError(t, os.Remove(note))
	_, err = all[3].recoverGroup(t, 1, 2)
	require.NoError(t, err)
	all[3].start(t)
	all[3].propose(t, "a line behind the recovery")
}

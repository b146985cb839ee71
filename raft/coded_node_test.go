// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package raft_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weftraft/weft/raft"
)

var _ raft.Densifier = (*raft.RawNode)(nil)

// codedNode starts a Node from what node 2 of a group with a coded entry has
// stored.
func codedNode(t *testing.T) (raft.Node, *codingNode) {
	g := newGroup(t, 3)
	g.elect(1)
	g.propose(1, payload(0, 1000))
	g.tick(3)
	require.Equal(t, 1, g.events[raft.CodingEncoded])
	stored := g.nodes[2]
	c := config(stored.storage)
	c.ID, c.Applied, c.Coding = 2, stored.index, &raft.Coding{Threshold: 64}
	node := raft.RestartNode(c)
	t.Cleanup(node.Stop)
	return node, stored
}

// A host that drives a Node prepares its log for a downgrade, and sees when that
// is done, without a restart.
func TestNodeDensifiesAndSaysWhenItIsDense(t *testing.T) {
	node, stored := codedNode(t)
	status := node.Status()
	require.NotNil(t, status.Coding)
	require.False(t, status.Coding.Plain)
	require.False(t, status.Coding.Dense)
	require.Equal(t, stored.index, status.Coding.Completed)

	node.(raft.Densifier).Densify(true)
	require.True(t, node.Status().Coding.Plain)
	require.False(t, node.Status().Coding.Dense, "the coded entry is still there")
	require.NoError(t, stored.storage.Compact(stored.index))
	require.True(t, node.Status().Coding.Dense)
	node.(raft.Densifier).Densify(false)
	require.False(t, node.Status().Coding.Plain)

	node.Stop()
	node.(raft.Densifier).Densify(true) // returns
	require.Nil(t, node.Status().Coding)
}

// Hosts that publish the status of upstream's library as JSON, as etcd does at
// /debug/vars, publish with coding whether the log is dense.
func TestStatusTextSaysHowCodingIs(t *testing.T) {
	node, _ := codedNode(t)
	node.(raft.Densifier).Densify(true)
	var shown struct {
		ID     string
		Coding map[string]any
	}
	text, err := json.Marshal(node.Status())
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, &shown))
	require.Equal(t, "2", shown.ID)
	completed := float64(node.Status().Coding.Completed)
	require.Equal(t, map[string]any{"active": false, "plain": true, "dense": false, "completed": completed, "stuckAt": 0.0}, shown.Coding)
	require.JSONEq(t, string(text), node.Status().String())
}

// Without coding there is nothing to say, and nothing to prepare.
func TestNodeWithoutCodingHasNoCodingStatus(t *testing.T) {
	node := raft.RestartNode(config(newStorage(t, 1)))
	defer node.Stop()
	node.(raft.Densifier).Densify(true)
	require.Nil(t, node.Status().Coding)
	require.NotContains(t, node.Status().String(), "coding")
}

// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package main

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A node that is no member is started with the settings of a first member, while the
// cluster runs. The node and its operator hear that the node is unknown. The node
// leads no group, and the cluster goes on undisturbed.
func TestStrayNode(t *testing.T) {
	if testing.Short() {
		t.Skip("starts processes")
	}
	// The members keep their leader, however slow the machine is.
	f := newFleet(t, 3, 4, "--tick", "20ms", "--election-ticks", "100")
	f.do("put", "k", "v")
	f.healthy() // each member knows the leader
	members := f.endpoints()
	before := f.do("status")
	f.nodes[4] = &ship{peer: freePort(t)}
	f.start(4, "--election-ticks", "10") // without --join
	eventually(t, "the stray node to say what is wrong", func() bool {
		text, err := os.ReadFile(f.nodes[4].log)
		require.NoError(t, err)
		return strings.Contains(string(text), "node 4 is not known here") &&
			strings.Contains(string(text), "begins a cluster; to join one that runs, use --join with an empty directory")
	})

	r := kvdemo(t.Context(), "", "put", "stray", "v", "--endpoints", f.sure[4], "--timeout", "2s") // ten election timeouts
	require.Equal(t, exitUnreachable, r.code)
	require.Contains(t, r.err, "check that a majority of the nodes is up, and that this one is a member")
	r = kvdemo(t.Context(), "", "put", "k", "still", "--endpoints", members)
	require.Equal(t, 0, r.code, r.err)
	r = kvdemo(t.Context(), "", "status", "--endpoints", members)
	require.Equal(t, 0, r.code, r.err)
	require.Equal(t, leadership(before), leadership(r.out), "leader and term are the same")
	f.kill(4)
	f.stop()
}

// leadership returns the columns of a status that tell who leads.
func leadership(status string) (rows []string) {
	nodes, _, _ := strings.Cut(strings.TrimSpace(status), "\n\n") // coded replication follows
	for _, line := range strings.Split(nodes, "\n") {
		rows = append(rows, strings.Join(strings.Fields(line)[1:6], " "))
	}
	return rows
}

// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package replica

import (
	"testing"

	"github.com/stretchr/testify/require"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/raft"
)

// holed is a log without its entries, which it says in the words of the contract.
type holed struct {
	Log
	lost bool
}

// Entries implements raft.Storage.
func (h *holed) Entries(lo, hi, most uint64) ([]*pb.Entry, error) {
	if h.lost {
		return nil, raft.ErrUnavailable
	}
	return h.Log.Entries(lo, hi, most)
}

// A core that is out of service has no work any more, and says so by itself: the replica must not wait for it.
func TestReplicaEndsWithItsCoreWhateverTheReason(t *testing.T) {
	c := newCluster(t, Weft)
	var log *holed
	c.tune = func(cfg *Config) {
		log = &holed{Log: cfg.Log}
		cfg.Log = log
	}
	c.mayFail = true
	c.add(1, []uint64{1})
	c.elect(1)
	log.lost = true
	c.propose(1, "x")
	c.run(1)
	require.ErrorIs(t, c.nodes[1].r.Err(), raft.ErrStorage)
}

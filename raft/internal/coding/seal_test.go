// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package coding

import (
	"testing"

	"github.com/stretchr/testify/require"
	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/ecraft"
)

// In an envelope it could be read by nobody, not even by its leader: the leader's log would be out of service for good.
func TestPayloadLongerThanAnEnvelopeSaysTravelsPlain(t *testing.T) {
	s := newFake(t).leads().sealer
	require.True(t, s.worth(pb.EntryNormal, ecraft.MaxPayload))
	require.False(t, s.worth(pb.EntryNormal, ecraft.MaxPayload+1))
}

// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package node

import (
	"io"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/weftraft/weft/cmd/kvdemo/kvpb"
	"github.com/weftraft/weft/internal/placement"
	"github.com/weftraft/weft/rawnode"
)

// The weight of a node is shown with the health of the nodes, and changes while the node runs.
func TestLeaderWeightIsShownAndChanged(t *testing.T) {
	p, err := rawnode.NewPlacement(rawnode.PlacementConfig{ID: 2, Weight: WeightSetting(0)})
	require.NoError(t, err)
	p.Heard(1, placement.Report{Figure: rawnode.Health{Sync: 3 * time.Millisecond, Stalled: true}, Weight: 40})
	a := &admin{n: &node{entrance: newEntrance(Config{ID: 2, Log: slog.New(slog.NewTextHandler(io.Discard, nil))}), placement: p}}
	resp, err := a.SetLeaderWeight(t.Context(), &kvpb.SetLeaderWeightRequest{})
	require.NoError(t, err)
	require.Len(t, resp.GetNodes(), 2)
	require.Equal(t, []uint64{2, 0, 1, 40, 3000}, []uint64{
		resp.GetNodes()[0].GetNode(), uint64(resp.GetNodes()[0].GetWeight()),
		resp.GetNodes()[1].GetNode(), uint64(resp.GetNodes()[1].GetWeight()), resp.GetNodes()[1].GetSyncUs(),
	})
	require.True(t, resp.GetNodes()[1].GetStalled())
	resp, err = a.SetLeaderWeight(t.Context(), &kvpb.SetLeaderWeightRequest{Weight: new(uint32(7))})
	require.NoError(t, err)
	require.EqualValues(t, 7, resp.GetNodes()[0].GetWeight())
	require.Equal(t, 7, p.Weight())
	for _, req := range []*kvpb.SetLeaderWeightRequest{{Weight: new(uint32(1001))}, {Weight: new(uint32(1)), Group: 3}} {
		_, err = a.SetLeaderWeight(t.Context(), req)
		require.Equal(t, codes.InvalidArgument, status.Code(err))
	}
	require.Equal(t, 7, p.Weight())
}

// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"math"
	"slices"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/weftraft/weft/cmd/kvdemo/kvpb"
	"github.com/weftraft/weft/rawnode"
)

// WeightSetting returns the setting of a weight, as package rawnode wants it: there 0 is the default, and
// less than 0 the weight 0.
func WeightSetting(weight uint64) int {
	if weight == 0 {
		return -1
	}
	return int(min(weight, math.MaxInt32))
}

// SetLeaderWeight implements kvpb.AdminServer.
func (a *admin) SetLeaderWeight(_ context.Context, req *kvpb.SetLeaderWeightRequest) (*kvpb.SetLeaderWeightResponse, error) {
	n := a.n
	if req.Weight != nil {
		if err := n.setWeight(req.GetGroup(), uint64(req.GetWeight())); err != nil {
			return nil, err
		}
	}
	resp := &kvpb.SetLeaderWeightResponse{}
	for _, seen := range n.placement.Seen() {
		resp.Nodes = append(resp.Nodes, healthOf(seen))
	}
	own := slices.IndexFunc(resp.Nodes, func(h *kvpb.NodeHealth) bool { return h.GetNode() == n.cfg.ID })
	resp.Nodes[0], resp.Nodes[own] = resp.Nodes[own], resp.Nodes[0]
	for _, g := range n.groups {
		if weight := g.host.Status().Weight; uint32(weight) != resp.Nodes[0].GetWeight() {
			resp.Groups = append(resp.Groups, &kvpb.GroupWeight{Group: g.id, Weight: uint32(weight)})
		}
	}
	return resp, nil
}

// setWeight changes the weight of this node, in one group or, with 0, in all others.
func (n *node) setWeight(group, weight uint64) error {
	if weight > rawnode.MaxLeaderWeight {
		return status.Errorf(codes.InvalidArgument, "weight: %d, want 0 to %d", weight, rawnode.MaxLeaderWeight)
	}
	set := n.placement.SetWeight
	if group != 0 {
		i := slices.IndexFunc(n.groups, ofGroup(group))
		if i < 0 {
			return status.Errorf(codes.InvalidArgument, "group: %d, want 1 to %d", group, len(n.groups))
		}
		set = n.groups[i].host.SetLeaderWeight
	}
	if err := set(WeightSetting(weight)); err != nil {
		return status.Error(codes.InvalidArgument, err.Error())
	}
	n.cfg.Log.Warn("the weight of this node as a leader was changed", "to", weight, "group", group)
	return nil
}

func ofGroup(id uint64) func(*group) bool { return func(g *group) bool { return g.id == id } }

// healthOf returns the health of a node for clients.
func healthOf(seen rawnode.NodeHealth) *kvpb.NodeHealth {
	us := func(d time.Duration) uint64 { return uint64(d / time.Microsecond) }
	h := seen.Health
	return &kvpb.NodeHealth{
		Node: seen.Node, Weight: uint32(seen.Weight), Stalled: h.Stalled, Counts: seen.Counts,
		SyncUs: us(h.Sync), TurnUs: us(h.Turn), WaitUs: us(h.Wait), SendUs: us(h.Send),
	}
}

// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/weftraft/weft/cmd/kvdemo/internal/client"
	"github.com/weftraft/weft/cmd/kvdemo/kvpb"
	"github.com/weftraft/weft/rawnode"
)

// weightResult is what a node says of a node in the output of leader-weight.
type weightResult struct {
	Endpoint string            `json:"endpoint"`
	Node     uint64            `json:"node"`
	Weight   uint32            `json:"weight"`
	Groups   map[uint64]uint32 `json:"groups,omitempty"`
	Sync     float64           `json:"sync_seconds"`
	Turn     float64           `json:"turn_seconds"`
	Wait     float64           `json:"wait_seconds"`
	Send     float64           `json:"send_seconds"`
	Stalled  bool              `json:"stalled"`
}

func newLeaderWeight() *cobra.Command {
	var f clientFlags
	var group uint64
	cmd := &cobra.Command{
		Use:   "leader-weight [WEIGHT]",
		Short: "Show or change how much rather each of the endpoints' nodes leads than others",
		Long: "leader-weight shows the weight and the health of the endpoints' nodes, or changes the weight to WEIGHT: 0 to\n" +
			"1000; 0: only if no other node can lead. A leader hands over to a node that is as fast and has a larger\n" +
			"weight. A node that starts again has the weight of serve --leader-weight.",
		Args: cobra.MaximumNArgs(1),
	}
	cmd.Flags().Uint64Var(&group, "group", 0, "the weight in one group (0: in all groups without a weight of their own)")
	return f.runs(cmd, func(ctx context.Context, c *client.Client, args []string) error {
		req := &kvpb.SetLeaderWeightRequest{Group: group}
		if len(args) > 0 {
			weight, err := strconv.ParseUint(args[0], 10, 32)
			if err != nil || weight > rawnode.MaxLeaderWeight {
				return fmt.Errorf("WEIGHT: %s, want 0 to %d; %w", args[0], rawnode.MaxLeaderWeight, errUsage)
			}
			req.Weight = new(uint32(weight))
		}
		t := f.table(cmd, "ENDPOINT", "NODE", "WEIGHT", "SYNC", "TURN", "WAIT", "SEND", "STALLED")
		return rowsOf(t, client.AdminAt(ctx, c, kvpb.AdminClient.SetLeaderWeight, req), func(endpoint string, resp *kvpb.SetLeaderWeightResponse) error {
			return weightRow(t, endpoint, resp)
		})
	})
}

// weightRow prints what a node says of itself.
func weightRow(t *table, endpoint string, resp *kvpb.SetLeaderWeightResponse) error {
	h := resp.GetNodes()[0]
	us := func(n uint64) time.Duration { return time.Duration(n) * time.Microsecond }
	r := weightResult{
		Endpoint: endpoint, Node: h.GetNode(), Weight: h.GetWeight(), Stalled: h.GetStalled(), Groups: map[uint64]uint32{},
		Sync: us(h.GetSyncUs()).Seconds(), Turn: us(h.GetTurnUs()).Seconds(), Wait: us(h.GetWaitUs()).Seconds(), Send: us(h.GetSendUs()).Seconds(),
	}
	weight := []string{strconv.FormatUint(uint64(r.Weight), 10)}
	for _, g := range resp.GetGroups() {
		r.Groups[g.GetGroup()] = g.GetWeight()
		weight = append(weight, fmt.Sprintf("group %d: %d", g.GetGroup(), g.GetWeight()))
	}
	return t.row(r, r.Endpoint, r.Node, strings.Join(weight, ", "), us(h.GetSyncUs()), us(h.GetTurnUs()), us(h.GetWaitUs()), us(h.GetSendUs()), r.Stalled)
}

// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package rawnode

import (
	"fmt"
	"time"

	"github.com/weftraft/weft/internal/placement"
	"github.com/weftraft/weft/internal/replica"
)

// Placement has leadership go where groups are served best. One Placement belongs to a node, and all hosts of the node
// share it ([ReplicaConfig].Placement). The hosts measure how long writes to the log, turns, and waits for turns
// take, and send a report of some thirty bytes, and five for each link, to each other node in each election timeout; members of
// versions without reports get none.
//
// A leader hands over to a voter that is heard from, has caught up and has reported lately, if
//
//   - things take five times as long at the leader as at the best of these voters, and 5 ms longer, for three
//     election timeouts; or
//   - the leader takes five times as long to reach a majority of the voters and hear their answers as such a voter of the
//     same weight, and 5 ms longer, for three election timeouts; or
//   - such a voter is not worse than the leader, and has a larger weight, for three election timeouts.
//
// It does not wait for the three if leadership has not moved lately, and either each of its last five round trips was so
// long, after shorter ones, or its process, to which inputs wait so long, has stood still five times within an election
// timeout.
//
// Each change of leader that a member has seen in the last 200 election timeouts doubles the three, up to six
// times, so that leadership does not flap. A voter that has led, and was as slow then, is no better.
//
// Weights are preferences. A node has one, 0 to 1000, and may have another in a group. Nodes of a preferred
// zone get a larger weight than the others; the weight 0 means that the node leads only if no other voter
// can. A voter with a smaller weight than others also campaigns later: two election timeouts after the leader's
// last word and two ticks for each of the others, at most three. [Balancer] spreads the groups over the nodes whose
// weight is the largest.
//
// The methods of a Placement may be called from several goroutines. Own returns the node's [Health], and Seen
// what is known of all nodes. SetWeight changes the node's weight: 0 means 100, and less than 0 the weight 0.
type Placement = placement.Node

// Bounds of weights.
const (
	// DefaultLeaderWeight is the weight of a node without a setting.
	DefaultLeaderWeight = placement.DefaultWeight
	// MaxLeaderWeight is the largest weight.
	MaxLeaderWeight = placement.MaxWeight
)

// Health is how long things take at a node.
type Health = placement.Figure

// NodeHealth is the health and the weight of a node, as another node sees it.
type NodeHealth = placement.Seen

// PlacementConfig configures a [Placement]. ID must be set.
type PlacementConfig struct {
	// ID is this node's.
	ID uint64
	// Timeout is the election timeout of the node's groups; 0 means 1 s.
	Timeout time.Duration
	// Transport, unless nil, is asked for the age of waiting messages, by the method
	// Standing(to uint64) time.Duration, if it has that. It must not wait.
	Transport Transport
	// Weight is the node's weight as a leader, 1 to 1000; 0 means 100, and less than 0 the weight 0: the node
	// leads only if no other voter can.
	Weight int
}

// NewPlacement returns the Placement of a node, or an error that names every mistake.
func NewPlacement(cfg PlacementConfig) (*Placement, error) {
	start := time.Now()
	c := placement.NodeConfig{ID: cfg.ID, Timeout: cfg.Timeout, Weight: cfg.Weight, Clock: func() time.Duration { return time.Since(start) }}
	if c.Timeout == 0 {
		c.Timeout = time.Second
	}
	if t, ok := cfg.Transport.(interface {
		Standing(to uint64) time.Duration
	}); ok {
		c.Queue = t.Standing
	}
	p, err := placement.NewNode(c)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	return p, nil
}

// SetLeaderWeight changes this node's weight as a leader of the group, until the host stops: 0 means the
// weight of the node, and less than 0 the weight 0. The error is [ErrInvalid], also for a host without a Placement,
// or that of a host that has ended.
func (h *Host) SetLeaderWeight(weight int) error {
	if err := placement.CheckWeight("the weight", weight); err != nil {
		return fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	if h.cfg.Replica.Placement == nil {
		return fmt.Errorf("%w: ReplicaConfig.Placement is nil, want the node's, for a weight", ErrInvalid)
	}
	if !h.inbox.post(func(r *replica.Replica) { r.SetLeaderWeight(weight) }) {
		return h.gone()
	}
	return nil
}

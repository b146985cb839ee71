// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package rawnode

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"time"

	"google.golang.org/protobuf/proto"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/internal/placement"
	"github.com/weftraft/weft/raft"
)

// placer looks at the groups of one node at intervals, and names the groups led here that another
// node should lead. A placer is a plain value without a clock.
//
// A group does not move while the group recovers (a voter is silent, lags, or gets a snapshot),
// while the members of the group change, and for some looks after a move or a change of members.
// Nothing moves while a group is about to get a leader. A group that has none for long, as a majority is lost or this
// node is no member, does not count.
type placer struct {
	options placement.Options
	weight  func(Status) uint64
	looks   int // see BalancerConfig.Settle; 0 means 3

	seen map[uint64]*placedGroup
}

// placedGroup is the memory of a placer about a group.
type placedGroup struct {
	leader uint64
	conf   *pb.ConfState
	holds  int // looks for which the group stays
}

// plan takes the status of each group of a node and returns the moves to make.
func (p *placer) plan(statuses []Status) []placement.Move {
	if p.seen == nil {
		p.seen = map[uint64]*placedGroup{}
	}
	groups := make([]placement.Group, len(statuses))
	for i, s := range statuses {
		groups[i] = p.group(s)
	}
	if len(p.seen) > len(statuses) { // some groups have left this node
		maps.DeleteFunc(p.seen, func(id uint64, _ *placedGroup) bool {
			return !slices.ContainsFunc(statuses, func(s Status) bool { return s.Group == id })
		})
	}
	p.weigh(statuses, groups)
	groups = slices.DeleteFunc(groups, func(g placement.Group) bool { return g.Leader == raft.None && p.seen[g.ID].holds == 0 })
	moves := placement.Plan(groups, p.options)
	for _, m := range moves {
		p.seen[m.Group].holds = p.settle()
	}
	return moves
}

// leaderless is how many times as long as for other changes all groups wait for one without a leader.
const leaderless = 4

func (p *placer) settle() int {
	if p.looks > 0 {
		return p.looks
	}
	return 3
}

// group returns a group as the planner sees it.
func (p *placer) group(s Status) placement.Group {
	g := placement.Group{ID: s.Group, Leader: s.Lead, Candidates: s.Members.GetVoters()}
	was := p.seen[s.Group]
	if was == nil || was.leader != s.Lead || !proto.Equal(was.conf, s.Members) {
		was = &placedGroup{leader: s.Lead, conf: s.Members, holds: p.settle()}
		if s.Lead == raft.None {
			was.holds *= leaderless
		}
		p.seen[s.Group] = was
	}
	was.holds = max(was.holds-1, 0)
	if s.Lead != s.ID {
		g.Hold = true // its leader's business
		return g
	}
	g.Hold = was.holds > 0 || s.Stalled != nil || len(s.Members.GetVotersOutgoing())+len(s.Members.GetLearnersNext()) > 0
	for _, id := range g.Candidates {
		if id != s.ID && !caughtUpMember(s, id) {
			g.Hold = true
		}
	}
	g.Candidates = equals(s)
	return g
}

// equals returns the voters that are as good as the leader, the leader among them: a group moves to spread
// the load only among equals. What makes a member worse, or better, is the leader's own business: see Placement.
func equals(s Status) []uint64 {
	return slices.DeleteFunc(slices.Clone(s.Members.GetVoters()), func(id uint64) bool {
		p := s.Progress[id]
		return id != s.ID && (p.Worse || p.Weight != s.Weight)
	})
}

// caughtUpMember reports whether a member could lead as well as the leader.
func caughtUpMember(s Status, id uint64) bool {
	const lag = 1000 // entries under way, under load
	p, ok := s.Progress[id]
	return ok && p.RecentActive && !p.LogLost && p.State == "StateReplicate" && p.Match+lag >= s.LastIndex
}

// weigh fills in the weights.
func (p *placer) weigh(statuses []Status, groups []placement.Group) {
	if p.weight == nil {
		return
	}
	total, known := uint64(0), uint64(0)
	for i, s := range statuses {
		if s.Lead == s.ID {
			groups[i].Weight = p.weight(s)
			total += groups[i].Weight
			known++
		}
	}
	for i, s := range statuses {
		if s.Lead != s.ID && known > 0 {
			groups[i].Weight = total / known
		}
	}
}

// BalancerConfig configures a [Balancer].
type BalancerConfig struct {
	// Hosts returns the hosts of this node, one for each group.
	Hosts func() []*Host
	// Hysteresis is a percentage of the average load of a node. A group moves to another node only
	// if the load of this node exceeds the other's by that much beyond the effect of the move, so
	// that small changes of load move nothing. 0 means that any gain is worth a move; at most 1000.
	Hysteresis int
	// MaxMoves bounds the groups moved after each look; 0 means 1.
	MaxMoves int
	// Weight, unless nil, returns the load of a group that this node leads. The load of a group led
	// elsewhere is unknown, and counts as the average of the known loads. With nil, each group
	// weighs the same.
	Weight func(Status) uint64
	// Settle is the number of looks for which a group stays after a move or a change of its
	// members; 0 means 3.
	Settle int
	// Interval is the time between two looks; 0 means 5 s.
	Interval time.Duration
	// Logger is told of moves; nil means silence.
	Logger *slog.Logger
}

// Balancer spreads the leaders of several groups over their nodes. Each node runs a Balancer of its
// own, which hands leadership to other nodes while its node leads more than its share.
type Balancer struct {
	cfg    BalancerConfig
	placer placer
}

// NewBalancer makes a balancer. An error names every mistake.
func NewBalancer(cfg BalancerConfig) (*Balancer, error) {
	b := &Balancer{placer: placer{
		options: placement.Options{Hysteresis: cfg.Hysteresis, MaxMoves: cfg.MaxMoves},
		weight:  cfg.Weight, looks: cfg.Settle,
	}}
	var errs []error
	if err := b.placer.options.Validate(); err != nil {
		errs = append(errs, fmt.Errorf("%w: %w", ErrInvalid, err))
	}
	if cfg.Settle < 0 {
		errs = append(errs, fmt.Errorf("%w: Settle is %d, want 0 or more", ErrInvalid, cfg.Settle))
	}
	if cfg.Hosts == nil {
		errs = append(errs, fmt.Errorf("%w: Hosts is nil, want the hosts of this node", ErrInvalid))
	}
	if cfg.Interval < 0 {
		errs = append(errs, fmt.Errorf("%w: Interval is %v, want 0 or more", ErrInvalid, cfg.Interval))
	}
	if cfg.Interval == 0 {
		cfg.Interval = 5 * time.Second
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	b.cfg = cfg
	return b, errors.Join(errs...)
}

// Run looks and moves until ctx ends.
func (b *Balancer) Run(ctx context.Context) {
	ticker := time.NewTicker(b.cfg.Interval)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			b.round(ctx)
		case <-ctx.Done():
			return
		}
	}
}

// round looks once.
func (b *Balancer) round(ctx context.Context) {
	var hosts []*Host
	var statuses []Status
	for _, h := range b.cfg.Hosts() {
		if h.Err() == nil { // else the status is of a time when the group was in service here
			hosts, statuses = append(hosts, h), append(statuses, h.Status().Status)
		}
	}
	for _, m := range b.placer.plan(statuses) {
		i := slices.IndexFunc(statuses, func(s Status) bool { return s.Group == m.Group })
		limited, cancel := context.WithTimeout(ctx, b.cfg.Interval)
		err := hosts[i].TransferLeader(limited, m.To)
		cancel()
		if err != nil {
			b.cfg.Logger.Warn("group not moved", "group", m.Group, "to", m.To, "error", err)
		} else {
			b.cfg.Logger.Info("group moved, to spread load", "group", m.Group, "from", m.From, "to", m.To)
		}
	}
}

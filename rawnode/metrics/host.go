// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"errors"
	"slices"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weftraft/weft/leases"
	"github.com/weftraft/weft/raft"
	"github.com/weftraft/weft/rawnode"
	"github.com/weftraft/weft/storage"
)

// collectHost sends the metrics of a group at this node.
func collectHost(out chan<- prometheus.Metric, s *rawnode.HostStatus) {
	group := strconv.FormatUint(s.Group, 10)
	all.collect(out, "group", groupGauges{
		Leader: s.Role == raft.StateLeader, HasLeader: s.Lead != raft.None, Stalled: s.Stalled != nil, Late: errors.Is(s.Stalled, storage.ErrLate), Differs: s.Differs != nil,
		Voters: len(s.Members.GetVoters()), Learners: len(s.Members.GetLearners()),
		LostLogs: lostLogs(s.Progress), Unaddressed: len(s.Unaddressed), Misfits: len(s.Settings),
	}, group)
	all.collect(out, "host", *s, group)
	for name, stage := range map[string]rawnode.StageStats{
		"resolve": s.Resolve, "step": s.Step, "append": s.Append, "apply": s.Apply, "send": s.Send,
	} {
		all.collect(out, "stage", stage, group, name)
	}
	for id, p := range s.Progress {
		all.one(out, "member.Lag", float64(s.LastIndex-min(p.Match, s.LastIndex)), group, strconv.FormatUint(id, 10))
		all.one(out, "member.Active", number(p.RecentActive), group, strconv.FormatUint(id, 10))
	}
	collectCoding(out, group, s.Coding)
	collectLeases(out, group, s.Leases)
}

func number(yes bool) float64 {
	if yes {
		return 1
	}
	return 0
}

// groupGauges are what the numbers of a host's status do not say.
type groupGauges struct {
	Leader, HasLeader, Stalled, Late        bool
	Differs                                 bool
	Voters, Learners, LostLogs, Unaddressed int
	Misfits                                 int
}

func lostLogs(members map[uint64]rawnode.MemberProgress) (n int) {
	for _, p := range members {
		if p.LogLost {
			n++
		}
	}
	return n
}

// codingGauges are the numbers of coded replication that tell how it is.
type codingGauges struct {
	Active, Plain, Dense, IsStuck bool
	CompletedIndex, ReleasedIndex uint64
	MemoryBytes                   int
	// Entries are those that are not applied.
	Entries int
}

// collectCoding sends the metrics of a group that codes.
func collectCoding(out chan<- prometheus.Metric, group string, s *rawnode.CodingState) {
	if s == nil {
		return
	}
	all.collect(out, "coding", codingGauges{
		Active: s.Active, Plain: s.Plain, Dense: s.Dense, IsStuck: s.StuckAt != 0,
		CompletedIndex: s.Completed, ReleasedIndex: s.Released, MemoryBytes: s.Memory, Entries: len(s.Entries),
	}, group)
	all.collect(out, "coding", s.Counters, group)
	for level, count := range s.Counters.Levels {
		all.one(out, "coding.Levels", float64(count), group, strconv.Itoa(level))
	}
}

// leaseGauges are the numbers of roster leases that tell how they are.
type leaseGauges struct {
	Stable, Retired, Aside              bool
	Roster                              uint64
	Responders, Held, Promises, Waiting int
	Quarantine                          time.Duration
	Reads                               raft.LeaseReads
	Counts                              leases.Counts
}

// collectLeases sends the metrics of a group that has leases.
func collectLeases(out chan<- prometheus.Metric, group string, s *raft.LeaseStatus) {
	if s == nil {
		return
	}
	g := leaseGauges{
		Stable: s.Stable, Retired: s.Retired, Aside: s.Aside, Held: len(s.Leases), Promises: len(s.Promises),
		Waiting: s.Waiting, Quarantine: s.Quarantine, Reads: s.Reads, Counts: s.Counts,
	}
	if s.Roster != nil {
		var named []leases.NodeID
		for _, a := range s.Roster.Spans {
			for _, x := range a.Responders {
				named = append(named, x.Node)
			}
		}
		slices.Sort(named)
		g.Roster, g.Responders = uint64(s.Roster.ID.Seq), len(slices.Compact(named))
	}
	all.collect(out, "leases", g, group)
}

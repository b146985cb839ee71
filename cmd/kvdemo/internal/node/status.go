// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package node

import (
	"maps"
	"os"
	"slices"
	"time"

	"github.com/weftraft/weft/cmd/kvdemo/kvpb"
	"github.com/weftraft/weft/raft"
	"github.com/weftraft/weft/rawnode"
	"github.com/weftraft/weft/rawnode/transport"
)

// status describes the node as it is now.
func (n *node) status() *kvpb.StatusResponse {
	stats, net := n.weft.Engine().Stats(), n.weft.Transport().Stats()
	resp := &kvpb.StatusResponse{
		Id:         n.cfg.ID,
		Cluster:    n.cfg.Cluster,
		Core:       n.cfg.Core,
		Links:      links(net),
		UptimeMs:   uint64(time.Since(n.started) / time.Millisecond),
		LogBytes:   uint64(stats.SegmentBytes),
		StateBytes: n.db.DiskBytes(),
		Pid:        uint64(os.Getpid()),

		DroppedMessages:   net.Dropped,
		LogWrittenBytes:   stats.WrittenBytes,
		StateWrittenBytes: n.db.WrittenBytes(),
	}
	if err := n.stalled(); err != nil {
		resp.Stalled = err.Error()
	}
	for _, g := range n.groups {
		s := g.host.Status()
		resp.Groups = append(resp.Groups, g.status(s))
		resp.AppendedBytes += s.Counters.AppendBytesOut
	}
	first := resp.GetGroups()[0]
	resp.Role, resp.Leader, resp.Term = first.GetRole(), first.GetLeader(), first.GetTerm()
	resp.Commit, resp.Applied, resp.Durable = first.GetCommit(), first.GetApplied(), first.GetDurable()
	resp.FirstIndex, resp.LastIndex = first.GetFirstIndex(), first.GetLastIndex()
	addresses := n.weft.Addresses()
	for _, id := range n.groups[0].host.Status().Members.GetVoters() {
		resp.Members = append(resp.Members, &kvpb.StatusResponse_Member{Id: id, Address: addresses[id]})
	}
	return resp
}

// status describes the group at this node.
func (g *group) status(s rawnode.HostStatus) *kvpb.StatusResponse_Group {
	r := &kvpb.StatusResponse_Group{
		Id: g.id, Role: role(s.Role), Leader: s.Lead, Term: s.Term,
		Commit: s.Commit, Applied: g.store.Applied(), LastIndex: s.LastIndex,
		Coding: g.coding(s.Coding), Leases: leaseStatus(s.Leases),
		Reads: &kvpb.StatusResponse_Reads{
			Roster: s.Counters.ReadsByRoster, Lease: s.Counters.ReadsByLease, Leader: s.Counters.ReadsByLeader,
			Quorum: s.Counters.ReadsByQuorum, Stale: s.Counters.ReadsStale,
		},
	}
	if slices.Contains(s.Members.GetLearners(), s.ID) {
		r.Role = "learner"
	}
	r.Durable, _ = g.store.Durable()
	r.FirstIndex, _ = g.log.FirstIndex()
	return r
}

// stalled returns why something that this node has to write waits for room on
// the disk, or nil.
func (n *node) stalled() error {
	for _, g := range n.groups {
		if err := g.host.Status().Stalled; err != nil {
			return err
		}
	}
	return n.db.Stalled() // which hosts look at once a tick
}

// links adds up the traffic with each peer, ascending by id.
func links(s transport.Stats) []*kvpb.StatusResponse_Link {
	var links []*kvpb.StatusResponse_Link
	for _, id := range slices.Sorted(maps.Keys(s.Peers)) {
		l := &kvpb.StatusResponse_Link{Peer: id}
		for _, class := range s.Peers[id] {
			l.SentBytes += class.SentBytes
			l.ReceivedBytes += class.ReceivedBytes
		}
		links = append(links, l)
	}
	return links
}

// role returns the name of a role, as status shows it.
func role(s raft.StateType) string {
	switch s {
	case raft.StateLeader:
		return "leader"
	case raft.StateCandidate:
		return "candidate"
	case raft.StatePreCandidate:
		return "pre-candidate"
	}
	return "follower"
}

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
	"github.com/weftraft/weft/rawnode/transport"
)

// status describes the node as it is now.
func (n *node) status() *kvpb.StatusResponse {
	g := n.groups[0]
	s := g.host.Status()
	stats, net := n.engine.Stats(), n.peers.Stats()
	resp := &kvpb.StatusResponse{
		Id:         n.cfg.ID,
		Cluster:    n.cfg.Cluster,
		Core:       n.cfg.Core,
		Role:       role(s.Role),
		Leader:     s.Lead,
		Term:       s.Term,
		Commit:     s.Commit,
		Applied:    g.store.Applied(),
		LastIndex:  s.LastIndex,
		Links:      links(net),
		UptimeMs:   uint64(time.Since(n.started) / time.Millisecond),
		LogBytes:   uint64(stats.SegmentBytes),
		StateBytes: n.db.DiskBytes(),
		Pid:        uint64(os.Getpid()),

		DroppedMessages: net.Dropped,
		LogWrittenBytes: stats.WrittenBytes,
	}
	if s.Stalled != nil {
		resp.Stalled = s.Stalled.Error()
	}
	// What cannot be read is left at zero: a status must not fail for it.
	resp.Durable, _ = g.store.Durable()
	resp.FirstIndex, _ = g.log.FirstIndex()
	for _, id := range s.Members.GetVoters() {
		resp.Members = append(resp.Members, &kvpb.StatusResponse_Member{Id: id, Address: n.cfg.Peers[id]})
	}
	return resp
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

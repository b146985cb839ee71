// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package raft

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	pb "go.etcd.io/raft/v3/raftpb"
	"go.etcd.io/raft/v3/tracker"

	"github.com/weftraft/weft/leases"
)

// BasicStatus is a node's view of itself.
type BasicStatus struct {
	ID uint64

	*pb.HardState
	SoftState

	// Applied is the last index reported as applied by the host.
	Applied uint64

	// LeadTransferee is the member to which this leader is handing over, or [None].
	LeadTransferee uint64
}

// Status is a node's view of itself and its group. The host owns it.
type Status struct {
	BasicStatus
	// Config is the configuration in force here.
	Config tracker.Config
	// Progress is a leader's knowledge of each member; nil at other nodes.
	Progress map[uint64]tracker.Progress
	// Coding is the node's view of coded replication; nil without Config.Coding.
	Coding *CodingStatus
	// Leases is the node's view of its leases; nil without Config.Leases.
	Leases *LeaseStatus
}

// BasicStatus returns the status without configuration and progress, which are
// costly to copy; see also WithProgress.
func (rn *RawNode) BasicStatus() BasicStatus {
	r := rn.raft
	s := BasicStatus{
		ID:        r.id,
		HardState: r.hardState().proto(),
		SoftState: r.softState(),
		Applied:   r.log.applied,
	}
	if l := r.leading(); l != nil {
		s.LeadTransferee = l.transferee
	}
	return s
}

// Status returns a copy of the whole status.
func (rn *RawNode) Status() Status {
	r := rn.raft
	cfg := r.members.Config()
	s := Status{BasicStatus: rn.BasicStatus(), Config: cfg.Clone()}
	if r.leading() != nil {
		s.Progress = make(map[uint64]tracker.Progress, len(r.members.All()))
		for id, pr := range r.members.All() {
			p := *pr
			p.Match = r.extension.ShownMatch(id, pr.Match)
			p.Inflights = pr.Inflights.Clone()
			s.Progress[id] = p
		}
	}
	if r.coding() != nil {
		s.Coding = new(rn.CodingStatus())
	}
	if r.leases() != nil {
		s.Leases = new(rn.LeaseStatus())
	}
	return s
}

// MarshalJSON returns the status as a JSON object; ids are in hexadecimal. Of Coding
// and Leases the object has the node's own part.
func (s Status) MarshalJSON() ([]byte, error) {
	members := make([]string, 0, len(s.Progress))
	for _, id := range slices.Sorted(maps.Keys(s.Progress)) {
		pr := s.Progress[id]
		members = append(members, fmt.Sprintf(`"%x":{"match":%d,"next":%d,"state":%q}`, id, pr.Match, pr.Next, pr.State))
	}
	coding := ""
	if c := s.Coding; c != nil {
		coding = fmt.Sprintf(`,"coding":{"active":%t,"plain":%t,"dense":%t,"completed":%d,"stuckAt":%d}`, c.Active, c.Plain, c.Dense, c.Completed, c.StuckAt)
	}
	leased := ""
	if l := s.Leases; l != nil {
		leased = fmt.Sprintf(`,"leases":{"stable":%t,"retired":%t,"responders":[%s],"waiting":%d,"reads":{"local":%d,"leader":%d,"waited":%d,"held":%d,"redirected":%d}}`,
			l.Stable, l.Retired, strings.Join(quotedResponders(l.Roster), ","), l.Waiting,
			l.Reads.Local, l.Reads.Leader, l.Reads.Waited, l.Reads.Held, l.Reads.Redirected)
	}
	return fmt.Appendf(nil, `{"id":"%x","term":%d,"vote":"%x","commit":%d,"lead":"%x","raftState":%q,"applied":%d,"progress":{%s},"leadtransferee":"%x"%s%s}`,
		s.ID, s.GetTerm(), s.GetVote(), s.GetCommit(), s.Lead, s.RaftState, s.Applied, strings.Join(members, ","), s.LeadTransferee, coding, leased), nil
}

// quotedResponders returns the ids of the nodes that a roster names for any key, in
// hexadecimal and quotes; none for nil.
func quotedResponders(r *leases.Roster) (ids []string) {
	if r == nil {
		return nil
	}
	for _, a := range r.Spans {
		for _, x := range a.Responders {
			if id := fmt.Sprintf(`"%x"`, uint64(x.Node)); !slices.Contains(ids, id) {
				ids = append(ids, id)
			}
		}
	}
	return ids
}

// String returns the status as JSON.
func (s Status) String() string {
	b, _ := s.MarshalJSON() // formatting does not fail
	return string(b)
}

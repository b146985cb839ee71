// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"context"
	"fmt"
	"unicode/utf8"
)

// Bounds of a report. A report of another node that exceeds one is refused.
const (
	MaxMembers  = 64      // members, links, and cells of an entry
	MaxEntries  = 24      // coded entries in a report
	MaxSpans    = 64      // spans of a roster
	maxText     = 300     // bytes of a text
	maxReport   = 1 << 20 // bytes of a report in JSON
	shownGroups = 1024
)

// Ask says which report is wanted.
type Ask struct {
	Group uint64
	// UpTo is the index of the newest entry in Entries. All nodes are asked for the same
	// entries, so that an entry absent from a report is absent from the log. 0: none.
	UpTo uint64
}

// Source is where reports of one node come from.
type Source struct {
	ID   uint64
	Read func(ctx context.Context, ask Ask) (*Node, error)
}

// Node is a node's report of itself, in one group. Counters count from the start of the
// process.
type Node struct {
	ID       uint64 `json:"id"`
	Cluster  uint64 `json:"cluster"`
	Core     string `json:"core"`
	PID      int    `json:"pid"` // tells one process of a node from the next
	UptimeMs int64  `json:"uptimeMs"`
	Group    uint64 `json:"group"`
	Groups   int    `json:"groups"`
	Role     string `json:"role"` // leader, follower, learner, candidate or pre-candidate; Gateway
	Leader   uint64 `json:"leader"`
	Term     uint64 `json:"term"`
	Commit   uint64 `json:"commit"`
	Applied  uint64 `json:"applied"`
	First    uint64 `json:"first"` // of the log
	Last     uint64 `json:"last"`
	Stalled  string `json:"stalled,omitempty"` // why nothing can be written
	Weight   int    `json:"weight"`            // how much rather the node leads the group than others
	SyncUs   uint64 `json:"syncUs"`            // how long the node's log takes to sync; 0: not known

	// The members, as the node has applied changes of them.
	Voters    []uint64          `json:"voters"`
	Learners  []uint64          `json:"learners,omitempty"`
	Addresses map[uint64]string `json:"addresses,omitempty"` // for peers
	LostLogs  []uint64          `json:"lostLogs,omitempty"`  // known to a leader

	// Parts with types of their own; nil if the node lacks the part.
	Links   []Link  `json:"links"`
	Leases  *Leases `json:"leases,omitempty"`
	Coding  *Coding `json:"coding,omitempty"`
	Entries []Entry `json:"entries,omitempty"` // coded entries up to Ask.UpTo, newest first

	// Counters: calls of clients by latency, snapshots, and times without room to write.
	Served Served `json:"served"`
	Writes Counts `json:"writes"` // latencies
	Reads  Counts `json:"reads"`
	Sent   uint64 `json:"snapshotsSent"`
	Taken  uint64 `json:"snapshotsInstalled"`
	Failed uint64 `json:"snapshotsFailed"`
	Stalls uint64 `json:"stalls"`
}

// Gateway is the role of a gateway: a process without a log, which shows what its home has applied.
const Gateway = "gateway"

// Link is the traffic of a node with a peer.
type Link struct {
	Peer      uint64 `json:"peer"`
	Sent      uint64 `json:"sent"` // bytes on the wire
	Connected bool   `json:"connected"`
	Queued    int    `json:"queued"` // bytes that wait to be sent, now
	Shape     *Shape `json:"shape,omitempty"`
}

// Shape is what slows a link down.
type Shape struct {
	BytesPerSecond int `json:"bytesPerSecond"` // 0: no bound
	DelayMs        int `json:"delayMs"`
}

// Leases are the roster leases of a node.
type Leases struct {
	Term    uint64 `json:"term"`
	Roster  uint64 `json:"roster"`
	Stable  bool   `json:"stable"` // the node answers reads of all keys by itself
	Retired bool   `json:"retired"`
	Named   []Span `json:"named,omitempty"`
}

// Span is a range of keys and the nodes that answer reads of the keys. Keys are quoted if
// they are no plain text.
type Span struct {
	From  string   `json:"from"`
	To    string   `json:"to"`
	Nodes []uint64 `json:"nodes"`
}

// Served counts reads by what they rest on.
type Served struct {
	Roster uint64 `json:"roster"`
	Lease  uint64 `json:"lease"`
	Leader uint64 `json:"leader"`
	Quorum uint64 `json:"quorum"`
	Stale  uint64 `json:"stale"`
}

// Coding is the part of a node in coded replication.
type Coding struct {
	Policy    string `json:"policy"` // by which the node codes as a leader
	Active    bool   `json:"active"` // a leader that codes what is new
	Completed uint64 `json:"completed"`
	StuckAt   uint64 `json:"stuckAt,omitempty"` // an entry that nobody can complete
	Delayed   uint64 `json:"delayed"`           // entries that waited for their payload
	DelayUs   uint64 `json:"delayUs"`           // and for how long, summed
	Pushed    uint64 `json:"pushed"`            // bytes of units sent to other followers
	Joined    uint64 `json:"joined"`            // bytes of payloads put together from units
	Memory    int    `json:"memory"`            // bytes of units and payloads, now
}

// Entry is a coded entry in the log of a node.
type Entry struct {
	Index   uint64 `json:"index"`
	Term    uint64 `json:"term"`
	Bytes   int    `json:"bytes"` // of the payload
	D       int    `json:"d"`     // units that restore the payload
	Encoder uint64 `json:"encoder"`
	Own     int    `json:"own"`     // units in the log of the node; D: the whole payload
	Missing int    `json:"missing"` // units that the node lacks to restore the payload
}

// check returns an error that names a field with a value that a report of another node must not have.
func (n *Node) check(id uint64, ask Ask) error {
	bounds := []struct {
		name      string
		got, most int
	}{
		{"voters", len(n.Voters), MaxMembers}, {"learners", len(n.Learners), MaxMembers}, {"addresses", len(n.Addresses), MaxMembers},
		{"lostLogs", len(n.LostLogs), MaxMembers}, {"links", len(n.Links), MaxMembers}, {"entries", len(n.Entries), MaxEntries},
		{"groups", n.Groups, shownGroups}, {"role", len(n.Role), maxText}, {"core", len(n.Core), maxText}, {"stalled", len(n.Stalled), maxText},
	}
	if n.Leases != nil {
		bounds = append(bounds, struct {
			name      string
			got, most int
		}{"leases.named", len(n.Leases.Named), MaxSpans})
		for _, s := range n.Leases.Named {
			if len(s.Nodes) > MaxMembers || len(s.From) > maxText || len(s.To) > maxText {
				return fmt.Errorf("leases.named: a span of %d nodes and %d bytes, want at most %d and %d", len(s.Nodes), len(s.From)+len(s.To), MaxMembers, 2*maxText)
			}
		}
	}
	if n.ID != id || n.Group != ask.Group {
		return fmt.Errorf("report of node %d, group %d, want node %d, group %d: look whether --http-peers has the right addresses", n.ID, n.Group, id, ask.Group)
	}
	for _, b := range bounds {
		if b.got < 0 || b.got > b.most {
			return fmt.Errorf("%s: %d, want at most %d", b.name, b.got, b.most)
		}
	}
	for _, e := range n.Entries {
		if e.D < 1 || e.D > 64 || e.Own < 0 || e.Own > e.D || e.Missing < 0 || e.Missing > e.D || e.Bytes < 0 {
			return fmt.Errorf("entry %d: D %d, %d own, %d missing, %d bytes: want D 1 to 64, and neither units nor bytes below 0 nor units above D", e.Index, e.D, e.Own, e.Missing, e.Bytes)
		}
	}
	return nil
}

// Text returns at most maxText bytes of a text, for a report.
func Text(s string) string {
	if len(s) <= maxText {
		return s
	}
	cut := maxText - len("…")
	for cut > 0 && !utf8.RuneStart(s[cut]) {
		cut--
	}
	return s[:cut] + "…"
}

// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package leasing

import (
	"slices"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/leases"
)

// A change of the configuration is in force when the host has called ApplyConfChange. A
// host should do so before it reports the entry as applied, and etcd's leaders may do so
// after. A leader that went by the report would name responders once more under the
// configuration of before. The roster would have to be superseded by a majority of voters
// of whom one is gone, and of the two voters of a group none may go: no write would be
// committed again. So leases take the log as applied no further than to before a change
// that is not in force.
//
// A host may also refuse a change, and then never calls ApplyConfChange. After
// refusedAfter election timeouts without the call, a change counts as refused.
const refusedAfter = 10

// Loaded hears of entries that a node found in its log when it started.
func (x *Leases) Loaded(ents []*pb.Entry) {
	for _, e := range ents {
		if e.GetType() != pb.EntryNormal {
			x.changes = append(x.changes, e.GetIndex())
		}
	}
}

// Switched hears that another configuration is in force: that after the first change, or,
// in a bootstrap, that of the first members.
func (x *Leases) Switched() {
	if len(x.changes) > 0 && x.changes[0] <= x.log.Committed() {
		x.changes, x.refused = x.changes[1:], 0
	}
	x.configured()
	x.settle(x.now())
}

// Applied hears up to where the host has applied the log.
func (x *Leases) Applied(index uint64) {
	x.applied = index
	x.settle(x.now())
}

// settle tells the node up to where the log is applied and its changes are in force.
func (x *Leases) settle(now leases.Instant) {
	to := x.applied
	if len(x.changes) > 0 && x.changes[0] <= to {
		switch {
		case x.refused == 0:
			x.refused = now + refusedAfter*leases.Instant(x.cfg.Leases.ElectionTimeout)
			fallthrough
		case now < x.refused:
			to = x.changes[0] - 1
		default:
			x.changes = slices.DeleteFunc(x.changes, func(i uint64) bool { return i <= to })
			x.refused = 0
		}
	}
	if to != x.settled {
		x.settled = to
		x.node.Applied(leases.Index(to))
	}
}

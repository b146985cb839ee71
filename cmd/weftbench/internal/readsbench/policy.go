// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package readsbench

import "github.com/weftraft/weft/raft"

// Policy is a way to serve reads.
type Policy struct {
	Name, About string
	// Safe says that reads are linearizable if clocks keep their bounds.
	Safe bool
	// Ours says that the policy is Weft's own, without a driver.
	Ours bool

	// leases, notes and responders are settings of the core.
	leases, notes, responders bool
	// read handles a read that has arrived at a node.
	read func(r *replica, rn *raft.RawNode, o *op)
	// onCommit, unless nil, is called when the commit index of a node moves.
	onCommit func(r *replica, from, to uint64)
}

// policies returns the ways to serve reads.
func policies() []*Policy {
	return []*Policy{
		{
			Name: "ReadIndex", Safe: true, read: readByCore,
			About: "Raft's read index: the node asks the leader, which asks a majority whether it still leads",
		},
		{
			Name: "leader lease", Safe: true, leases: true, read: readByCore,
			About: "the node asks the leader, which answers by its lease (Weft's leases, with no responders)",
		},
		{
			Name: "quorum read", Safe: true, read: readByQuorum,
			About: "PQR: the node asks a majority for the last write of the key in their logs, and waits until it has applied it",
		},
		{
			Name: "Quorum Leases", Safe: true, leases: true, responders: true, read: readByQuorumLease(false), onCommit: grantAgain,
			About: "responders answer unless a write of the key is under way; then the leader does, until a majority has granted again",
		},
		{
			Name: "Quorum Leases, passive", Safe: true, leases: true, responders: true, read: readByQuorumLease(true),
			About: "the same, but the lease counts again as soon as the responder knows that the write is committed",
		},
		{
			Name: "Bodega, published", leases: true, notes: true, responders: true, read: readAsPublished,
			About: "responders hold reads until a majority is known to have the write; the leader answers with what it has committed (stale reads are possible)",
		},
		{
			Name: "roster", Safe: true, Ours: true, leases: true, responders: true, read: readByCore,
			About: "Weft's roster leases: responders answer, and hold reads until the write is committed",
		},
		{
			Name: "roster, notes", Safe: true, Ours: true, leases: true, notes: true, responders: true, read: readByCore,
			About: "the same with early accept notes (Config.Leases.Notes)",
		},
	}
}

// policy returns the policy with a name.
func policy(name string) *Policy {
	for _, p := range policies() {
		if p.Name == name {
			return p
		}
	}
	return nil
}

// readByCore answers a read at the index given by the core.
func readByCore(r *replica, rn *raft.RawNode, o *op) {
	r.ask(rn, o.key, func(index uint64) { r.answerAt(index, o) })
}

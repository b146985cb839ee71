// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package leases

// StandAside tells that this node's clock is not fit for leases, or is fit again. A node
// that stands aside answers no read by a lease, grants nothing and asks for nothing; it
// goes on as a member of Raft.
//
// The clock may have been unfit for a while before that was found. The node gives its leases
// back, and holds what it has promised for longer than the clock says: it begins a
// quarantine as after a start, twice as long, in which a clock that runs up to twice as
// fast as real time still measures a whole one. No clock is trusted with what lies between
// the beginning of the fault and its discovery; see DriftPPM.
func (n *Node) StandAside(now Instant, yes bool) {
	now = n.advance(now)
	if yes && !n.aside {
		n.restart.until = max(n.restart.until, now.after(2*n.cfg.Quarantine))
	}
	if n.aside != yes {
		n.GiveUp() // also what was asked for, and measured, while the clock was unfit
		n.aside = yes
		n.rostersMayChange()
		n.renewNow()
	}
}

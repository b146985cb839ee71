// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package leasing

import "github.com/weftraft/weft/leases"

// Switched hears that another configuration is in force, VotersChanged that others count
// beside it.
func (x *Leases) Switched() {
	x.configured()
	x.settle()
}

// VotersChanged hears that other voters count, as the log has other pending changes.
func (x *Leases) VotersChanged() { x.configured() }

// Applied hears that the host has applied more of the log.
func (x *Leases) Applied() { x.settle() }

// settle tells the node up to where the log is applied and its changes are in force.
func (x *Leases) settle() {
	if to := x.raft.Electorate().InForceTo(x.log.Applied()); to != x.settled {
		x.settled = to
		x.node.Applied(leases.Index(to))
	}
}

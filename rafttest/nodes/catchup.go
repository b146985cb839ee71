// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package nodes

import (
	"fmt"

	"github.com/weftraft/weft/internal/catchup"
	"github.com/weftraft/weft/internal/replica"
)

// catchUpWindow is how many appends a window of missed entries has.
const catchUpWindow = 4

// newCatchUp returns the budget of a process that starts, or nil.
func (n *node) newCatchUp() *catchup.Budget {
	if n.w.plan.catchUp == 0 {
		return nil
	}
	return catchup.New(n.w.plan.catchUp, n.w.Now)
}

// catchesUp has the followers of a member catch up within the node's budget. (Snapshots here take from none.)
func (m *member) catchesUp() {
	if m.n.catchUp != nil {
		m.r.CatchUpWithin(m.n.catchUp, m.n.w.plan.catchUpFree, func(turn func(*replica.Replica)) {
			m.n.bound(func() { m.drive.Post(0, turn) })()
		})
	}
}

// countCatchUp counts the windows of a process that ends.
func (n *node) countCatchUp() {
	s := n.catchUp.Statistics(catchup.Sending)
	n.w.reach.CatchUps += s.Turns
	n.w.reach.CatchUpsDelayed += s.Delayed
}

// missingInBudgets names a budget that has bytes under way, or a member that waits for some.
func (f *finale) missingInBudgets() string {
	for _, n := range f.w.running() {
		if s := n.catchUp.Statistics(catchup.Sending); s.UsedBytes > 0 || s.Waiting > 0 {
			return fmt.Sprintf("node %d has %d bytes under way to members that catch up, and %d wait", n.id, s.UsedBytes, s.Waiting)
		}
	}
	return ""
}

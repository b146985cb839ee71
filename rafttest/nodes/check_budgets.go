// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package nodes

import (
	"github.com/weftraft/weft/internal/catchup"
	"github.com/weftraft/weft/internal/replica"
	"github.com/weftraft/weft/internal/wire"
)

// gauges compares the queues of a member, and of its node, with their bounds. A
// queue that takes any element while below the bound may exceed the bound by an
// element.
func (m *member) gauges(st *replica.Status) {
	n, w := m.n, m.n.w
	p := &w.plan
	over := func(what string, have, bound int) {
		if have > bound {
			w.fail(budgets, "%v, group %d: %s: %d, the bound is %d", n, m.g.id, what, have, bound)
		}
	}
	one := p.largestMessage()
	for class, bytes := range m.bytes {
		over(inboxNames[class], bytes, p.receiveBytes+one)
	}
	over("calls at the door", m.atDoor.calls, p.calls)
	over("commands at the door", m.atDoor.bytes, p.queueBytes)
	over("commands", st.Queued, p.queueBytes)
	over("calls", st.Waiting, p.calls)
	over("apply stage", m.drive.StepsBytes(), p.applyBytes+2*p.largestEntry())
	for _, l := range n.egress.order {
		over("link", l.bytes, p.linkBytes+one)
	}
	// Each group may have, in the append stage, as much as a leader takes
	// uncommitted or sends a follower.
	over("append stage", n.disk.queued, len(w.groups)*(max(p.uncommitted, p.inflightBytes)+2*one))
	if c := n.catchUp; c != nil {
		over("under way to members that catch up", int(c.Statistics(catchup.Sending).UsedBytes), int(p.catchUp)+catchUpWindow*p.appendBytes)
	}
	if e := n.disk.engine; e != nil {
		write := one
		if p.coding.on {
			// A new leader has units of all that is uncommitted in its first write.
			write += max(p.uncommitted, p.inflightBytes)
		}
		over("log", int(e.Stats().QueuedBytes), int(p.logBytes)+write)
	}
}

var inboxNames = func() (names [wire.NumClasses]string) {
	for c := range wire.NumClasses {
		names[c] = "inbox, " + c.String()
	}
	return names
}()

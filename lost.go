// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package weft

import (
	"context"
	"time"

	"github.com/weftraft/weft/internal/book"
	"github.com/weftraft/weft/internal/members"
)

// A node that is recovered ([Recover]) tells the others that they are lost. That is true if they
// were dead, and come back; the recovered node may also have been cut off from a majority that
// went on, or have asked at old addresses. A lost member that obeyed in every case would stop a
// healthy group for good, because all its members hear the same.
//
// So a member that has been in service for a while, and now has a leader and a majority, does not
// obey. A member that was opened a moment ago obeys at once: two lost members that come back are a
// majority of the old group, too, and hear within this time that it is no more. The answer of a
// member is durable, and given once.

// inService is how many election timeouts after it was opened a member counts as in service.
const inService = 30

// weighed is how many election timeouts a member looks for a leader and a majority.
const weighed = 3

// electionTimeout is the least time after which followers take a silent leader for dead.
func (n *Node) electionTimeout() time.Duration { return 10 * n.options.TickInterval }

// weigh decides whether this node obeys the word of another node, which has recovered the group
// without this one.
func (g *Group) weigh(by uint64) {
	o := &g.node.options
	if time.Since(g.opened) < inService*g.node.electionTimeout() || !g.led() {
		if g.node.context.Err() != nil {
			return // the node is being closed: it answers at its next start
		}
		o.Logger.Error("the group was recovered at another node, and goes on there without this node, which refuses calls from now on: "+
			"if other members that were given up are alive, stop the recovered node and call Recover at one of them", "group", g.id, "node", o.ID, "recovered", by)
		g.node.book.Answer(g.id, book.Obeyed)
		g.setOut()
		g.node.book.TrySave()
		return
	}
	o.Logger.Error("the group was recovered at another node, as if this node were lost, and has a leader and a majority here: this node goes on; "+
		"stop the recovered node for good, remove it from the group, and add a node with a new id", "group", g.id, "node", o.ID, "recovered", by)
	g.node.book.Answer(g.id, book.Denied)
	g.node.book.TrySave()
}

// led reports whether this node is a member of a group with a leader and a majority.
func (g *Group) led() bool {
	ctx, cancel := context.WithTimeout(g.node.context, weighed*g.node.electionTimeout())
	defer cancel()
	conf, err := g.present(ctx)
	return err == nil && members.Has(conf, g.node.options.ID)
}

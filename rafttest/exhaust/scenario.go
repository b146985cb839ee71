// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package exhaust

import (
	"fmt"
	"slices"
	"strings"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/leases"
)

// scenario is a group, how it begins, and what may happen to it.
type scenario struct {
	Name string
	// Voters are the first members. Nodes is how many nodes there are; those that are no
	// members have an empty disk.
	Voters []uint64
	Nodes  int
	// ElectionTick is that of raft.Config; heartbeats are sent at each tick.
	ElectionTick int
	CheckQuorum  bool
	// Level turns coding on: any so many followers restore an entry. With a clock coding
	// finds late entries by the clock, otherwise by ticks.
	Level int
	Clock bool
	// Leases turns leases on, and Responders are the nodes that answer reads beside the
	// leader.
	Leases     bool
	Responders []leases.NodeID
	// Host is how all hosts are built.
	Host hostKind

	// Before is what happens before the exploration begins, with all messages delivered
	// after each step.
	Before []step
	// Changes are the changes of the members that wishes are about.
	Changes []memberChange
	// Wishes are what operators and clients ask for, in this order.
	Wishes []wish

	// Splits are the ways in which the group may be split.
	Splits [][]uint64
	// Most bounds acts in a path, by kind.
	Most [budgets]int
	// Orders delivers the messages of a round in every order, at no cost.
	Orders bool
	// LeasesLate has things go wrong also before messages of leases arrive. Brisk has
	// nothing go wrong before acknowledgements and units arrive.
	LeasesLate, Brisk bool
	// Early has hosts with threads apply what they have not written, and Notes has members tell
	// responders what they hold.
	Early, Notes bool
}

// hostKind is how a host is built.
type hostKind uint8

// The hosts. appliesFirst applies what is committed before Advance, so that a slow one does
// nothing more; reportsFirst calls Advance before ApplyConfChange, as etcd's leader does;
// threads writes and applies asynchronously (raft.Config.AsyncStorageWrites).
const (
	appliesFirst hostKind = iota
	reportsFirst
	threads
)

// memberChange is a change of the members, as pb.ConfChangesFromString reads it.
type memberChange struct {
	Text string
	// Joint is pb.ConfChangeTransitionAuto, or another.
	Joint pb.ConfChangeTransition
}

// V2 returns the change as proposed.
func (c memberChange) V2() *pb.ConfChangeV2 {
	if c.Text == "" {
		return &pb.ConfChangeV2{}
	}
	cc := &pb.ConfChangeV2{Changes: must2(pb.ConfChangesFromString(c.Text))}
	if c.Joint != pb.ConfChangeTransitionAuto {
		cc.Transition = c.Joint.Enum()
	}
	return cc
}

// wish is an input that a client or an operator gives a node.
type wish struct {
	kind kind
	arg  int
	// At is the node; 0: the leader of the highest term.
	At int
}

// Wishes of each kind.

func propose(name int) wish     { return wish{kind: inPropose, arg: name} }
func change(number int) wish    { return wish{kind: inChange, arg: number} }
func campaign(node int) wish    { return wish{kind: inCampaign, At: node} }
func transfer(to int) wish      { return wish{kind: inTransfer, arg: to} }
func compact(node int) wish     { return wish{kind: inCompact, At: node} }
func query(name, node int) wish { return wish{kind: inRead, arg: name, At: node} }
func (w wish) String() string {
	what := map[kind]string{inPropose: "propose %d", inChange: "change %d", inCampaign: "campaign", inTransfer: "transfer to %d", inCompact: "compact", inRead: "read %d"}[w.kind]
	if strings.Contains(what, "%") {
		what = fmt.Sprintf(what, w.arg)
	}
	if w.At == 0 {
		return what + " at the leader"
	}
	return fmt.Sprintf("%s at node %d", what, w.At)
}

// step is a step of a beginning: an act, a wish, a power failure in the next write of
// entries from the leader at a node, or a host that applies changes no more.
type step struct {
	act  act
	wish *wish
	tear int
	slow int
}

func say(w wish) step              { return step{wish: &w} }
func split(nodes ...uint64) step   { return step{act: act{deed: actSplit, arg: mask(nodes)}} }
func heal() step                   { return step{act: act{deed: actHeal}} }
func crash(node int) step          { return step{act: act{deed: actCrash, arg: uint8(node - 1)}} }
func restart(node int) step        { return step{act: act{deed: actStart, arg: uint8(node - 1)}} }
func slow(node int) step           { return step{slow: node} }
func tear(node int) step           { return step{tear: node} }
func beat() step                   { return step{act: act{deed: actBeat}} }
func beats(n int) []step           { return slices.Repeat([]step{beat()}, n) }
func steps(lists ...[]step) []step { return slices.Concat(lists...) }

// elected is a beginning in which a node leads, and knows what the others can do.
func elected(node int) []step { return append([]step{say(campaign(node))}, beats(3)...) }

// prepare returns the world in which the exploration begins, or what is wrong.
func (x *explorer) prepare() (*world, string) {
	s := x.s
	conf := &pb.ConfState{Voters: s.Voters}
	w := &world{hist: &history{committed: []fact{{term: 1, by: 1}}}}
	w.hist.key = w.hist.print()
	for i := range s.Nodes {
		d := image{}
		for _, id := range s.Voters {
			if id == uint64(i+1) {
				d = image{base: 1, baseTerm: 1, conf: conf}
			}
		}
		w.nodes[i] = x.off(i, &d, 0)
		x.begin(w, i)
	}
	for _, step := range s.Before {
		switch {
		case step.wish != nil:
			next := *w
			x.utter(&next, *step.wish)
			w = &next
		case step.slow > 0:
			next := *w
			next.slow |= 1 << (step.slow - 1)
			w = &next
		case step.tear > 0:
			w = x.tearAt(w, step.tear-1)
		default:
			w = x.do(w, step.act)
		}
		w = x.settle(w)
		if wrong := w.check(); wrong != "" {
			return w, wrong
		}
	}
	w.used = [budgets]uint8{}
	return w, ""
}

// tearAt lets time pass until a node writes entries from a leader, and power fails in that
// write, behind the entries.
func (x *explorer) tearAt(w *world, node int) *world {
	for range patienceTicks {
		for len(w.round) > 0 {
			if m := w.round[0]; m.to() == node && m.pb.GetType() == pb.MsgApp && len(m.pb.GetEntries()) > 0 {
				torn := x.do(w, act{deed: actTorn, keep: uint8(len(m.pb.GetEntries()))})
				if torn.nodes[node].disk.last() > w.nodes[node].disk.last() {
					return torn
				}
			}
			w = x.do(w, act{deed: actDeliver})
		}
		w = x.do(w, act{deed: actBeat})
	}
	w.broken = fmt.Sprintf("node %d gets no entries", node+1)
	return w
}

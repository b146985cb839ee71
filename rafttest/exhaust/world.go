// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package exhaust

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/raft"
)

// mostNodes bounds the nodes of a scenario.
const mostNodes = 6

// world is all nodes and the messages between them at one moment.
type world struct {
	nodes [mostNodes]*state
	// round is the messages to be delivered in this round, next the messages sent in this
	// round, both ordered by receiver, sender, and time of sending. So two worlds are equal if
	// they differ only in the order of events at different nodes.
	round, next []*message
	// late is the messages held back, in order of their numbers.
	late []*message
	// slow is the nodes whose hosts apply no change of the members, hung those whose disks hang, and bare
	// those whose reports, in the Context of Raft's messages, are lost.
	slow, hung, bare uint8
	// split is nodes that are connected among each other, and not with the others; 0: all are.
	split uint8
	at    time.Duration
	used  [budgets]uint8
	// done is the number of wishes that were uttered.
	done uint8
	hist *history

	// touched is the nodes changed by the last act, and broken is what the act broke.
	touched uint8
	broken  string
	// changes says that the last act had a host apply a change of the members.
	changes bool
}

// deed is the kind of an act.
type deed uint8

// The acts. Those with a budget of their own come first: see scenario.
const (
	actLate    deed = iota // the first message of the round is held back
	actCrash               // the process of a node ends
	actTorn                // power fails while a node writes what the first message of the round brings
	actSplit               // the group is split: see scenario.Splits
	actSlow                // the host of a node does not apply the change of the members that it is handed
	actEarly               // the next wish is uttered, time passes, or a late message arrives, while messages are under way
	actBeat                // time passes, and ends with a tick at each node
	actWait                // half of that time passes, without a tick
	actTwice               // the first message of the round arrives, and arrives once more later
	actBare                // the reports of a node are lost from now on
	actHang                // the disk of a node hangs: what it is to write waits, and is lost if the process ends
	actRelease             // a late message arrives
	actStart               // the process of a node starts again
	actHeal                // all nodes are connected
	actResume              // the host of a node applies again
	actSync                // the disk of a node goes on
	budgets
	actDeliver // the message with this number in the round arrives
	actWish    // the next wish is uttered
)

// act is a step from one world to the next.
type act struct {
	deed deed
	arg  uint8 // a node, or the number of a message
	keep uint8 // entries that a torn write leaves
	slow bool  // the host that is handed a change of the members by this does not apply it
	cost uint8
}

func (w *world) print() uint64 {
	h := mix(mix(mix(w.hist.key, uint64(w.split)|uint64(w.slow)<<8|uint64(w.hung)<<16|uint64(w.bare)<<24), uint64(w.at)), uint64(w.done))
	for _, n := range w.nodes {
		if n != nil {
			h = mix(h, n.key)
		}
	}
	for _, list := range [][]*message{w.round, w.next, w.late} {
		h = mix(h, uint64(len(list)))
		for _, m := range list {
			h = mix(h, m.key)
		}
	}
	for _, u := range w.used {
		h = mix(h, uint64(u))
	}
	return h
}

// do returns the world after an act.
func (a *automata) do(before *world, x act) *world {
	w := *before
	w.touched, w.broken, w.changes = 0, "", false
	if x.deed < budgets {
		w.used[x.deed]++
	}
	if x.cost > 0 && (x.deed == actWish || x.deed == actRelease || x.deed == actSync) {
		w.used[actEarly]++
	}
	if x.slow {
		w.used[actSlow]++
		w.slow |= 1 << w.slowed(x)
	}
	switch x.deed {
	case actDeliver:
		m := w.round[x.arg]
		w.round = without(w.round, int(x.arg))
		a.arrive(&w, m, inStep, 0)
	case actTorn:
		m := w.round[0]
		w.round = w.round[1:]
		a.arrive(&w, m, inTorn, int(x.keep))
	case actLate:
		w.late = sorted(w.late, w.round[0], byNumber)
		w.round = w.round[1:]
	case actTwice:
		m := w.round[0]
		w.round, w.late = w.round[1:], sorted(w.late, m, byNumber)
		a.arrive(&w, m, inStep, 0)
	case actBare:
		w.bare |= 1 << x.arg
	case actHang:
		w.hung |= 1 << x.arg
	case actSync:
		w.hung &^= 1 << x.arg
		a.input(&w, int(x.arg), input{kind: inSync})
	case actRelease:
		m := w.late[x.arg]
		w.late = without(w.late, int(x.arg))
		a.arrive(&w, m, inStep, 0)
	case actBeat:
		w.at += tick
		for i := range w.nodes {
			a.input(&w, i, input{kind: inTick})
		}
	case actWish:
		a.utter(&w, a.s.Wishes[w.done])
		w.done++
	case actCrash:
		a.input(&w, int(x.arg), input{kind: inCrash})
		w.hung &^= 1 << x.arg
	case actStart:
		if n := w.nodes[x.arg]; n.up {
			break
		}
		a.begin(&w, int(x.arg))
	case actWait:
		w.at += tick / 2
	case actSplit:
		w.split = x.arg
		w.round, w.next = a.dropped(&w, w.round), a.dropped(&w, w.next)
	case actHeal:
		w.split = 0
	case actResume:
		w.slow &^= 1 << x.arg
		a.input(&w, int(x.arg), input{kind: inResume})
	}
	if len(w.round) == 0 {
		w.round, w.next = w.next, nil
	}
	return &w
}

func without(list []*message, i int) []*message {
	return slices.Concat(list[:i], list[i+1:])
}

// sorted returns a list with a message put in behind those that are not greater.
func sorted(list []*message, m *message, compare func(a, b *message) int) []*message {
	i := len(list)
	for i > 0 && compare(m, list[i-1]) < 0 {
		i--
	}
	return slices.Insert(slices.Clone(list), i, m)
}

func byNumber(a, b *message) int { return cmp.Compare(a.id, b.id) }

func byReceiver(a, b *message) int {
	return cmp.Or(cmp.Compare(a.to(), b.to()), cmp.Compare(a.from(), b.from()))
}

// slowed returns the node whose host is handed a change by an act.
func (w *world) slowed(x act) int {
	switch x.deed {
	case actDeliver:
		return w.round[x.arg].to()
	case actRelease:
		return w.late[x.arg].to()
	}
	return int(x.arg)
}

// slower returns the act with a slow host, if the act made a host apply a change.
func (s *scenario) slower(before, after *world, x act) (act, bool) {
	possible := after.changes && s.left(before, actSlow) && !x.slow && (x.deed == actDeliver || x.deed == actRelease || x.deed == actStart)
	x.slow, x.cost = true, x.cost+1
	return x, possible
}

// input gives a node that is up an input.
func (a *automata) input(w *world, i int, in input) {
	if n := w.nodes[i]; n == nil || !n.up {
		return
	}
	a.apply(w, i, in)
}

// begin starts the process of a node.
func (a *automata) begin(w *world, i int) { a.apply(w, i, input{kind: inStart}) }

func (a *automata) apply(w *world, i int, in input) {
	in.at, in.slow, in.hung = w.at, w.slow>>i&1 == 1, w.hung>>i&1 == 1
	e := a.step(w.nodes[i], in)
	if e.broken != "" && w.broken == "" {
		w.broken = e.broken
	}
	w.nodes[i] = e.to
	w.touched |= 1 << i
	w.changes = w.changes || e.changes
	w.hist = a.learn(w, i, e)
	for _, m := range e.out {
		a.send(w, m)
	}
}

// connected reports whether a message can be on its way.
func (w *world) connected(m *message) bool {
	to := m.to()
	return to >= 0 && to < mostNodes && w.nodes[to] != nil && w.split>>to&1 == w.split>>m.from()&1
}

func (a *automata) send(w *world, m *message) {
	if !w.connected(m) {
		a.lost(w, m)
		return
	}
	if w.bare>>m.from()&1 == 1 && hasReport(m.pb) {
		m = a.bare(m)
	}
	w.next = sorted(w.next, m, byReceiver)
}

// lost tells the sender of a snapshot that the snapshot is lost.
func (a *automata) lost(w *world, m *message) {
	if m.pb.GetType() == pb.MsgSnap {
		a.input(w, m.from(), input{kind: inSnapshotLost, arg: m.to() + 1})
	}
}

// dropped returns the messages whose sender and receiver are connected; the others are lost.
func (a *automata) dropped(w *world, list []*message) []*message {
	kept := make([]*message, 0, len(list))
	for _, m := range list {
		if w.connected(m) {
			kept = append(kept, m)
		} else {
			a.lost(w, m)
		}
	}
	return kept
}

func (a *automata) arrive(w *world, m *message, how kind, keep int) {
	to := m.to()
	if !w.connected(m) || !w.nodes[to].up {
		a.lost(w, m)
		return
	}
	a.input(w, to, input{kind: how, msg: m, arg: keep})
	if m.pb.GetType() == pb.MsgSnap {
		a.input(w, m.from(), input{kind: inSnapshotDone, arg: to + 1})
	}
}

// leader returns the node that leads the highest term, or -1.
func (w *world) leader() int {
	best := -1
	for i, n := range w.nodes {
		if n != nil && n.up && n.role == raft.StateLeader && (best < 0 || n.term > w.nodes[best].term) {
			best = i
		}
	}
	return best
}

// utter carries out a wish.
func (a *automata) utter(w *world, wish wish) {
	i := wish.At - 1
	if wish.At == 0 {
		i = w.leader()
	}
	if wish.kind == inRead {
		w.hist = w.hist.reads(wish.arg)
	}
	if i >= 0 {
		a.input(w, i, input{kind: wish.kind, arg: wish.arg})
	}
}

// possible reports whether a wish can be uttered.
func (w *world) possible(wish wish) bool {
	if wish.At == 0 {
		return w.leader() >= 0
	}
	return w.nodes[wish.At-1].up
}

// dull reports whether a message is of a kind before whose delivery nothing is made to fail.
func (s *scenario) dull(m *message) bool {
	switch m.pb.GetType() {
	case pb.MsgHeartbeat, pb.MsgHeartbeatResp:
		return true
	case raft.MsgLeases:
		return !s.LeasesLate
	case pb.MsgAppResp, raft.MsgUnits, raft.MsgUnitsAsk:
		return s.Brisk
	}
	return false
}

// acts returns what may happen in a world: first what costs nothing.
func (s *scenario) acts(w *world) []act {
	var list []act
	add := func(x act) { list = append(list, x) }
	wish := int(w.done) < len(s.Wishes) && w.possible(s.Wishes[w.done])
	if len(w.round) > 0 {
		add(act{deed: actDeliver})
		if s.Orders {
			for i := 1; i < len(w.round); i++ {
				add(act{deed: actDeliver, arg: uint8(i)})
			}
		}
		if s.dull(w.round[0]) {
			return list
		}
		if s.left(w, actLate) && !s.Orders {
			add(act{deed: actLate, cost: 1})
		}
		if s.left(w, actTwice) {
			add(act{deed: actTwice, cost: 1})
		}
		s.torn(w, add)
		if s.left(w, actEarly) {
			for i, n := range w.nodes {
				if n != nil && w.hung>>i&1 == 1 && s.left(w, actSync) {
					add(act{deed: actSync, arg: uint8(i), cost: 1})
				}
			}
			if wish {
				add(act{deed: actWish, cost: 1})
			}
			for i := range w.late {
				add(act{deed: actRelease, arg: uint8(i), cost: 1})
			}
		}
	} else {
		if wish {
			add(act{deed: actWish})
		}
		for i, n := range w.nodes {
			if n != nil && !n.up && s.left(w, actStart) {
				add(act{deed: actStart, arg: uint8(i)})
			}
			if n != nil && n.up && w.slow>>i&1 == 1 && s.left(w, actResume) {
				add(act{deed: actResume, arg: uint8(i)})
			}
			if n != nil && w.hung>>i&1 == 1 && s.left(w, actSync) {
				add(act{deed: actSync, arg: uint8(i)})
			}
		}
		if w.split != 0 && s.left(w, actHeal) {
			add(act{deed: actHeal})
		}
		for i := range w.late {
			if s.left(w, actRelease) {
				add(act{deed: actRelease, arg: uint8(i)})
			}
		}
		if s.left(w, actBeat) {
			add(act{deed: actBeat})
		}
	}
	s.fallen(w, add)
	for _, nodes := range s.Splits {
		if s.left(w, actSplit) && w.split != mask(nodes) {
			add(act{deed: actSplit, arg: mask(nodes), cost: 1})
		}
	}
	if s.left(w, actWait) {
		add(act{deed: actWait, cost: 1})
	}
	return list
}

// fallen adds what may befall the nodes that are up, or their disks.
func (s *scenario) fallen(w *world, add func(act)) {
	for i, n := range w.nodes {
		if n == nil || !n.up {
			continue
		}
		// A crash later than right behind the last input of the node is the same crash.
		if s.left(w, actCrash) && (w.touched>>i&1 == 1 || len(w.round) == 0) {
			add(act{deed: actCrash, arg: uint8(i), cost: 1})
		}
		if s.left(w, actHang) && w.hung>>i&1 == 0 && (w.touched>>i&1 == 1 || len(w.round) == 0) {
			add(act{deed: actHang, arg: uint8(i), cost: 1})
		}
		if s.left(w, actBare) && w.bare>>i&1 == 0 && (w.touched>>i&1 == 1 || len(w.round) == 0) {
			add(act{deed: actBare, arg: uint8(i), cost: 1})
		}
	}
}

func (s *scenario) left(w *world, d deed) bool { return int(w.used[d]) < s.Most[d] }

// torn adds the ways in which power may fail while the entries of the first message are
// written.
func (s *scenario) torn(w *world, add func(act)) {
	m := w.round[0].pb
	if !s.left(w, actTorn) || m.GetType() != pb.MsgApp || w.hung>>w.round[0].to()&1 == 1 {
		return
	}
	for keep := 1; keep <= len(m.GetEntries()); keep++ {
		add(act{deed: actTorn, keep: uint8(keep), cost: 1})
	}
}

func (x act) String() string {
	if x.slow {
		x.slow = false
		return x.String() + ", and the host does not apply the change that it is handed"
	}
	node := x.arg + 1
	switch x.deed {
	case actLate:
		return "held back"
	case actCrash:
		return fmt.Sprintf("node %d crashes", node)
	case actTorn:
		return fmt.Sprintf("power fails in the write, %d entries are on disk", x.keep)
	case actSplit:
		return fmt.Sprintf("the group is split by %06b", x.arg)
	case actWait:
		return "half a tick passes"
	case actTwice:
		return "arrives, and will arrive once more"
	case actBare:
		return fmt.Sprintf("the reports of node %d are lost from now on", node)
	case actHang:
		return fmt.Sprintf("the disk of node %d hangs", node)
	case actSync:
		return fmt.Sprintf("the disk of node %d goes on", node)
	case actBeat:
		return "a tick passes"
	case actDeliver:
		return "arrives"
	case actWish:
		return "wish"
	case actRelease:
		return "late message arrives"
	case actStart:
		return fmt.Sprintf("node %d starts", node)
	case actHeal:
		return "all are connected"
	case actResume:
		return fmt.Sprintf("the host of node %d applies again", node)
	}
	return "?"
}

// mask returns a set of nodes.
func mask(nodes []uint64) (m uint8) {
	for _, id := range nodes {
		m |= 1 << (id - 1)
	}
	return m
}

// hasReport reports whether a message has a Context that a host may lose.
func hasReport(m *pb.Message) bool {
	switch m.GetType() {
	case pb.MsgAppResp, pb.MsgVoteResp, pb.MsgPreVoteResp:
		return len(m.GetContext()) > 0
	}
	return false
}

// bare returns a message without its Context.
func (a *automata) bare(m *message) *message {
	return a.message(&pb.Message{Type: m.pb.Type, To: m.pb.To, From: m.pb.From, Term: m.pb.Term, LogTerm: m.pb.LogTerm, Index: m.pb.Index,
		Commit: m.pb.Commit, Vote: m.pb.Vote, Reject: m.pb.Reject, RejectHint: m.pb.RejectHint})
}

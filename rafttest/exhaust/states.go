// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package exhaust

import (
	"errors"
	"fmt"
	"time"

	pb "go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"

	"github.com/weftraft/weft/leases"
	"github.com/weftraft/weft/raft"
)

// kind is what an input is.
type kind uint8

// The inputs of a node. inTorn is a message in whose write power fails; inStart begins
// a process on a disk, and inCrash ends one.
const (
	inStep kind = iota
	inTorn
	inTick
	inCampaign
	inPropose
	inChange
	inTransfer
	inSnapshotDone
	inSnapshotLost
	inResume
	inCompact
	inRead
	inSync
	inStart
	inCrash
)

// input is an input of a node, with the reading of the node's clock.
type input struct {
	kind kind
	arg  int
	msg  *message
	at   time.Duration
	slow bool // the host applies no change of the members
	hung bool // the disk hangs
}

// message is a message between nodes, one object for all equal ones.
type message struct {
	id  uint32
	pb  *pb.Message
	key uint64
}

func (m *message) from() int { return int(m.pb.GetFrom()) - 1 }
func (m *message) to() int   { return int(m.pb.GetTo()) - 1 }

// state is a state of a node: of a process, or of a disk without a process. Equal states of
// a node are one object.
type state struct {
	key  uint64
	node int
	// before and in are how the state was first reached.
	before *state
	in     input
	// live is a core in this state, if there still is one.
	live *core

	up    bool
	disk  image
	boots int

	// What is seen of a process.
	role    raft.StateType
	term    uint64
	applied uint64
	// commit is the commit index that the core knows, and log the disk as it will be when all
	// that waits is written.
	commit uint64
	log    image
	conf   *pb.ConfState
	permit *leases.Permit
	// runs is the ways in which the node may campaign; nil: not computed yet.
	runs []candidacy

	edges map[input]*edge
}

// edge is what an input does to a node in a state.
type edge struct {
	to      *state
	out     []*message
	sent    []*pb.Message // out, before it is registered
	handed  []handed
	reads   []answer
	changes bool // the host applied a change of the members
	broken  string
}

// handed is an entry that a core handed to its host.
type handed struct {
	index, what uint64
	payload     bool
}

// answer is the index that a core gives for a read.
type answer struct {
	read  int
	index uint64
}

// automata knows all states and messages that were reached, and what each input does.
type automata struct {
	s        *scenario
	states   map[uint64]*state
	messages map[string]*message
	printer  printer
	cores    []*state // states with a core, the oldest first
	replayed int      // inputs given to cores again, to bring them into a state
	given    int      // inputs given to cores for the first time
}

func newAutomata(s *scenario) *automata {
	return &automata{s: s, states: map[uint64]*state{}, messages: map[string]*message{},
		printer: newPrinter()}
}

// off returns the state of a node with a disk and without a process.
func (a *automata) off(node int, d *image, boots int) *state {
	return a.known(&state{key: mix(mix(mix(uint64(node)+1<<40, d.print()), uint64(boots)), 7), node: node, disk: *d, boots: boots, commit: d.commit, log: *d})
}

// known returns the one object for a state.
func (a *automata) known(st *state) *state {
	if had := a.states[st.key]; had != nil {
		return had
	}
	a.states[st.key] = st
	st.edges = map[input]*edge{}
	return st
}

// step returns what an input does to a node in a state.
func (a *automata) step(st *state, in input) *edge {
	if e := st.edges[in]; e != nil {
		return e
	}
	e := a.compute(st, in)
	st.edges[in] = e
	return e
}

func (a *automata) compute(st *state, in input) *edge {
	a.given++
	switch in.kind {
	case inCrash:
		return &edge{to: a.off(st.node, &st.disk, st.boots)}
	case inStart:
		c, err := start(a.s, uint64(st.node+1), st.boots+1, &st.disk, in.at)
		if err != nil {
			return &edge{broken: fmt.Sprintf("node %d does not start: %v", st.node+1, err), to: st}
		}
		return a.reached(c, c.take(in), st, in)
	}
	c := a.revive(st)
	return a.reached(c, c.take(in), st, in)
}

// reached makes an edge of what a core did.
func (a *automata) reached(c *core, e *edge, before *state, in input) *edge {
	for _, m := range e.sent {
		e.out = append(e.out, a.message(m))
	}
	e.sent = nil
	if e.broken != "" {
		e.to = before
		return e
	}
	if c.tear >= 0 {
		e.to = a.off(before.node, &c.disk, c.host.boots)
		return e
	}
	bs := c.rn.BasicStatus()
	st := &state{
		key: a.keyOf(c), node: before.node, before: before, in: in,
		up: true, disk: c.disk, boots: c.host.boots, role: bs.RaftState, term: bs.GetTerm(),
		applied: c.host.applied, conf: c.host.conf, commit: bs.GetCommit(), log: c.willBe(),
	}
	if a.s.Leases {
		st.permit = c.rn.LeasePermit(nil)
	}
	e.to = a.known(st)
	a.keep(e.to, c)
	return e
}

// keyOf returns the key of the state that a core is in.
func (a *automata) keyOf(c *core) uint64 { return mix(mix(c.id, a.printer.printOf(c)), 11) }

// mostCores bounds the cores that are kept.
const mostCores = 4096

func (a *automata) keep(st *state, c *core) {
	if st.live != nil {
		return
	}
	st.live = c
	if a.cores = append(a.cores, st); len(a.cores) > mostCores {
		a.cores[0].live = nil
		a.cores = a.cores[1:]
	}
}

// revive returns a core in a state: the state's live core, or a core that is started again
// and given all inputs of the state's process. The state loses its live core.
func (a *automata) revive(st *state) *core {
	var inputs []input
	at := st
	for ; at.live == nil && at.in.kind != inStart; at = at.before {
		inputs = append(inputs, at.in)
	}
	c := at.live
	if at.live = nil; c == nil {
		c = must2(start(a.s, uint64(st.node+1), at.boots, &at.before.disk, at.in.at))
		inputs = append(inputs, at.in)
	}
	for i := len(inputs) - 1; i >= 0; i-- {
		a.replayed++
		c.take(inputs[i])
	}
	return c
}

// message returns the one object for a message.
func (a *automata) message(m *pb.Message) *message {
	data := must2(proto.MarshalOptions{Deterministic: true}.Marshal(m))
	if had := a.messages[string(data)]; had != nil {
		return had
	}
	sent := &pb.Message{} // shares nothing with the core
	must(proto.Unmarshal(data, sent))
	x := &message{id: uint32(len(a.messages)), pb: sent, key: hashOf(3, data)}
	a.messages[string(data)] = x
	return x
}

// acceptable reports whether a core may answer a message with an error.
func acceptable(err error) bool {
	return errors.Is(err, raft.ErrStepPeerNotFound) || errors.Is(err, raft.ErrProposalDropped)
}

// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package coding

import (
	"errors"
	"fmt"
	"time"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/ecraft"
	"github.com/weftraft/weft/raft/internal/extend"
)

// node is what every part of coding sees of its node: who it is, the log, the view of
// Raft, the time in ticks, and the way out for effects. The parts share one.
type node struct {
	extend.Queue

	id   uint64
	cfg  Config
	log  extend.Log
	raft extend.View
	// ticks counts ticks, as a coarse clock.
	ticks int
	// plain is set by Densify: nothing new is to be coded.
	plain bool
	// busy is the share of time for which this node's processors were busy, as of the
	// last tick.
	busy share
	// told is the followers that the policy was told of; nil before the first. They may be those of an earlier
	// leadership: a policy keeps what it has learnt of links, until it hears that a follower has left.
	told *followers
	// acked is the last index acknowledged by this node in its term.
	//
	// Invariant: at most the last index.
	acked ecraft.ID
}

// followers are members beside the leader, the first voters of which vote.
type followers struct {
	members []uint64
	voters  int
}

func (n *node) now() time.Duration {
	if n.cfg.Clock == nil {
		return 0
	}
	return n.cfg.Clock()
}

// moment is a time, by the clock (0 without one) and in ticks.
type moment struct {
	at   time.Duration
	tick int
}

func (n *node) emit(e Event) { n.cfg.Record(e) }

func (n *node) send(m *pb.Message)  { n.Ask(extend.Effect{Do: extend.Send, Msg: m}) }
func (n *node) vouch(m *pb.Message) { n.Ask(extend.Effect{Do: extend.Vouch, Msg: m}) }

// fail takes the log out of service.
func (n *node) fail(err error, format string, args ...any) {
	n.Ask(extend.Effect{Do: extend.Fail, Err: fmt.Errorf("%s: %w", fmt.Sprintf(format, args...), err)})
}

// observer returns the policy if it learns and there is a clock to learn by.
func (n *node) observer() ecraft.Observer {
	if n.cfg.Clock == nil {
		return nil
	}
	o, _ := n.cfg.Policy.(ecraft.Observer)
	return o
}

// lookAtProcessors asks the host how busy processors are.
func (n *node) lookAtProcessors() {
	if n.cfg.Busy != nil {
		n.busy = shareOf(n.cfg.Busy())
	}
}

// follows reports whether a node is a member here or, at a leader, one to come.
func (n *node) follows(id uint64) bool {
	_, ok := n.raft.Progress(id)
	return ok
}

// learns reports whether a node is a learner.
func (n *node) learns(id uint64) bool {
	pr, ok := n.raft.Progress(id)
	return ok && pr.IsLearner
}

// votes reports whether a node is a voter.
func (n *node) votes(id uint64) bool {
	pr, ok := n.raft.Progress(id)
	return ok && !pr.IsLearner
}

// near reports whether a node stands in this node's zone.
func (n *node) near(id uint64) bool {
	zone := n.zone(n.id)
	return zone != "" && zone == n.zone(id)
}

// zone returns a node's zone; empty if there are no zones.
func (n *node) zone(id uint64) string {
	if n.cfg.Zone == nil {
		return ""
	}
	return n.cfg.Zone(id)
}

// match returns the index acknowledged by a member; 0 for a node that is not followed.
func (n *node) match(id uint64) uint64 {
	pr, _ := n.raft.Progress(id)
	return pr.Match
}

// released returns the highest index whose payload this node will never need again,
// whatever crashes, once the last Ready is written.
func (n *node) released() uint64 { return n.log.Released(n.log.First()) }

// isEnvelope reports whether an entry of a log is an envelope by its mark.
func (n *node) isEnvelope(e *pb.Entry) bool {
	return e.GetType() == pb.EntryNormal && ecraft.IsEnvelope(e.GetData(), n.cfg.ClearPrefix)
}

// open reads an entry of this node's log; nil for a plain one.
func (n *node) open(e *pb.Entry) (*ecraft.Envelope, error) {
	if !n.isEnvelope(e) {
		return nil, nil
	}
	env, err := ecraft.Parse(e.GetData(), n.cfg.ClearPrefix, n.id)
	if err != nil {
		return nil, fault(idOf(e), err)
	}
	return env, nil
}

// header reads the header of an entry of this node's log alone; nil for a plain one.
func (n *node) header(e *pb.Entry) (*ecraft.Header, error) {
	if !n.isEnvelope(e) {
		return nil, nil
	}
	hdr, _, err := ecraft.ParseHeader(e.GetData(), n.cfg.ClearPrefix)
	if err != nil {
		return nil, fault(idOf(e), err)
	}
	return hdr, nil
}

// openAll reads entries of the log; nil stands for a plain entry, and for all if all
// are plain.
func (n *node) openAll(ents []*pb.Entry) ([]*ecraft.Envelope, error) {
	var envs []*ecraft.Envelope
	for i, e := range ents {
		env, err := n.open(e)
		if err != nil {
			return nil, err
		}
		if env != nil {
			if envs == nil {
				envs = make([]*ecraft.Envelope, len(ents))
			}
			envs[i] = env
		}
	}
	return envs, nil
}

// stands reports whether the log has an entry.
func (n *node) stands(id ecraft.ID) bool {
	term, err := n.log.Term(id.Index)
	return err == nil && term == id.Term && id.Index >= n.log.First() && id.Index <= n.log.Last().Index
}

var (
	errNone  = errors.New("there are none")
	errPlain = fmt.Errorf("%w: the entry is plain", ecraft.ErrIncomplete)
)

// entry reads the entry of the log with an id.
func (n *node) entry(id ecraft.ID) (*pb.Entry, error) {
	if !n.stands(id) {
		return nil, ecraft.ErrIncomplete
	}
	ents, err := n.log.Slice(id.Index, id.Index+1, noLimit)
	if err != nil || len(ents) == 0 {
		return nil, errors.Join(errNone, err)
	}
	return ents[0], nil
}

// envelopeOf reads a coded entry of the log.
// [ecraft.ErrIncomplete]: there is no such entry.
func (n *node) envelopeOf(id ecraft.ID) (*ecraft.Envelope, error) {
	e, err := n.entry(id)
	if err != nil {
		return nil, err
	}
	env, err := n.open(e)
	if err == nil && env == nil {
		err = errPlain
	}
	return env, err
}

func idOf(e *pb.Entry) ecraft.ID { return ecraft.ID{Term: e.GetTerm(), Index: e.GetIndex()} }

// named returns an entry without a type.
func named(id ecraft.ID, data []byte) *pb.Entry {
	return &pb.Entry{Term: &id.Term, Index: &id.Index, Data: data}
}

// withData returns an entry that differs from e in its Data.
func withData(e *pb.Entry, data []byte) *pb.Entry {
	return &pb.Entry{Term: e.Term, Index: e.Index, Type: e.Type, Data: data}
}

// Types of messages between nodes that code. On the wire Term is 0, so that a node
// without coding ignores the message; the sender's term is in LogTerm.
const (
	MsgUnits    = pb.MessageType(64)
	MsgUnitsAsk = pb.MessageType(65)
)

// The Context of MsgUnits and MsgUnitsAsk is one byte, the message's purpose.
const (
	forPush         = 'p' // a push: units without a question
	forPass         = 'o' // units of a voter's push, passed on by a learner to another
	forZone         = 'c' // units of a push from another zone, passed on by a voter in its own
	forAnswer       = 'a' // the answer to a question for units
	forAsk          = 'q' // a question of a node that applies, or sends on
	forRecover      = 'r' // a question of a new leader, and its answer
	forHeaderAsk    = 'h' // a question for headers
	forHeaderAnswer = 'H' // its answer
	forRelease      = 'R' // the wish that a member releases entries
	forReading      = 'v' // the question whether a node reads envelopes, and its answer
)

// unitsMessage begins a message about units. LogTerm is the sender's term, Index the
// last index acknowledged by the sender in the present term.
func (n *node) unitsMessage(typ pb.MessageType, to uint64, purpose byte) *pb.Message {
	return &pb.Message{
		Type: &typ, To: &to, From: &n.id, Term: new(uint64), LogTerm: new(n.raft.Term()),
		Index: new(n.acked.Index), Commit: new(n.log.Committed()), Context: []byte{purpose},
	}
}

// IsPush reports whether a message is a push. Pushed units wait for durability, so the
// message also vouches for its index.
func IsPush(m *pb.Message) bool {
	return m.GetType() == MsgUnits && len(m.GetContext()) == 1 && m.GetContext()[0] == forPush
}

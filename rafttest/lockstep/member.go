// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package lockstep

import (
	"slices"

	pb "go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"
)

// member is one member of the group, on both sides, and the host around it. The
// host is one, as the sides are equal; what it passes on to a side is that
// side's own.
type member struct {
	id    uint64
	index int // position in schedule.members
	// cfg is the configuration of the next start; its Storage is set for each side.
	cfg  config
	core [2]core // nil while down
	disk [2]*disk
	// first is how the member begins while its disk is empty: with these peers,
	// or by waiting to be added.
	first []peer

	// state is what Status returned last.
	state status
	// machine is the state machine of the host: durable, but at a restart the
	// host may find it at an earlier state.
	machine machine
	// broken is set when the disk is such that no node can start from it.
	broken bool

	host
}

// host is what a host keeps in memory.
type host struct {
	// hand is the Ready that is being worked on, in the synchronous mode.
	hand    *[2]ready
	written bool
	// toApply holds committed entries that were handed out and not applied.
	toApply []pairOfEntries
	// appends and applies are the queues of the storage threads, acks what they
	// have to tell their own node, in the asynchronous mode.
	appends, applies, acks []packet
	// slow: see schedule.slowDisk.
	slow bool
	// readsWait: see schedule.tooEarly.
	readsWait bool
	// ownVote is the last term in which the member has heard its own vote.
	ownVote uint64
}

type pairOfEntries [2][]*pb.Entry

func (m *member) running() bool { return m.core[0] != nil }

// halt takes the member down: what was not written is lost.
func (m *member) halt() {
	m.core = [2]core{}
	m.host = host{}
}

// machine is as much of a replicated state machine as matters here: how far it
// has applied the log, and the configurations that it went through.
type machine struct {
	applied uint64
	// confs[i].cs is the configuration from index confs[i].at on. The first one
	// is where the history begins.
	confs []confAt
}

type confAt struct {
	at uint64
	cs *pb.ConfState
}

// restored is a state machine restored from a snapshot.
func restored(at uint64, cs *pb.ConfState) machine {
	return machine{applied: at, confs: []confAt{{at, pb.EnsureConfState(proto.Clone(cs).(*pb.ConfState))}}}
}

// conf returns the configuration at an index, nil if it is before the history.
func (ma *machine) conf(at uint64) *pb.ConfState {
	for _, c := range slices.Backward(ma.confs) {
		if c.at <= at {
			return c.cs
		}
	}
	return nil
}

// begin returns where the history begins.
func (ma *machine) begin() uint64 { return ma.confs[0].at }

// change records a configuration.
func (ma *machine) change(at uint64, cs *pb.ConfState) {
	ma.confs = append(ma.confs, confAt{at, cs})
}

// rollBack returns the machine to an earlier state.
func (ma *machine) rollBack(to uint64) {
	ma.applied = to
	ma.confs = slices.DeleteFunc(ma.confs, func(c confAt) bool { return c.at > to })
}

// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package lockstep

import (
	"slices"

	pb "go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"

	"github.com/weftraft/weft/raft"
)

// member is a member of the group, on both sides, with a single host for both, because the sides
// are equal. The values that the host passes to a side are the side's own.
type member struct {
	id    uint64
	index int // position in schedule.members
	// cfg is the configuration of the next start; its Storage is set for each side.
	cfg  raft.Config
	core [2]core // nil while down
	disk [2]*disk
	// first are the peers with which a member with an empty disk begins; without peers such a
	// member waits to be added.
	first []raft.Peer

	// state is the last result of Status.
	state raft.Status
	// machine is the state machine of the host. The machine is durable, but at a restart the host
	// may find an earlier state.
	machine machine
	// broken says that no node can start from the disk.
	broken bool

	host
}

// host is the part of a host that is lost in a crash.
type host struct {
	// hand is the Ready on which the host works, in the synchronous mode.
	hand    *[2]raft.Ready
	written bool
	// toApply holds committed entries that were handed out and are not applied yet.
	toApply []pairOfEntries
	// appends and applies are the queues of the storage threads, and acks the reports of these
	// threads to their own node, in the asynchronous mode.
	appends, applies, acks []packet
	// reported is the last of acks that was delivered.
	reported packet
	// slow: see schedule.slowDisk.
	slow bool
	// readsWait: see schedule.tooEarly.
	readsWait bool
	// ownVote is the last term in which the member has heard its own vote.
	ownVote uint64
}

type pairOfEntries [2][]*pb.Entry

func (m *member) running() bool { return m.core[0] != nil }

// halt takes the member down: all state outside the disks is lost.
func (m *member) halt() {
	m.core = [2]core{}
	m.host = host{}
}

// machine is the part of a replicated state machine that the harness needs: the applied index, and
// the history of configurations.
type machine struct {
	applied uint64
	// confs[i].cs is the configuration from index confs[i].at on. The history begins at the first
	// element.
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

// conf returns the configuration at an index, or nil for an index before the history.
func (ma *machine) conf(at uint64) *pb.ConfState {
	for _, c := range slices.Backward(ma.confs) {
		if c.at <= at {
			return c.cs
		}
	}
	return nil
}

// begin returns the index at which the history begins.
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

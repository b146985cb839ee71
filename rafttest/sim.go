// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package rafttest

import (
	"fmt"
	"slices"
	"time"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/internal/world"
	"github.com/weftraft/weft/raft"
)

// sim is one run.
type sim struct {
	world.Agenda
	story world.Story
	opts  options
	plan  plan
	// rng draws the acts of hosts, disks and faults, net2 the acts of the
	// network. Two streams, so that a change to one leaves the other's story
	// alone.
	rng, net2 world.Draws
	// reports draws the acknowledgements that lose their part beside Raft.
	reports world.Draws
	// falls draws how leaders fall, and paces whom hosts hold back.
	falls, paces world.Draws
	// timed counts the work that took time: see held.
	timed int

	nodes   []*node // by id, from 1
	net     *network
	faults  provoker
	check   *checker
	history history
	end     ending
	reach   reach
	coded   codedReach
	leased  leasedState
	joints  jointReach
	early   earlyReach
	// marooned says that a follower was left without what the others cut.
	marooned bool

	// leader is the last elected node.
	leader uint64
	// minorityStayed is set when a change of the members left half of the
	// voters, or fewer, in office: see stalemate.
	minorityStayed bool
	// densifying is set while logs are to have no coded entries.
	densifying bool
	// stamp numbers the calls and returns of clients, in order.
	stamp int64

	failure *world.Violation
}

// ending is how far the end of a run has come: see finale.
type ending struct {
	// live says that the cluster is live again; took is the time that this took.
	live bool
	took time.Duration
	// resting says that silence is due: see rest.
	resting bool
	// done says that the run is over.
	done bool
}

// provoker hears of the moments at which bad luck hurts most, and makes things go wrong.
// It is [faults]; what happens in the world does not depend on which faults there are.
type provoker interface {
	// happens hears of a node's work, and meets of work that matters in joints only.
	happens(n *node, now moment)
	meets(n *node, now moment)
	// elected hears of a new leader, committed of an entry that a leader commits.
	elected(n *node, term uint64)
	committed(n *node, e entryName)
	// leaseSent hears of each message that leaves.
	leaseSent(n *node, m *pb.Message)
	// torn hears of a write that a loss of power tears.
	torn(n *node)
	// crash ends a node's process or its machine, and starts the node again later.
	crash(n *node)
}

func (s *sim) snapshotBusy() bool {
	busy := !s.calm() && s.rng.Chance(s.plan.busySnap)
	if busy {
		s.reach.SnapshotsBusy++
	}
	return busy
}

// calm reports whether the faults are over.
func (s *sim) calm() bool { return s.net.IsCalm() }

// join makes a node for a possible member, if the node does not exist, and
// starts the node if its host had shut it down.
func (s *sim) join(id uint64) {
	n := s.node(id)
	if n.disk == nil {
		n.disk = newDisk(nil, s.snapshotBusy)
		n.start()
		return
	}
	if n.retired {
		s.reach.Returns++
		n.restart()
	}
}

func (s *sim) node(id uint64) *node { return s.nodes[id-1] }

// running returns the nodes whose process runs, paused or not.
func (s *sim) running() []*node {
	return slices.DeleteFunc(slices.Clone(s.nodes), func(n *node) bool { return !n.up() })
}

// leading returns the node that leads the highest term, or nil.
func (s *sim) leading() *node {
	var best *node
	for _, n := range s.nodes {
		if n.up() && n.proc.leads() && (best == nil || s.check.nodes[n.id].hard.term > s.check.nodes[best.id].hard.term) {
			best = n
		}
	}
	return best
}

func (s *sim) leaderElected(n *node, term uint64) {
	s.reach.Elections++
	if s.leader != n.id {
		s.reach.LeaderChanges++
	}
	s.leader = n.id
	s.tell(n.id, "leads term %d", term)
	s.faults.elected(n, term)
}

func (s *sim) founders() []raft.Peer {
	var peers []raft.Peer
	for _, id := range s.foundingConf().GetVoters() {
		peers = append(peers, raft.Peer{ID: id})
	}
	return peers
}

func (s *sim) foundingConf() *pb.ConfState {
	conf := &pb.ConfState{}
	for id := uint64(1); id <= uint64(s.plan.voters); id++ {
		conf.Voters = append(conf.Voters, id)
	}
	return conf
}

// tell adds a line to the story.
func (s *sim) tell(node uint64, format string, args ...any) {
	s.story.Tell(node, format, args...)
}

// fail records the first invariant that does not hold; the run ends.
func (s *sim) fail(invariant, format string, args ...any) {
	if s.failure != nil {
		return
	}
	s.failure = &world.Violation{Invariant: invariant, At: s.Now(), Detail: fmt.Sprintf(format, args...)}
	s.tell(0, "VIOLATION %s: %s", invariant, s.failure.Detail)
	s.tellCoding()
}

// tellMessage adds a line about a message that reached a node, or did not.
func (s *sim) tellMessage(node uint64, verb string, m *pb.Message) {
	s.story.Write(node, func(line []byte) []byte { return appendMessage(append(line, verb...), m) })
}

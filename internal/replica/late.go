// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package replica

import (
	"fmt"

	"go.etcd.io/raft/v3/quorum"
	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/internal/encoded"
	"github.com/weftraft/weft/storage"
)

// lateness watches whether the log gets on, in ticks.
//
// A disk that hangs returns no error. The leader's own writes then never become durable, while
// its heartbeats go on, and its followers store and acknowledge all the same. Nothing that such a
// leader has in its log is applied by the leader, so its bound on uncommitted entries fills up,
// and the group stands still under a leader that everybody hears. Followers see nothing of it.
// So the leader has to see it, and to go (stalling).
//
// Late is relative. A disk without an end of a write for an election timeout is late, and takes no
// new commands. But if all disks are that slow, a change of leaders would only lose time, and would
// begin again with the next write. A leader therefore goes if a majority is known to do better
// (outrun), or may do better (level with the log, so nothing is known).
type lateness struct {
	ended uint64 // writes that have ended, as of the last look
	since uint64 // the tick since which a write waits and none has ended
}

// look takes the number of ended writes, and whether some wait.
func (l *lateness) look(ended uint64, waits bool, tick uint64) {
	if !waits || ended != l.ended {
		l.ended, l.since = ended, tick
	}
}

// reason returns why the log counts as late, or nil. A write may have come just after the look at
// since, so late is only what has waited for a tick more.
func (l *lateness) reason(tick uint64, electionTick int) error {
	if waited := tick - l.since; waited > uint64(electionTick) {
		return fmt.Errorf("%w: writes wait, and none has ended for %d ticks; if that goes on, look at the disk, and move or stop this node", storage.ErrLate, waited)
	}
	return nil
}

// standing is a leader's log, compared with those of the others.
type standing int

const (
	idle   standing = iota // the leader's log is durable to its end
	level                  // a majority has not more than the leader
	outrun                 // a majority has, durably, what the leader has not
)

// standing compares this leader's log with what a majority has. The commit index would not do: a
// coded entry may need the leader's own copy to be committed.
func (s *stalling) standing() standing {
	config, progress := s.core.Members()
	own, ahead := progress[s.cfg.ID].Match, map[uint64]bool{}
	for id, p := range progress {
		ahead[id] = p.Match > own
	}
	switch {
	case config.Voters.VoteResult(ahead) == quorum.VoteWon:
		return outrun
	case own < s.last:
		return level
	}
	return idle
}

// intake bounds the entries that followers take while the node cannot write, over all groups of the node.
//
// A leader has MaxInflightBytes under way to a follower, in each group, and the groups of a node have one disk: with
// a thousand groups, a disk that hangs or is full would fill the memory. So what arrives meanwhile takes from the Budget of the node's
// commands, of which it takes none then. An append that finds no room is lost, as in a network; heartbeats and votes are not.
// When the disk goes on, the leader hears where this log ends, and sends the rest again.
//
// Invariant: held is 0 if nothing waits to be written, as of the last end of a write, or the last tick without a stall.
type intake struct {
	*facts
	held int // bytes of the budget
}

// admits reports whether a message is to be taken.
func (i *intake) admits(m *pb.Message) bool {
	if i.stalled == nil || m.GetType() != pb.MsgApp {
		return true
	}
	bytes := encoded.Size(m.GetEntries()...)
	if !i.cfg.Budget.has(bytes) {
		i.count.AppendsLost++
		return false
	}
	i.held += bytes
	return true
}

// wrote gives back the bytes of a write that has ended, or all.
func (i *intake) wrote(bytes int, all bool) {
	if i.held == 0 {
		return
	}
	if bytes = min(bytes, i.held); all {
		bytes = i.held
	}
	i.cfg.Budget.give(bytes)
	i.held -= bytes
}

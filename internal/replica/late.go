// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package replica

import (
	"fmt"

	"go.etcd.io/raft/v3/quorum"
	pb "go.etcd.io/raft/v3/raftpb"

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
	full  error  // the driver's reason; a full disk is not late
	ended uint64 // writes that have ended, as of the last look
	since uint64 // the tick since which a write waits and none has ended
}

// look takes the number of ended writes, and whether some wait.
func (l *lateness) look(ended uint64, waits bool, tick uint64) {
	if !waits || ended != l.ended {
		l.ended, l.since = ended, tick
	}
}

// reason returns why the log does not get on, or nil. A write may have come just after the look at
// since, so late is only what has waited for a tick more.
func (l *lateness) reason(tick uint64, electionTick int) error {
	if waited := tick - l.since; l.full == nil && waited > uint64(electionTick) {
		return fmt.Errorf("%w: writes wait, and none has ended for %d ticks; if that goes on, look at the disk, and move or stop this node", storage.ErrLate, waited)
	}
	return l.full
}

// lookAtLog looks whether the log gets on. The log's own word, if there is one, has the writes of all
// groups, so that one group's write that hangs moves the leaders of all.
func (r *Replica) lookAtLog() {
	ended, waits := r.writes.durable, r.writes.durable < r.writes.handedOut
	if l, ok := r.cfg.Log.(interface {
		Progress() (ended uint64, waits bool)
	}); ok {
		e, w := l.Progress()
		ended, waits = ended+e, waits || w
	}
	r.slow.look(ended, waits, r.ticks)
	r.stallFor(r.slow.reason(r.ticks, r.cfg.ElectionTick))
}

// late reports whether the log stalls because its disk is late.
func (r *Replica) late() bool { return r.stall.reason != nil && r.slow.full == nil }

// standing is a leader's log, compared with those of the others.
type standing int

const (
	idle   standing = iota // the leader's log is durable to its end
	level                  // a majority has not more than the leader
	outrun                 // a majority has, durably, what the leader has not
)

// standing compares this leader's log with what a majority has. The commit index would not do: a
// coded entry may need the leader's own copy to be committed.
func (r *Replica) standing() standing {
	config, progress := r.core.Members()
	own, ahead := progress[r.cfg.ID].Match, map[uint64]bool{}
	for id, p := range progress {
		ahead[id] = p.Match > own
	}
	switch {
	case config.Voters.VoteResult(ahead) == quorum.VoteWon:
		return outrun
	case own < r.last:
		return level
	}
	return idle
}

// fallSilent ends a leadership that nobody takes over: see silenced.
func (r *Replica) fallSilent() {
	if !r.stall.silent {
		r.stall.silent = true
		r.count.Silences++
	}
}

// silenced reports whether a message of the core is lost because this leader is silent. The
// followers then elect another, and the core, which gets no answers, steps down. Both cores can do
// that, and no safety rests on it: any network may lose these messages.
func (r *Replica) silenced(m *pb.Message) bool {
	if !r.stall.silent || !r.leads() {
		return false
	}
	switch m.GetType() {
	case pb.MsgApp, pb.MsgHeartbeat, pb.MsgSnap:
		return true
	}
	return false
}

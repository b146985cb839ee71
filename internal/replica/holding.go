// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package replica

import (
	"cmp"
	"slices"
	"time"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/internal/wire"
)

// holding has a leader's appends to readers wait for a moment, and joins each with the appends that continue it. No
// write waits for a reader, and an append with its acknowledgement costs the leader about the same with one entry as with
// a hundred.
//
// A joined append has the place and the term of the first, the entries of all, and the commit index of the last. It is
// an append that a leader could have sent: the entries stand in its log one behind the other, and its commit index has not
// fallen meanwhile. So a follower takes it as one that was late, and no rule of Raft knows of it.
//
// Invariant: a member is sent what the core has made for it, in this order; appends may be joined with those before.
// Invariant: a held append ends where the log ended at the end of the last turn, so a member that lacks entries, and is sent
// them as it acknowledges others, never waits.
// Invariant: nothing is held for longer than longest, if the driver polls in time; and at most maxBytes, or one append.
type holding struct {
	longest  time.Duration // 0: nothing is held
	maxBytes int           // of the entries of a joined append

	rows   []*heldFor // by member
	change uint64     // index of the last change of members that a row's member was sent
	joined uint64     // appends that left with the one before
}

// heldFor is what is held for a member.
type heldFor struct {
	to    uint64
	ended bool         // the member is sent all, and the row goes
	msg   wire.Message // Body is nil: nothing
	app   wire.Raft    // the body
	own   bool         // app's Message is not the core's
	bytes int          // of its entries
	since time.Duration
	end   uint64 // the last index
	term  uint64 // of the entry there
}

const (
	// maxHold bounds how long an append waits for others, and so does a part of a tick: readers of a group with faster
	// ticks are to be as much fresher.
	maxHold      = 5 * time.Millisecond
	holdsOfATick = 10
	// maxJoined bounds the entries of a joined append.
	maxJoined = wire.MaxRun
)

// members says for whom appends may be held from now on, ascending. What is held for others leaves with the next turn.
func (h *holding) members(ids []uint64) {
	for _, row := range h.rows {
		row.ended = !slices.Contains(ids, row.to)
	}
	for _, id := range ids {
		i, ok := h.find(id)
		if !ok {
			h.rows = slices.Insert(h.rows, i, &heldFor{to: id})
		}
	}
}

// letGo has what is held for a member leave with the turn, and nothing be held for it until members says so again.
func (h *holding) letGo(id uint64) {
	if i, ok := h.find(id); ok {
		h.rows[i].ended = true
	}
}

func (h *holding) find(id uint64) (int, bool) {
	return slices.BinarySearchFunc(h.rows, id, func(row *heldFor, id uint64) int { return cmp.Compare(row.to, id) })
}

// turn takes the messages of a turn, and returns those that are to leave. last is where the log ends.
func (h *holding) turn(messages []wire.Message, now time.Duration, last uint64) []wire.Message {
	if len(h.rows) == 0 {
		return messages
	}
	out := make([]wire.Message, 0, len(messages))
	for _, m := range messages {
		i, ok := h.find(m.To)
		if !ok {
			out = append(out, m)
			continue
		}
		row := h.rows[i]
		app, plain := plainAppend(m)
		switch {
		case !plain || row.ended:
			out = append(row.leave(out), m)
		case row.continues(app) && h.hasRoom(row, app):
			row.join(app)
			h.joined++
		default:
			out = row.leave(out)
			row.begin(m, app, now)
		}
		if change := changeIn(app); change > 0 {
			h.change, row.ended = max(h.change, change), true
		}
	}
	h.rows = slices.DeleteFunc(h.rows, func(row *heldFor) bool {
		if row.ended || row.end != last || now-row.since >= h.longest {
			out = row.leave(out)
		}
		return row.ended
	})
	return out
}

// deadline returns when the next append is to leave; false: none is held.
func (h *holding) deadline() (at time.Duration, due bool) {
	for _, row := range h.rows {
		if row.msg.Body != nil && (!due || row.since+h.longest < at) {
			at, due = row.since+h.longest, true
		}
	}
	return at, due
}

func (h *holding) hasRoom(row *heldFor, app wire.Raft) bool {
	return row.bytes+dataOf(app) <= h.maxBytes && len(row.app.Entries)+len(app.Entries) <= maxJoined
}

// plainAppend returns the append in a message, or false if the message is another one, or has more than an append needs.
func plainAppend(m wire.Message) (wire.Raft, bool) {
	b, ok := m.Body.(wire.Raft)
	if !ok || m.Background || b.GetType() != pb.MsgApp {
		return wire.Raft{}, false
	}
	return b, b.Context == nil && b.Snapshot == nil && b.Reject == nil && b.RejectHint == nil && b.Vote == nil && len(b.Responses) == 0 &&
		len(b.ProtoReflect().GetUnknown()) == 0
}

// changeIn returns the index of the last change of members in an append, or 0.
func changeIn(app wire.Raft) (index uint64) {
	if app.Message == nil {
		return 0
	}
	for _, e := range app.Entries {
		if e.GetType() != pb.EntryNormal {
			index = e.GetIndex()
		}
	}
	return index
}

// dataOf returns the length of an append's data, as sent.
func dataOf(app wire.Raft) int {
	n := -app.Saves
	for _, e := range app.Entries {
		n += len(e.GetData())
	}
	return n
}

// endOf returns the last entry of an append, or where it stands, if it has none.
func endOf(app wire.Raft) (index, term uint64) {
	if n := len(app.Entries); n > 0 {
		return app.Entries[n-1].GetIndex(), app.Entries[n-1].GetTerm()
	}
	return app.GetIndex(), app.GetLogTerm()
}

// begin holds an append.
func (row *heldFor) begin(m wire.Message, app wire.Raft, now time.Duration) {
	row.msg, row.app, row.own, row.since, row.bytes = m, app, false, now, dataOf(app)
	row.end, row.term = endOf(app)
}

// continues reports whether an append goes on where the held one ends.
func (row *heldFor) continues(app wire.Raft) bool {
	h := row.app
	return row.msg.Body != nil && app.GetTerm() == h.GetTerm() && app.GetIndex() == row.end && app.GetLogTerm() == row.term &&
		app.GetCommit() >= h.GetCommit() && app.Digests == h.Digests && app.OwnForm == h.OwnForm && app.ClearPrefix == h.ClearPrefix
}

// join adds an append to the held one, of which nothing is changed that the core has made.
func (row *heldFor) join(app wire.Raft) {
	if m := row.app.Message; !row.own {
		row.app.Message = &pb.Message{
			Type: m.Type, To: m.To, From: m.From, Term: m.Term, LogTerm: m.LogTerm, Index: m.Index,
			Entries: append(make([]*pb.Entry, 0, 2*(len(m.Entries)+len(app.Entries))), m.Entries...),
		}
		row.own = true
	}
	row.app.Entries = append(row.app.Entries, app.Entries...)
	row.app.Commit = app.Commit
	row.app.Saves += app.Saves
	row.bytes += dataOf(app)
	row.end, row.term = endOf(app)
}

// leave adds what is held to the messages that are to leave.
func (row *heldFor) leave(out []wire.Message) []wire.Message {
	if row.msg.Body != nil {
		row.msg.Body = row.app
		out = append(out, row.msg)
	}
	*row = heldFor{to: row.to, ended: row.ended}
	return out
}

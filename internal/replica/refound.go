// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package replica

import (
	"errors"
	"fmt"
	"hash/fnv"
	"math"
	"slices"
	"strings"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/raft"
	"github.com/weftraft/weft/storage"
)

// A group can begin anew with a state that an earlier group has left: as a copy, in a
// cluster of its own, or after the loss of a majority. The new group must never take a
// message of the earlier one for its own, nor of a node that was started without the state:
// such a node would vote against what the new group counts as committed. So a group that
// begins anew has a mark among its first members, which stands for no node. The digest
// in each message tells the two groups apart, as it tells groups apart that were begun with
// different members.

// Mark makes a mark from bytes that no other new beginning has.
func Mark(unique []byte) uint64 {
	h := fnv.New64a()
	_, _ = h.Write(unique) // never fails
	return h.Sum64()&(markBit-1) | markBit
}

// firstNames returns first members in words. mark is which of these is a mark; 0: not known.
func firstNames(first []uint64, mark uint64) string {
	names := make([]string, len(first))
	for i, id := range first {
		anew := fmt.Sprintf("begun anew with an earlier state (%x)", id&(markBit-1))
		switch {
		case id == mark:
			names[i] = anew
		case mark == 0 && isMark(id):
			names[i] = fmt.Sprintf("%s, or node %d", anew, id)
		default:
			names[i] = fmt.Sprint(id)
		}
	}
	return "[" + strings.Join(names, " ") + "]"
}

// Refounding is the new beginning of a group.
type Refounding struct {
	// Index and Term are where the log begins, behind all that the state has. Index is
	// 2 or more, Term 1 or more.
	Index, Term uint64
	// Voters are the first members.
	Voters []uint64
	// Mark is the result of [Mark].
	Mark uint64
	// Host is the host's bytes of the state, whose commands are then not applied a second
	// time; or nil, for a state of another cluster.
	Host []byte
}

// Begin returns the host's bytes for the state, which the state machine keeps with it at
// Index, and the write that begins the log. The state must be durable before the log is.
func (f Refounding) Begin() (host []byte, log *storage.Write, err error) {
	if f.Index < 2 || f.Index == math.MaxUint64 || f.Term < 1 || len(f.Voters) == 0 || !isMark(f.Mark) {
		return nil, nil, fmt.Errorf("%w: a group cannot begin anew at index %d, term %d, with voters %v", ErrInvalid, f.Index, f.Term, f.Voters)
	}
	h := &hostState{origins: originTable{}}
	if len(f.Host) > 0 {
		if h, err = decodeHostState(f.Host); err != nil {
			return nil, nil, err
		}
		if h.at.index >= f.Index {
			return nil, nil, fmt.Errorf("%w: a group cannot begin anew at index %d with a state of index %d", ErrInvalid, f.Index, h.at.index)
		}
	}
	voters := slices.Sorted(slices.Values(f.Voters))
	h.at = logMark{term: f.Term, index: f.Index}
	h.conf = pb.EnsureConfState(&pb.ConfState{Voters: voters})
	h.origins.setFirst(voters, f.Mark)
	host = h.encode()
	return host, &storage.Write{
		Snapshot:  &pb.Snapshot{Metadata: h.meta(), Data: host},
		HardState: &pb.HardState{Term: new(f.Term), Vote: new(raft.None), Commit: new(f.Index)},
	}, nil
}

// RestoreBegun is what a log has, and nothing else, while a state is restored with which the log is to begin. Without it a
// node whose restore was interrupted would look like one that was never started, and begin an empty group. Term 1 ends with
// the write that begins the log, and no message has it.
func RestoreBegun() *pb.HardState {
	return &pb.HardState{Term: new(firstMark.term), Vote: new(raft.None), Commit: new(uint64(0))}
}

// IsRestoreBegun reports whether a log has [RestoreBegun] and nothing else.
func IsRestoreBegun(hs *pb.HardState, last uint64) bool {
	return last == 0 && hs.GetTerm() == firstMark.term && hs.GetVote() == raft.None && hs.GetCommit() == 0
}

// Founded is what the host's bytes say of a group.
type Founded struct {
	Index, Term uint64
	Members     *pb.ConfState
	// Mark is that of the latest new beginning, or 0.
	Mark uint64
}

// ReadFounded reads the host's bytes.
func ReadFounded(host []byte) (Founded, error) {
	h, err := decodeHostState(host)
	if err != nil {
		return Founded{}, err
	}
	return Founded{Index: h.at.index, Term: h.at.term, Members: h.conf, Mark: h.origins.mark()}, nil
}

// ErrCodedTail says that a log has a coded entry that the state lacks.
var ErrCodedTail = errors.New("the log cannot be read to its end by this node alone")

var errEmptyLog = errors.New("the log is empty: nothing survived at this node")

// LogTail is a log as its last entry left the log: all entries count as committed, and no
// entry is ever written. A replica on a LogTail applies all entries stored by a node,
// acknowledged by a majority or not.
type LogTail struct {
	Log
	first, last, term uint64
	committed         uint64 // of the entries, the last that the log knows to be committed
	// ahead is the place of a state that is ahead of the log, or zero: then the tail is empty.
	ahead logMark
}

// NewLogTail returns the tail of a log behind an applied index. host is the host's bytes of the state,
// or nil, if the applied index is known from the log itself. Of a state that is ahead of the log
// ([PrepareLog] says how that comes) the tail is empty, because the log has nothing that the
// state lacks, and what the log has at the index and behind was never committed. An error says that the log
// does not fit the index, or that an entry is coded: the node has units of its payload, not
// the payload ([ErrCodedTail]); then the tail, which ends before that entry, comes with the error.
// clear is raft.Coding.ClearPrefix.
func NewLogTail(log Log, applied uint64, host []byte, clear int) (*LogTail, error) {
	hs, _, err := log.InitialState()
	if err != nil {
		return nil, err
	}
	last, err := log.LastIndex()
	if err != nil {
		return nil, err
	}
	first, err := log.FirstIndex()
	if err != nil {
		return nil, err
	}
	if raft.IsEmptyHardState(hs) {
		return nil, errEmptyLog
	}
	if applied == 0 && first == firstMark.index+1 {
		applied = firstMark.index // the empty state
	}
	if ahead, err := aheadOf(log, last, host); err != nil {
		return nil, err
	} else if at := ahead.index; at > 0 && at == applied && at+1 >= first {
		return &LogTail{Log: log, first: at + 1, last: at, term: max(ahead.term, hs.GetTerm()), committed: at, ahead: ahead}, nil
	}
	if applied+1 < first || applied > last {
		return nil, fmt.Errorf("%w: the state machine is at index %d, the log has the entries %d to %d: open the node once, which brings both together if that is possible", ErrState, applied, first, last)
	}
	t := &LogTail{Log: log, first: applied + 1, last: last, committed: max(applied, min(hs.GetCommit(), last))}
	if t.term, err = log.Term(last); err != nil {
		return nil, err
	}
	t.term = max(t.term, hs.GetTerm())
	coded, err := FindCoded(t, clear)
	if err == nil && coded != 0 {
		t.last = coded - 1
		err = fmt.Errorf("%w: entry %d is coded: this node has a part of its payload, the other members had the rest", ErrCodedTail, coded)
	}
	return t, err
}

// aheadOf returns the place of a state, given the host's bytes, if the log does not have the entry there.
func aheadOf(log Log, last uint64, host []byte) (logMark, error) {
	if len(host) == 0 {
		return logMark{}, nil
	}
	h, err := decodeHostState(host)
	if err != nil {
		return logMark{}, err
	}
	if h.at.index > last {
		return h.at, nil
	}
	term, err := log.Term(h.at.index)
	if errors.Is(err, raft.ErrCompacted) || err == nil && term == h.at.term {
		return logMark{}, nil
	}
	return h.at, err
}

// Last returns the last entry's index, and the highest term that the log has heard of.
func (t *LogTail) Last() (index, term uint64) { return t.last, t.term }

// Ahead returns the place of a state that is ahead of the log, and whether it is.
func (t *LogTail) Ahead() (index, term uint64, ok bool) {
	return t.ahead.index, t.ahead.term, t.ahead.index > 0
}

// Committed returns the tail without the entries that may not be committed.
func (t *LogTail) Committed() *LogTail {
	c := *t
	c.last = min(t.committed, t.last)
	return &c
}

// InitialState implements raft.Storage.
func (t *LogTail) InitialState() (*pb.HardState, *pb.ConfState, error) {
	hs, conf, err := t.Log.InitialState()
	if err != nil {
		return nil, nil, err
	}
	return &pb.HardState{Term: hs.Term, Vote: hs.Vote, Commit: new(t.last)}, conf, nil
}

// Term implements raft.Storage.
func (t *LogTail) Term(i uint64) (uint64, error) {
	if i > 0 && i == t.ahead.index {
		return t.ahead.term, nil
	}
	return t.Log.Term(i)
}

// FirstIndex implements raft.Storage.
func (t *LogTail) FirstIndex() (uint64, error) { return t.first, nil }

// LastIndex implements raft.Storage.
func (t *LogTail) LastIndex() (uint64, error) { return t.last, nil }

// Append implements [Log].
func (t *LogTail) Append(_ storage.Write, done func(error)) error {
	if done != nil {
		done(nil)
	}
	return nil
}

// SetSnapshot implements [Log].
func (t *LogTail) SetSnapshot(*pb.SnapshotMetadata, []byte) error { return nil }

// Compact implements [Log].
func (t *LogTail) Compact(uint64) error { return nil }

// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package raft

import (
	"errors"
	"fmt"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/ecraft"
	"github.com/weftraft/weft/raft/internal/electorate"
)

// raftLog is the log as the protocol sees it: Storage, behind Storage the tail not yet
// written, and the indexes of commit and apply.
//
// Storage may fail. The first failure is kept in err, and from then on the log answers
// as if the requested entries did not exist. The state machine finishes its step on
// these answers and then shows the error instead of any outcome (as bufio.Writer does
// with a failed write), because the protocol itself cannot repair a failed Storage.
type raftLog struct {
	storage Storage
	logger  Logger
	tail    tail
	// err is the first unexpected error of storage, and wraps ErrStorage.
	err error

	// committed is the highest index known to be committed.
	//
	// Invariant: never falls, and is at most the last index.
	committed uint64
	// node is the owner.
	node logOwner
	// applying and its neighbours: see applying.go.
	hostProgress
}

// logOwner is told of every change of the log, and has the extensions, whose brakes and
// forms count for what the host is handed. The owner is the node; the log knows no more
// of it.
type logOwner interface {
	appended(ents []*pb.Entry)
	truncated(from uint64)
	roseCommit(from, to uint64)
	restoring(index uint64)
	seam() extension
	unwritten() *early
}

// openLog reads the bounds of storage. A starting node knows the snapshot's entries as
// committed and applied, and is told the rest.
func openLog(storage Storage, logger Logger, maxApplying entryEncodingSize) (*raftLog, error) {
	l := &raftLog{storage: storage, logger: logger}
	first, err := storage.FirstIndex()
	if err != nil {
		return nil, fmt.Errorf("%w: FirstIndex: %w", ErrStorage, err)
	}
	last, err := storage.LastIndex()
	if err != nil {
		return nil, fmt.Errorf("%w: LastIndex: %w", ErrStorage, err)
	}
	term, err := storage.Term(last)
	if err != nil {
		return nil, fmt.Errorf("%w: Term of the last index %d: %w", ErrStorage, last, err)
	}
	l.tail.base = ecraft.ID{Term: term, Index: last}
	l.committed = first - 1
	l.hostProgress = hostProgress{applying: first - 1, applied: first - 1, limit: maxApplying}
	return l, nil
}

// fail takes the log out of service.
func (l *raftLog) fail(err error, format string, args ...any) {
	if l.err == nil {
		l.err = fmt.Errorf("%w: %s: %w", ErrStorage, fmt.Sprintf(format, args...), err)
		l.logger.Error(l.err)
	}
}

// last returns the end of the log; index 0, term 0 for an empty log.
func (l *raftLog) last() ecraft.ID { return l.tail.last() }

// firstIndex returns the index of the first uncompacted entry.
func (l *raftLog) firstIndex() uint64 {
	if s := l.tail.snapshot; s != nil {
		return s.GetMetadata().GetIndex() + 1
	}
	return l.storedFirst()
}

// storedFirst returns the first index of Storage, as a restarted process would find it.
func (l *raftLog) storedFirst() uint64 {
	first, err := l.storage.FirstIndex()
	if err != nil {
		l.fail(err, "FirstIndex")
		return l.tail.base.Index + 1
	}
	return first
}

// term returns the term of entry i, down to the entry just before the first;
// ErrCompacted below, ErrUnavailable above.
func (l *raftLog) term(i uint64) (uint64, error) {
	if t, ok := l.tail.term(i); ok {
		return t, nil
	}
	if i > l.tail.base.Index {
		return 0, ErrUnavailable
	}
	if i+1 < l.firstIndex() {
		return 0, ErrCompacted
	}
	t, err := l.storage.Term(i)
	if err != nil && !errors.Is(err, ErrCompacted) && !errors.Is(err, ErrUnavailable) {
		l.fail(err, "Term(%d)", i)
		return 0, ErrUnavailable
	}
	return t, err
}

// holds reports whether id is in the log, or just before its first entry.
func (l *raftLog) holds(id ecraft.ID) bool {
	t, err := l.term(id.Index)
	return err == nil && t == id.Term
}

// appendAfter replaces the entries behind after. Only the leader of the term, and
// followers on its word, append.
func (l *raftLog) appendAfter(after ecraft.ID, ents []*pb.Entry) {
	if len(ents) == 0 {
		return
	}
	if first := ents[0].GetIndex(); first != after.Index+1 {
		l.logger.Panicf("raft: entry %d would stand behind entry %d", first, after.Index)
	}
	if after.Index < l.committed {
		l.logger.Panicf("raft: append at %d would replace committed entries (commit index %d)", after.Index+1, l.committed)
	}
	if after.Index < l.last().Index {
		l.node.truncated(after.Index + 1)
	}
	l.tail.append(after, ents)
	l.node.appended(ents)
}

// cut drops the entries from an index on, which are not committed.
func (l *raftLog) cut(from uint64) {
	term, err := l.term(from - 1)
	if err != nil {
		l.fail(err, "the entry before %d, where the log is cut", from)
		return
	}
	l.node.truncated(from)
	l.tail.append(ecraft.ID{Term: term, Index: from - 1}, nil)
}

// firstNew returns the position in ents, which follow prev, of the first entry missing
// from the log, and the entry before.
func (l *raftLog) firstNew(prev ecraft.ID, ents []*pb.Entry) (int, ecraft.ID) {
	for i, e := range ents {
		id := idOf(e)
		if !l.holds(id) {
			return i, prev
		}
		prev = id
	}
	return len(ents), prev
}

// match returns the last position, at or before upTo.index, at which this log may agree
// with another log whose term at upTo.index is at most upTo.term. Terms never fall
// along a log, so entries of higher terms here cannot be in the other log. Where a term
// is unknown (compacted) match assumes agreement, and returns term 0.
//
// Both sides skip whole terms by match, so finding the point of divergence takes a
// round trip a term, not a round trip an entry (thesis 3.5, end).
func (l *raftLog) match(upTo ecraft.ID) ecraft.ID {
	for i := upTo.Index; i > 0; i-- {
		t, err := l.term(i)
		if err != nil {
			return ecraft.ID{Index: i}
		}
		if t <= upTo.Term {
			return ecraft.ID{Term: t, Index: i}
		}
	}
	return ecraft.ID{}
}

// commitTo raises the commit index; a lower k changes nothing.
func (l *raftLog) commitTo(index uint64) {
	if index <= l.committed {
		return
	}
	if last := l.last().Index; index > last {
		l.logger.Panicf("raft: commit index %d lies beyond the last index %d: was the log damaged, truncated or lost?", index, last)
	}
	from := l.committed
	l.committed = index
	l.node.roseCommit(from, index)
}

// from returns entries from index lo on, up to maxSize bytes but at least one unless
// there is none. ErrCompacted if lo is compacted.
func (l *raftLog) from(lo uint64, maxSize entryEncodingSize) ([]*pb.Entry, error) {
	last := l.last().Index
	if lo > last {
		return nil, nil
	}
	return l.slice(lo, last+1, maxSize)
}

// slice returns the entries in [lo, hi), up to maxSize bytes but at least one unless
// the range is empty. The caller may append to the slice.
func (l *raftLog) slice(lo, hi uint64, maxSize entryEncodingSize) ([]*pb.Entry, error) {
	if lo > l.tail.base.Index {
		return limitClipped(l.tail.slice(lo, hi), maxSize), nil
	}
	if lo < l.firstIndex() {
		return nil, ErrCompacted
	}
	cut := min(hi, l.tail.base.Index+1)
	stored, err := l.storage.Entries(lo, cut, uint64(maxSize))
	if errors.Is(err, ErrCompacted) {
		return nil, ErrCompacted
	}
	if err != nil {
		l.fail(err, "Entries(%d, %d)", lo, cut)
		return nil, l.err
	}
	if hi == cut || uint64(len(stored)) < cut-lo {
		return stored, nil // all of it, or cut short by maxSize
	}
	if size := encodingSize(stored); size < maxSize {
		more := limitSize(l.tail.slice(cut, hi), maxSize-size)
		if size+encodingSize(more) <= maxSize { // a single entry may exceed what is left
			return join(stored, more), nil
		}
	}
	return stored, nil
}

// entry returns one entry.
func (l *raftLog) entry(index uint64) (*pb.Entry, error) {
	if index < l.firstIndex() || index > l.last().Index {
		return nil, ErrUnavailable
	}
	ents, err := l.slice(index, index+1, noLimit)
	if err != nil || len(ents) == 0 {
		return nil, errors.Join(ErrUnavailable, err)
	}
	return ents[0], nil
}

func limitClipped(ents []*pb.Entry, maxSize entryEncodingSize) []*pb.Entry {
	ents = limitSize(ents, maxSize)
	return ents[:len(ents):len(ents)]
}

// join concatenates without room to spare.
func join(a, b []*pb.Entry) []*pb.Entry {
	if len(a)+len(b) <= cap(a) {
		return append(a, b...)
	}
	both := make([]*pb.Entry, 0, len(a)+len(b))
	return append(append(both, a...), b...)
}

// snapshot returns the newest snapshot there is; the caller owns it.
func (l *raftLog) snapshot() (*pb.Snapshot, error) {
	if s := l.tail.snapshot; s != nil {
		return cloneSnapshot(s), nil
	}
	return l.storage.Snapshot()
}

// restore makes the snapshot the whole log.
func (l *raftLog) restore(s *pb.Snapshot) {
	l.node.restoring(s.GetMetadata().GetIndex())
	l.node.unwritten().forget()
	l.committed = s.GetMetadata().GetIndex()
	l.tail.replace(s)
}

// anyUnappliedConfChange reports whether an entry in (applied, committed] changes the
// configuration. Reading goes page by page, so that a node far behind does not load its
// whole log.
func (l *raftLog) anyUnappliedConfChange() bool {
	for lo, hi := l.applied+1, l.committed+1; lo < hi; {
		ents, err := l.slice(lo, hi, l.limit)
		if err != nil || len(ents) == 0 {
			l.fail(errors.Join(err, ErrUnavailable), "looking for configuration changes in [%d, %d)", lo, hi)
			return true
		}
		for _, e := range ents {
			if electorate.IsChange(e) {
				return true
			}
		}
		lo += uint64(len(ents))
	}
	return false
}

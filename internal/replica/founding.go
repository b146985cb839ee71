// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package replica

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"slices"

	"github.com/weftraft/weft/internal/wire"
)

// A group is what its first members agreed on. If nodes are started with different
// first members (Config.Peers), several groups begin under one number: each has
// a majority by its own list, and acknowledges writes. Raft does not see that, because
// their logs begin alike: one could overwrite the other.
//
// So a node keeps who the first members were, and each Raft message carries a digest
// of them. A message of another group is not looked at, but for its digest. Both ends
// then send each other their lists, and say both in an error. A node whose log has no
// entry yet takes no part any more, and stops with that error once its peers had time to
// hear its list; any other goes on without the stranger, because nobody can tell which
// of the two was meant.
//
// The list begins with the log, and is in the host's state from the first entry on, so
// that a node which joins later gets it with its first snapshot. Until then such a node
// does not know it, and neither do nodes of a group that an earlier version began: what
// is not known is not compared.
type founding struct {
	*facts
	post func(to uint64, body wire.Body)
	firstMembers
	strangers map[uint64]stranger // by node
	// misfounded is the reason for this node to stop: the node would begin another group than
	// its peers. misfoundedAt is the tick of that finding.
	misfounded   error
	misfoundedAt uint64
}

// firstMembers are the list, as far as this node knows.
type firstMembers struct {
	members []uint64 // ascending, with the mark; empty: not known
	mark    uint64   // of a new beginning, see Refounding; 0: none
	digest  uint32   // 0: not known
}

// nodes returns the first members without the mark.
func (f firstMembers) nodes() []uint64 {
	if f.mark == 0 {
		return f.members
	}
	return slices.DeleteFunc(slices.Clone(f.members), func(id uint64) bool { return id == f.mark })
}

// foundedBy returns what a table says of the first members, if anything.
func foundedBy(table originTable) firstMembers {
	members := table.first()
	if len(members) == 0 {
		return firstMembers{}
	}
	var b []byte
	for _, id := range members {
		b = binary.BigEndian.AppendUint64(b, id)
	}
	return firstMembers{members, table.mark(), max(1, crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli)))}
}

// stranger is what is known of a peer whose group began with other first members.
type stranger struct {
	members []uint64 // empty: not known yet
	toldAt  uint64   // tick at which it was last sent this node's list
}

// fresh reports whether this node is a first member whose log has no entry yet.
func (f *founding) fresh() bool { return len(f.members) > 0 && f.last == firstMark.index }

// introduce sends the list of a fresh node to the members in the list, so that different
// lists are found before the first election. A node that has met strangers stops after two
// election timeouts, in which the strangers are sent the list: introduce returns why.
func (f *founding) introduce() error {
	if f.misfounded != nil && f.ticks-f.misfoundedAt >= 2*uint64(f.cfg.ElectionTick) {
		return f.misfounded
	}
	if !f.fresh() || f.ticks%uint64(f.cfg.ElectionTick) != 1 {
		return nil
	}
	for _, id := range f.nodes() {
		if id != f.cfg.ID {
			f.post(id, wire.First{Members: f.members})
		}
	}
	return nil
}

// belongs reports whether a Raft message comes from this node's group, and this node
// still takes part in it.
func (f *founding) belongs(from uint64, first uint32) bool {
	if first == 0 || f.digest == 0 || first == f.digest {
		if len(f.strangers) > 0 && f.misfounded == nil {
			delete(f.strangers, from) // it was started anew
		}
		return f.misfounded == nil
	}
	f.meet(from, nil)
	return false
}

// strange returns, for the error of a change, which of some nodes have begun a group of their own: mostly
// nodes that were to join, and were started as first members.
func (f *founding) strange(nodes ...uint64) (words string) {
	for _, id := range nodes {
		if s := f.strangers[id]; len(s.members) > 0 {
			words += fmt.Sprintf("; node %d has begun a group of its own, with the first members %s: start it anew as a node that joins, on an empty directory", id, firstNames(s.members, 0))
		}
	}
	return words
}

// receive takes a peer's list.
func (f *founding) receive(from uint64, its wire.First) {
	if len(f.members) > 0 && !slices.Equal(its.Members, f.members) {
		f.meet(from, its.Members)
	}
}

// meet notes a peer of another group, and the first members of that group if known. The
// peer is told this node's list, at most once in an election timeout; a list learnt of the
// peer is reported in words once.
func (f *founding) meet(from uint64, members []uint64) {
	f.count.Strangers++
	s, known := f.strangers[from]
	if !known || f.ticks-s.toldAt >= uint64(f.cfg.ElectionTick) {
		s.toldAt = f.ticks
		f.post(from, wire.First{Members: f.members})
	}
	news := len(members) > 0 && !slices.Equal(members, s.members)
	if news {
		s.members = members
	}
	f.strangers[from] = s
	if !news {
		return
	}
	err := fmt.Errorf("%w: node %d began group %d with the members %s, and node %d with %s", ErrFirstMembers, from, f.cfg.Group, firstNames(members, 0), f.cfg.ID, firstNames(f.members, f.mark))
	if !f.fresh() {
		f.cfg.Logger.Errorf("%v; nothing is taken from node %d: find out which of the two was started with the wrong first members, and replace it by a node with an empty log and an empty state that joins", err, from)
	} else if f.misfounded == nil {
		f.misfounded = fmt.Errorf("%w; this node's log has no entry yet: start all nodes with the same first members, those that were started with others on an empty log and an empty state; or, if this node was to be added to a group that runs, as one that joins, without first members", err)
		f.misfoundedAt = f.ticks
	}
}

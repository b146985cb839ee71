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
	members []uint64 // ascending, with the mark; empty: not known
	mark    uint64   // of a new beginning, see Refounding; 0: none
	digest  uint32   // 0: not known
}

// nodes returns the first members without the mark.
func (f founding) nodes() []uint64 {
	if f.mark == 0 {
		return f.members
	}
	return slices.DeleteFunc(slices.Clone(f.members), func(id uint64) bool { return id == f.mark })
}

// foundedBy returns what a table says of the first members, if anything.
func foundedBy(table originTable) founding {
	members := table.first()
	if len(members) == 0 {
		return founding{}
	}
	var b []byte
	for _, id := range members {
		b = binary.BigEndian.AppendUint64(b, id)
	}
	return founding{members, table.mark(), max(1, crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli)))}
}

// stranger is what is known of a peer whose group began with other first members.
type stranger struct {
	members []uint64 // empty: not known yet
	toldAt  uint64   // tick at which it was last sent this node's list
}

// fresh reports whether this node is a first member whose log has no entry yet.
func (r *Replica) fresh() bool { return len(r.founding.members) > 0 && r.last == firstMark.index }

// introduce sends the list of a fresh node to the members in the list, so that different
// lists are found before the first election. A node that has met strangers stops after two
// election timeouts, in which the strangers are sent the list.
func (r *Replica) introduce() {
	if r.misfounded != nil && r.ticks-r.misfoundedAt >= 2*uint64(r.cfg.ElectionTick) {
		r.fail(r.misfounded)
		return
	}
	if !r.fresh() || r.ticks%uint64(r.cfg.ElectionTick) != 1 {
		return
	}
	for _, id := range r.founding.nodes() {
		if id != r.cfg.ID {
			r.post(id, wire.First{Members: r.founding.members})
		}
	}
}

// belongs reports whether a Raft message comes from this node's group, and this node
// still takes part in it.
func (r *Replica) belongs(from uint64, first uint32) bool {
	if first == 0 || r.founding.digest == 0 || first == r.founding.digest {
		if len(r.strangers) > 0 && r.misfounded == nil {
			delete(r.strangers, from) // it was started anew
		}
		return r.misfounded == nil
	}
	r.meet(from, nil)
	return false
}

// strange returns, for the error of a change, which of some nodes have begun a group of their own: mostly
// nodes that were to join, and were started as first members.
func (r *Replica) strange(nodes ...uint64) (words string) {
	for _, id := range nodes {
		if s := r.strangers[id]; len(s.members) > 0 {
			words += fmt.Sprintf("; node %d has begun a group of its own, with the first members %s: start it anew as a node that joins, on an empty directory", id, firstNames(s.members, 0))
		}
	}
	return words
}

// receiveFirst takes a peer's list.
func (r *Replica) receiveFirst(from uint64, f wire.First) {
	if len(r.founding.members) > 0 && !slices.Equal(f.Members, r.founding.members) {
		r.meet(from, f.Members)
	}
}

// meet notes a peer of another group, and the first members of that group if known. The
// peer is told this node's list, at most once in an election timeout; a list learnt of the
// peer is reported in words once.
func (r *Replica) meet(from uint64, members []uint64) {
	r.count.Strangers++
	s, known := r.strangers[from]
	if !known || r.ticks-s.toldAt >= uint64(r.cfg.ElectionTick) {
		s.toldAt = r.ticks
		r.post(from, wire.First{Members: r.founding.members})
	}
	news := len(members) > 0 && !slices.Equal(members, s.members)
	if news {
		s.members = members
	}
	r.strangers[from] = s
	if !news {
		return
	}
	err := fmt.Errorf("%w: node %d began group %d with the members %s, and node %d with %s", ErrFirstMembers, from, r.cfg.Group, firstNames(members, 0), r.cfg.ID, firstNames(r.founding.members, r.founding.mark))
	if !r.fresh() {
		r.cfg.Logger.Errorf("%v; nothing is taken from node %d: find out which of the two was started with the wrong first members, and replace it by a node with an empty log and an empty state that joins", err, from)
	} else if r.misfounded == nil {
		r.misfounded = fmt.Errorf("%w; this node's log has no entry yet: start all nodes with the same first members, those that were started with others on an empty log and an empty state; or, if this node was to be added to a group that runs, as one that joins, without first members", err)
		r.misfoundedAt = r.ticks
	}
}

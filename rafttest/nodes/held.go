// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package nodes

import (
	"errors"
	"fmt"
	"slices"

	"google.golang.org/protobuf/proto"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/ecraft"
	"github.com/weftraft/weft/storage"
)

// held is the log of a group on a node's disk, as a loss of power would leave it now: what the
// log engine has called durable. The engine's word is not taken for it: at each start the
// simulator reads the log that the crashed files have, and compares (found).
type held struct {
	n     *node
	group uint64
	// index and term are those of the entry before the first.
	//
	// Invariant: index is at most what the node has released, or the end of a snapshot that
	// the log has.
	index, term uint64
	entries     []*pb.Entry
}

// heldBy returns the log on a node's disk.
func (g *group) heldBy(n *node) *held {
	h, _ := g.view.Disks[n.id].(*held)
	if h == nil {
		h = &held{n: n, group: g.id}
		g.view.Disks[n.id] = h
	}
	return h
}

// Released implements [holdings.Disk]: a process starts from the state that the node has kept.
func (h *held) Released() uint64 { return h.n.kept[h.group].index }

// Entry implements [holdings.Disk].
func (h *held) Entry(id ecraft.ID) *pb.Entry {
	if id.Index <= h.index || id.Index > h.index+uint64(len(h.entries)) {
		return nil
	}
	if e := h.entries[id.Index-h.index-1]; e.GetTerm() == id.Term {
		return e
	}
	return nil
}

// has reports whether the disk has an entry, or a state that covers the entry.
func (h *held) has(id ecraft.ID) bool { return h.Released() >= id.Index || h.Entry(id) != nil }

// durable takes a write that is durable. A write that nobody waits for is in the files, and
// perhaps not synced; it has no entries.
func (h *held) durable(w storage.Write) error {
	if w.Lazy {
		return nil
	}
	if s := w.Snapshot.GetMetadata(); s.GetIndex() > 0 {
		h.index, h.term, h.entries = s.GetIndex(), s.GetTerm(), nil
	}
	for _, e := range w.Entries {
		if err := h.append(e); err != nil {
			return err
		}
	}
	h.trim()
	return nil
}

// append puts an entry behind the others, or in the place of the entries from its index on.
func (h *held) append(e *pb.Entry) error {
	if e.GetIndex() <= h.index {
		if e.GetIndex() == h.index { // it may replace one that a state was ahead of
			h.term = e.GetTerm()
		}
		return nil // compacted, and left out
	}
	at := int(e.GetIndex() - h.index - 1)
	if at > len(h.entries) {
		return fmt.Errorf("entry %d is durable, and entry %d is not", e.GetIndex(), h.index+uint64(len(h.entries))+1)
	}
	before := h.term
	if at > 0 {
		before = h.entries[at-1].GetTerm()
	}
	h.entries = append(h.entries[:at], e)
	if t := h.n.w.groups[h.group-1].view.Truth; t != nil {
		return t.Look(h.n.id, e, before)
	}
	return nil
}

// trim forgets entries that the node has released.
func (h *held) trim() {
	if k := min(h.Released(), h.index+uint64(len(h.entries))); k > h.index {
		n := k - h.index
		h.index, h.term = k, h.entries[n-1].GetTerm()
		h.entries = h.entries[n:]
	}
}

// found takes the log that a process finds when it starts, and checks that the log has all
// that was durable. Later writes may have survived, too: these may have replaced entries.
func (h *held) found(log *storage.Group) error {
	now := held{n: h.n, group: h.group}
	first, errFirst := log.FirstIndex()
	last, errLast := log.LastIndex()
	if err := errors.Join(errFirst, errLast); err != nil {
		return err
	}
	if now.index = max(first-1, min(h.Released(), last)); now.index > 0 {
		term, err := log.Term(now.index)
		if err != nil {
			return err
		}
		now.term = term
	}
	ents, err := readLog(log, now.index+1, last)
	if err != nil {
		return err
	}
	for _, e := range ents {
		if err := now.append(e); err != nil {
			return err
		}
	}
	for _, e := range h.entries {
		id := ecraft.ID{Index: e.GetIndex(), Term: e.GetTerm()}
		if now.has(id) {
			continue
		}
		if id.Index <= last && id.Index > now.index && now.entries[id.Index-now.index-1].GetTerm() > id.Term {
			break // replaced, with all that stood behind
		}
		h.n.w.fail(logKept, "group %d: %v finds a log from %d to %d without entry %d of term %d, which was durable", h.group, h.n, first, last, id.Index, id.Term)
		break
	}
	h.n.w.reach.LogsFound++
	*h = now
	return nil
}

// readLog reads entries.
func readLog(log *storage.Group, from, to uint64) (ents []*pb.Entry, err error) {
	for from <= to {
		more, err := log.Entries(from, to+1, 1<<30)
		if err != nil || len(more) == 0 {
			return nil, errors.Join(err, fmt.Errorf("no entry %d", from))
		}
		ents = append(ents, more...)
		from += uint64(len(more))
	}
	return ents, nil
}

// commits is what is known of a member as of its last turn, for its next commit.
type commits struct {
	index   uint64
	members *pb.ConfState
	// sets is the sets of voters that count, at a leader; nil: not known.
	sets [][]uint64
	// changes is the changes of members in the member's log that may not be in force.
	changes []*pb.Entry
}

// logged notes the changes of members among entries that the member's log has got.
func (c *commits) logged(ents []*pb.Entry) {
	if len(ents) == 0 {
		return
	}
	c.changes = slices.DeleteFunc(c.changes, func(e *pb.Entry) bool { return e.GetIndex() >= ents[0].GetIndex() })
	for _, e := range ents {
		if e.GetType() != pb.EntryNormal {
			c.changes = append(c.changes, e)
		}
	}
}

// Entries that a state machine applies before the log of its node has them are judged from outside: the
// simulator knows, by itself, which entries a replica has handed to the log and which of them are on
// the disk (the rules E1 to E6 are in raft/early.go).

// unstored is the part of a member's log that is not known to be on the disk, in order.
type unstored []unstoredEntry

type unstoredEntry struct{ index, size, write uint64 }

// hand notes a write. Its entries replace what was there, and its snapshot replaces all.
func (u *unstored) hand(write uint64, w storage.Write) {
	if w.Snapshot != nil {
		*u = unstored{{index: w.Snapshot.GetMetadata().GetIndex(), write: write}}
	}
	if len(w.Entries) > 0 {
		u.cut(w.Entries[0].GetIndex())
	}
	for _, e := range w.Entries {
		*u = append(*u, unstoredEntry{e.GetIndex(), uint64(proto.Size(e)), write})
	}
}

// cut forgets the entries from an index on.
func (u *unstored) cut(from uint64) {
	list := *u
	for len(list) > 0 && list[len(list)-1].index >= from {
		list = list[:len(list)-1]
	}
	*u = list
}

// store notes that the writes up to a number are on the disk.
func (u *unstored) store(write uint64) {
	list := *u
	for len(list) > 0 && list[0].write <= write {
		list = list[1:]
	}
	*u = list
}

// upTo returns the number of entries up to an index, and their bytes.
func (u unstored) upTo(index uint64) (entries, bytes uint64) {
	for _, e := range u {
		if e.index > index {
			break
		}
		entries, bytes = entries+1, bytes+e.size
	}
	return entries, bytes
}

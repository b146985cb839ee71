// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package rafttest

import (
	"bytes"
	"fmt"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/ecraft"
	"github.com/weftraft/weft/gossip"
	"github.com/weftraft/weft/raft"
	"github.com/weftraft/weft/rafttest/internal/holdings"
)

// truth is what is known of coded entries, and of the members they were written for.
type truth struct {
	*holdings.Truth
	// confs is the configurations that came into force, by index.
	confs []confAt
}

func newTruth(prefix int) *truth { return &truth{Truth: holdings.NewTruth(prefix)} }

// configured records a configuration newly in force.
func (t *truth) configured(index uint64, conf *pb.ConfState) {
	if k := len(t.confs); k == 0 || t.confs[k-1].index < index {
		t.confs = append(t.confs, confAt{index, conf})
	}
}

// Released implements [holdings.Disk], as Entry does.
func (im *image) Released() uint64 { return released(im) }

// Entry returns the entry with an id, or nil.
func (im *image) Entry(id ecraft.ID) *pb.Entry {
	if id.Index <= im.baseIndex || !im.holds(id.Index, id.Term) {
		return nil
	}
	return im.entries[id.Index-im.baseIndex-1]
}

// What a message with units is for stands in its context.
const (
	unitsPushed    = "p"
	unitsPassed    = "o"
	unitsOfZones   = "c"
	unitsAnswered  = "a"
	unitsRecovered = "r"
)

// released returns the index up to which a disk's node needs no entry any more:
// the entries are durably applied.
func released(im *image) uint64 { return im.checkpoint.GetMetadata().GetIndex() }

// honest checks that a node's sent units are units of the named entry.
func (t *truth) honest(m *pb.Message) error {
	switch string(m.GetContext()) {
	case unitsPushed, unitsPassed, unitsOfZones, unitsAnswered, unitsRecovered:
	default:
		return nil // of headers
	}
	for _, e := range m.GetEntries() {
		fact := t.Fact(ecraft.ID{Index: e.GetIndex(), Term: e.GetTerm()})
		if fact == nil || fact.Payload == nil || len(e.GetData()) == 0 {
			continue
		}
		units, err := gossip.ParseUnits(e.GetData())
		if err != nil {
			return fmt.Errorf("sends units of entry %d of term %d that cannot be read: %w", e.GetIndex(), e.GetTerm(), err)
		}
		word := ecraft.NewCodeword(fact.Header, fact.Payload)
		for _, u := range units {
			if u.Slot >= fact.Header.Slots || u.First+u.Count > fact.Header.D || !sameUnits(u, word.Strip(u.Slot, u.First, u.Count)) {
				err = fmt.Errorf("sends units as those of entry %d of term %d which are of another payload", e.GetIndex(), e.GetTerm())
			}
		}
		word.Free()
		if err != nil {
			return err
		}
	}
	return nil
}

// passedOn checks units that a member passes on: they acknowledge nothing, and if a learner does, the entry
// assigns nothing to either end.
func (t *truth) passedOn(m *pb.Message) error {
	if m.GetIndex() != 0 {
		return fmt.Errorf("passes on units with the acknowledgement of index %d", m.GetIndex())
	}
	for _, e := range m.GetEntries() {
		fact := t.Fact(ecraft.ID{Index: e.GetIndex(), Term: e.GetTerm()})
		if fact == nil || fact.Header == nil || string(m.GetContext()) == unitsOfZones {
			continue
		}
		for _, id := range []uint64{m.GetFrom(), m.GetTo()} {
			if slot := fact.Header.SlotOf(id); slot < 0 || fact.Header.Units[slot] > 0 {
				return fmt.Errorf("passes on to %d units of entry %d, which assigns %d of them to node %d", m.GetTo(), e.GetIndex(), fact.Header.BaseOf(id), id)
			}
		}
	}
	return nil
}

// sameUnits reports whether two strips of one place have the same units.
func sameUnits(a, b ecraft.Strip) bool {
	for i := range a.Count {
		one, errOne := a.Unit(i)
		other, errOther := b.Unit(i)
		if errOne != nil || errOther != nil || !bytes.Equal(one, other) {
			return false
		}
	}
	return true
}

// vouchedUnits checks the promise of a message with units. Pushed units say that
// the entry is stored; the answer to a new leader, that the node follows no older
// leader any more.
func vouchedUnits(d *disk, m *pb.Message) error {
	durable := &d.durable
	if m.GetType() != raft.MsgUnits {
		return nil
	}
	switch string(m.GetContext()) {
	case unitsPushed:
		for _, e := range m.GetEntries() {
			late := d.replaced[entryName{e.GetIndex(), e.GetTerm()}] >= m.GetLogTerm() // true when sent
			if !late && durable.state.term == m.GetLogTerm() && !durable.holds(e.GetIndex(), e.GetTerm()) {
				return fmt.Errorf("pushes units of entry %d of term %d, which is not on its disk", e.GetIndex(), e.GetTerm())
			}
		}
	case unitsRecovered:
		if durable.state.term < m.GetLogTerm() {
			return fmt.Errorf("answers the leader of term %d; on its disk it is at term %d", m.GetLogTerm(), durable.state.term)
		}
	}
	return nil
}

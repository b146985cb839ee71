// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package rafttest

import (
	"bytes"
	"fmt"
	"hash/maphash"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/ecraft"
	"github.com/weftraft/weft/gossip"
	"github.com/weftraft/weft/raft"
)

// truth knows all about coded entries: the headers, and the holdings of each
// disk by the headers. truth looks at disks only, and asks no node for its
// opinion.
//
// A node's holdings are a function of its log. The whole function is:
//
//   - of an entry on a disk, the disk holds the units assigned by the header
//     to the node, or the whole payload;
//   - a rider in a later entry of the same log adds units;
//   - an entry that the node's durable checkpoint covers is released there:
//     the node knows the entry to be committed, and needs the entry no more.
type truth struct {
	// prefix is the length of the clear prefix.
	prefix int
	// stored is each copy of an entry that was looked at, by its address: every
	// node has its own.
	stored map[*pb.Entry]*stored
	// facts is what an entry is, by its name.
	facts map[entryName]*codedFact
	// carriers is which entries have riders for an entry.
	carriers map[entryName][]carried
	// confs is the configurations that came into force, by index.
	confs []confAt
	// seed makes the hashes of plain entries.
	seed maphash.Seed
}

// carried is a rider of an entry.
type carried struct {
	carrier entryName
	rider   int
}

// codedFact is what is the same for all copies of an entry.
type codedFact struct {
	typ    pb.EntryType
	before uint64 // term of the entry before
	// print is the header's fingerprint, or a hash of a plain entry.
	print uint64
	// header is nil if the entry is plain.
	header *ecraft.Header
	// payload is the payload of a coded entry.
	payload []byte
}

// need returns how many units restore the entry. A plain entry counts as a unit.
func (f *codedFact) need() int {
	if f.header == nil || f.header.Kind != ecraft.Coded {
		return 1
	}
	return f.header.D
}

// stored is a node's copy of an entry.
type stored struct {
	fact *codedFact
	// units of the entry itself; as many as it needs if the payload is there.
	units int
	// riders is the units that came for each rider of the header.
	riders []int
}

func newTruth(prefix int) *truth {
	return &truth{prefix: prefix, stored: map[*pb.Entry]*stored{}, facts: map[entryName]*codedFact{}, carriers: map[entryName][]carried{},
		seed: maphash.MakeSeed()}
}

// configured records a configuration newly in force.
func (t *truth) configured(index uint64, conf *pb.ConfState) {
	if k := len(t.confs); k == 0 || t.confs[k-1].index < index {
		t.confs = append(t.confs, confAt{index, conf})
	}
}

// look reads a node's copy of an entry, and compares the copy with earlier
// copies. An error says what is wrong.
func (t *truth) look(node uint64, e *pb.Entry, before uint64) (*stored, error) {
	if st := t.stored[e]; st != nil {
		return st, nil
	}
	st, fact, err := t.read(node, e)
	if err != nil {
		return nil, err
	}
	fact.typ, fact.before = e.GetType(), before
	name := entryName{e.GetIndex(), e.GetTerm()}
	known := t.facts[name]
	if known == nil {
		known = fact
		t.facts[name] = fact
		t.note(name, fact)
	}
	if known.typ != fact.typ || known.before != fact.before || known.print != fact.print {
		return nil, fmt.Errorf("entry %d of term %d is %v; another node has it as %v", name.index, name.term, fact, known)
	}
	st.fact = known
	t.stored[e] = st
	return st, nil
}

// note registers the riders of an entry that was not seen before.
func (t *truth) note(name entryName, fact *codedFact) {
	if fact.header == nil {
		return
	}
	for k, r := range fact.header.Riders {
		about := entryName{r.Index, r.Term}
		t.carriers[about] = append(t.carriers[about], carried{name, k})
	}
}

// String describes an entry.
func (f *codedFact) String() string {
	what := "plain"
	if f.header != nil {
		what = fmt.Sprintf("%v of %d units in %d slots, assigned %v, riders %v", f.header.Kind, f.header.D, f.header.Slots, f.header.Units, f.header.Riders)
	}
	return fmt.Sprintf("%s of type %v behind term %d", what, f.typ, f.before)
}

// read reads a copy by itself.
func (t *truth) read(node uint64, e *pb.Entry) (*stored, *codedFact, error) {
	data := e.GetData()
	if e.GetType() != pb.EntryNormal || !ecraft.IsEnvelope(data, t.prefix) {
		return &stored{units: 1}, &codedFact{print: maphash.Bytes(t.seed, data)}, nil
	}
	env, err := ecraft.Parse(data, t.prefix, node)
	if err != nil {
		return nil, nil, fmt.Errorf("entry %d of term %d: %w", e.GetIndex(), e.GetTerm(), err)
	}
	h := env.Header.Clone()
	fact := &codedFact{header: h, print: h.Fingerprint() ^ maphash.Bytes(t.seed, env.Prefix), payload: env.Payload}
	st := &stored{units: fact.need()}
	if err := verify(env); err != nil {
		return nil, nil, fmt.Errorf("entry %d of term %d: %w", e.GetIndex(), e.GetTerm(), err)
	}
	if h.Kind == ecraft.Coded {
		st.units = h.BaseOf(node)
		if held := env.Own.Count; held != st.units && env.Payload == nil {
			return nil, nil, fmt.Errorf("entry %d of term %d: it holds %d units, its header assigns %d", e.GetIndex(), e.GetTerm(), held, st.units)
		}
	}
	for _, u := range env.RiderUnits {
		st.riders = append(st.riders, u.Count)
	}
	return st, fact, nil
}

// verify checks all units of an envelope, and a whole payload, against their
// checksums.
func verify(env *ecraft.Envelope) error {
	if env.Payload != nil && ecraft.Checksum(env.Payload) != env.PayloadCRC {
		return fmt.Errorf("the payload of %d bytes does not fit its checksum", len(env.Payload))
	}
	for _, u := range append([]ecraft.Strip{env.Own}, env.RiderUnits...) {
		if u.Count > 0 {
			if err := u.Verify(); err != nil {
				return err
			}
		}
	}
	return nil
}

// released returns the index up to which a disk's node needs no entry any more:
// the entries are durably applied.
func released(im *image) uint64 { return im.checkpoint.GetMetadata().GetIndex() }

// holds returns how many units of an entry a node's image holds, counting the
// riders in entries up to an index.
func (t *truth) holds(im *image, e entryName, upTo uint64) int {
	switch {
	case im == nil:
		return 0
	case released(im) >= e.index:
		return whole
	case e.index <= im.baseIndex || !im.holds(e.index, e.term):
		return 0
	}
	base := t.stored[im.entries[e.index-im.baseIndex-1]].units
	most := base
	for _, c := range t.carriers[e] {
		if at := c.carrier; at.index <= upTo && at.index > im.baseIndex && im.holds(at.index, at.term) {
			// A rider carries all units above the base, so the rider with the most
			// units is enough.
			most = max(most, base+t.stored[im.entries[at.index-im.baseIndex-1]].riders[c.rider])
		}
	}
	return most
}

// complete checks that a copy has the rider units that its header promises the
// node, or that the units' entry is released somewhere: then the sender may
// have been unable to make the units.
func (t *truth) complete(node uint64, e *pb.Entry, releasedAnywhere uint64) error {
	st := t.stored[e]
	if st == nil || st.fact.header == nil {
		return nil
	}
	for k, r := range st.fact.header.Riders {
		about := t.facts[entryName{r.Index, r.Term}]
		if about == nil || about.header == nil || r.Index <= releasedAnywhere {
			continue
		}
		slot := about.header.SlotOf(node)
		if slot < 0 {
			continue
		}
		if want := int(r.Totals[slot]) - about.header.BaseOf(node); want > 0 && st.riders[k] != want {
			return fmt.Errorf("node %d: entry %d carries %d units of entry %d; its header says %d more than the %d assigned, and nobody has released it",
				node, e.GetIndex(), st.riders[k], r.Index, want, about.header.BaseOf(node))
		}
	}
	return nil
}

// What a message with units is for stands in its context.
const (
	unitsPushed    = "p"
	unitsAnswered  = "a"
	unitsRecovered = "r"
)

// honest checks that a node's sent units are units of the named entry.
func (t *truth) honest(m *pb.Message) error {
	switch string(m.GetContext()) {
	case unitsPushed, unitsAnswered, unitsRecovered:
	default:
		return nil // of headers
	}
	for _, e := range m.GetEntries() {
		fact := t.facts[entryName{e.GetIndex(), e.GetTerm()}]
		if fact == nil || fact.payload == nil || len(e.GetData()) == 0 {
			continue
		}
		units, err := gossip.ParseUnits(e.GetData())
		if err != nil {
			return fmt.Errorf("sends units of entry %d of term %d that cannot be read: %w", e.GetIndex(), e.GetTerm(), err)
		}
		word := ecraft.NewCodeword(fact.header, fact.payload)
		for _, u := range units {
			if u.Slot >= fact.header.Slots || u.First+u.Count > fact.header.D || !sameUnits(u, word.Strip(u.Slot, u.First, u.Count)) {
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

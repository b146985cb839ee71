// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

// Package holdings counts, from the logs on the disks of a simulated cluster, which units of
// coded entries each node holds. It asks no node for its opinion, and shares nothing with
// the rules of package raft: it reads headers, and adds up.
//
//   - [Truth] reads each copy of an entry once, and compares it with the copies of others;
//   - [View] is all disks at one moment: it answers whether what a leader has committed can
//     be restored.
package holdings

import (
	"fmt"
	"hash/maphash"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/ecraft"
)

// Truth knows all about coded entries: the headers, and the holdings of each
// disk by the headers.
//
// A node's holdings are a function of its log. The whole function is:
//
//   - of an entry on a disk, the disk holds the units assigned by the header
//     to the node, or the whole payload;
//   - a rider in a later entry of the same log adds units;
//   - an entry that the node's durable state covers is released there:
//     the node knows the entry to be committed, and needs the entry no more.
type Truth struct {
	// prefix is the length of the clear prefix.
	prefix int
	// stored is each copy of an entry that was looked at, by its address: every
	// node has its own.
	stored map[*pb.Entry]*stored
	// facts is what an entry is, by its id.
	facts map[ecraft.ID]*Fact
	// carriers is which entries have riders for an entry.
	carriers map[ecraft.ID][]carried
	// seed makes the hashes of plain entries.
	seed maphash.Seed
}

// carried is a rider of an entry.
type carried struct {
	carrier ecraft.ID
	rider   int
}

// Fact is what is the same for all copies of an entry.
type Fact struct {
	typ    pb.EntryType
	before uint64 // term of the entry before
	// print is the header's fingerprint, or a hash of a plain entry.
	print uint64
	// Header is nil if the entry is plain.
	Header *ecraft.Header
	// Payload is the payload of a coded entry, if the first copy that was read has it.
	Payload []byte
}

// Need returns how many units restore the entry. A plain entry counts as a unit.
func (f *Fact) Need() int {
	if f.Header == nil || f.Header.Kind != ecraft.Coded {
		return 1
	}
	return f.Header.D
}

// stored is a node's copy of an entry.
type stored struct {
	fact *Fact
	// units of the entry itself; as many as it needs if the payload is there.
	units int
	// riders is the units that came for each rider of the header.
	riders []int
}

// NewTruth knows nothing yet. prefix is the length of the clear prefix, in bytes.
func NewTruth(prefix int) *Truth {
	return &Truth{prefix: prefix, stored: map[*pb.Entry]*stored{}, facts: map[ecraft.ID]*Fact{}, carriers: map[ecraft.ID][]carried{},
		seed: maphash.MakeSeed()}
}

// Fact returns what is known of an entry; nil: nobody has shown it.
func (t *Truth) Fact(id ecraft.ID) *Fact { return t.facts[id] }

// Coded reports whether an entry is known to be coded.
func (t *Truth) Coded(id ecraft.ID) bool {
	f := t.facts[id]
	return f != nil && f.Header != nil && f.Header.Kind == ecraft.Coded
}

// IsPayload reports whether a host's entry has the proposed payload. A carrier has none.
func (t *Truth) IsPayload(id ecraft.ID, e *pb.Entry) bool {
	f := t.facts[id]
	switch {
	case f == nil || f.typ != e.GetType():
		return false
	case f.Header == nil:
		return f.print == maphash.Bytes(t.seed, e.GetData())
	case f.Header.Kind == ecraft.Carrier:
		return len(e.GetData()) == 0
	}
	return len(e.GetData()) == f.Header.PayloadLen && ecraft.Checksum(e.GetData()) == f.Header.PayloadCRC
}

func idOf(e *pb.Entry) ecraft.ID { return ecraft.ID{Index: e.GetIndex(), Term: e.GetTerm()} }

// Look reads a node's copy of an entry, behind an entry of term before, and compares the
// copy with earlier copies. An error says what is wrong.
func (t *Truth) Look(node uint64, e *pb.Entry, before uint64) error {
	if t.stored[e] != nil {
		return nil
	}
	st, fact, err := t.read(node, e)
	if err != nil {
		return err
	}
	fact.typ, fact.before = e.GetType(), before
	name := idOf(e)
	known := t.facts[name]
	if known == nil {
		known = fact
		t.facts[name] = fact
		t.note(name, fact)
	}
	if known.typ != fact.typ || known.before != fact.before || known.print != fact.print {
		return fmt.Errorf("entry %d of term %d is %v; another node has it as %v", name.Index, name.Term, fact, known)
	}
	st.fact = known
	t.stored[e] = st
	return nil
}

// note registers the riders of an entry that was not seen before.
func (t *Truth) note(name ecraft.ID, fact *Fact) {
	if fact.Header == nil {
		return
	}
	for k, r := range fact.Header.Riders {
		t.carriers[r.ID] = append(t.carriers[r.ID], carried{name, k})
	}
}

// String describes an entry.
func (f *Fact) String() string {
	what := "plain"
	if f.Header != nil {
		what = fmt.Sprintf("%v of %d units in %d slots, assigned %v, riders %v", f.Header.Kind, f.Header.D, f.Header.Slots, f.Header.Units, f.Header.Riders)
	}
	return fmt.Sprintf("%s of type %v behind term %d", what, f.typ, f.before)
}

// read reads a copy by itself.
func (t *Truth) read(node uint64, e *pb.Entry) (*stored, *Fact, error) {
	data := e.GetData()
	if e.GetType() != pb.EntryNormal || !ecraft.IsEnvelope(data, t.prefix) {
		return &stored{units: 1}, &Fact{print: maphash.Bytes(t.seed, data)}, nil
	}
	env, err := ecraft.Parse(data, t.prefix, node)
	if err != nil {
		return nil, nil, fmt.Errorf("entry %d of term %d: %w", e.GetIndex(), e.GetTerm(), err)
	}
	h := env.Header.Clone()
	fact := &Fact{Header: h, print: h.Fingerprint() ^ maphash.Bytes(t.seed, env.Prefix), Payload: env.Payload}
	st := &stored{units: fact.Need()}
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

// Disk is the log of a node as a loss of power would leave it now.
type Disk interface {
	// Released returns the index up to which the node needs no entry any more, because the
	// entries are durably applied.
	Released() uint64
	// Entry returns the entry with an id, or nil. Truth has looked at the copy.
	Entry(id ecraft.ID) *pb.Entry
}

// whole stands for more units than any entry needs: the node has released the entry.
const whole = 1 << 20

// Holds returns how many units of an entry a disk holds, counting the riders in entries up
// to an index. No disk holds nothing.
func (t *Truth) Holds(d Disk, id ecraft.ID, upTo uint64) int {
	if d == nil {
		return 0
	}
	if d.Released() >= id.Index {
		return whole
	}
	e := d.Entry(id)
	if e == nil {
		return 0
	}
	base := t.stored[e].units
	most := base
	for _, c := range t.carriers[id] {
		if c.carrier.Index > upTo {
			continue
		}
		// A rider carries all units above the base, so the rider with the most units is
		// enough.
		if at := d.Entry(c.carrier); at != nil {
			most = max(most, base+t.stored[at].riders[c.rider])
		}
	}
	return most
}

// Complete checks that a copy has the rider units that its header promises the
// node, or that the units' entry is released somewhere: then the sender may
// have been unable to make the units.
func (t *Truth) Complete(node uint64, e *pb.Entry, releasedAnywhere uint64) error {
	st := t.stored[e]
	if st == nil || st.fact.Header == nil {
		return nil
	}
	for k, r := range st.fact.Header.Riders {
		about := t.facts[r.ID]
		if about == nil || about.Header == nil || r.Index <= releasedAnywhere {
			continue
		}
		slot := about.Header.SlotOf(node)
		if slot < 0 {
			continue
		}
		if want := int(r.Totals[slot]) - about.Header.BaseOf(node); want > 0 && st.riders[k] != want {
			return fmt.Errorf("node %d: entry %d carries %d units of entry %d; its header says %d more than the %d assigned, and nobody has released it",
				node, e.GetIndex(), st.riders[k], r.Index, want, about.Header.BaseOf(node))
		}
	}
	return nil
}

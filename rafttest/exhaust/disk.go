// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package exhaust

import (
	"fmt"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/ecraft"
	"github.com/weftraft/weft/raft"
)

// image is what a loss of power leaves of a node. The log begins behind base, which the
// host's checkpoint covers.
type image struct {
	term, vote, commit uint64
	base, baseTerm     uint64
	conf               *pb.ConfState // at base
	log                []*stored     // never changed in place
}

// stored is an entry on a disk.
type stored struct {
	pb          *pb.Entry
	index, term uint64
	// what is the same for all copies of an entry.
	what uint64
	// header is nil for a plain entry.
	header *ecraft.Header
	// units of the entry itself, and of each rider.
	units  int
	riders []int
	// whole says that the copy has the payload; wrong says what is wrong with the copy.
	whole bool
	wrong error
}

func (d *image) last() uint64 { return d.base + uint64(len(d.log)) }

// at returns the entry at an index, or nil.
func (d *image) at(i uint64) *stored {
	if i <= d.base || i > d.last() {
		return nil
	}
	return d.log[i-d.base-1]
}

// termAt returns the term at an index, 0 if the disk does not know.
func (d *image) termAt(i uint64) uint64 {
	if i == d.base {
		return d.baseTerm
	}
	if e := d.at(i); e != nil {
		return e.term
	}
	return 0
}

// storage returns a storage with what is on the disk.
func (d *image) storage() *raft.MemoryStorage {
	ms := raft.NewMemoryStorage()
	if d.base > 0 {
		must(ms.ApplySnapshot(&pb.Snapshot{Metadata: &pb.SnapshotMetadata{Index: new(d.base), Term: new(d.baseTerm), ConfState: d.conf}}))
	}
	if d.term > 0 {
		must(ms.SetHardState(&pb.HardState{Term: new(d.term), Vote: new(d.vote), Commit: new(d.commit)}))
	}
	ents := make([]*pb.Entry, len(d.log))
	for i, e := range d.log {
		ents[i] = e.pb
	}
	must(ms.Append(ents))
	return ms
}

func (d *image) print() uint64 {
	h := mix(mix(mix(mix(mix(0, d.term), d.vote), d.commit), d.base), d.baseTerm)
	for _, e := range d.log {
		h = mix(mix(h, e.term), hashOf(uint64(e.pb.GetType()), e.pb.GetData()))
	}
	return h
}

// read takes a node's copy of an entry apart.
func read(node uint64, e *pb.Entry) *stored {
	st := &stored{pb: e, index: e.GetIndex(), term: e.GetTerm(), units: 1, whole: true}
	if e.GetType() != pb.EntryNormal || !ecraft.IsEnvelope(e.GetData(), 0) {
		st.what = hashOf(uint64(e.GetType()), e.GetData())
		return st
	}
	env, err := ecraft.Parse(e.GetData(), 0, node)
	if err != nil {
		st.wrong = err
		return st
	}
	st.header = env.Header.Clone()
	st.what = mix(1<<32, st.header.Fingerprint())
	if st.header.Kind == ecraft.Coded {
		st.units, st.whole = st.header.BaseOf(node), env.Payload != nil
		st.wrong = verify(env.Own)
	}
	for _, u := range env.RiderUnits {
		st.riders = append(st.riders, u.Count)
		if err := verify(u); err != nil {
			st.wrong = err
		}
	}
	return st
}

func verify(s ecraft.Strip) error {
	if s.Count == 0 {
		return nil
	}
	return s.Verify()
}

// short describes an entry for a log on one line.
func (e *stored) short() string {
	switch {
	case e.pb.GetType() != pb.EntryNormal:
		return "C"
	case e.header == nil && len(e.pb.GetData()) == 0:
		return "-"
	case e.header == nil:
		return "p"
	case e.header.Kind == ecraft.Carrier:
		return fmt.Sprintf("r%v", e.riders)
	case e.whole:
		return "W"
	}
	return fmt.Sprintf("u%d", e.units)
}

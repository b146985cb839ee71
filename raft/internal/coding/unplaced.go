// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package coding

import (
	"slices"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/ecraft"
	"github.com/weftraft/weft/raft/internal/extend"
)

// unplaced is the entries that this leader has asked for, or sealed, and that are not in
// the log yet.
type unplaced struct {
	*node
	ledger *ledger
	// made are these entries, in order.
	//
	// Invariant: empty after each call, because effects are carried out.
	made []made
}

// made is an entry of this leader that is not in the log yet. Where the entry will stand, only
// the log knows: another may be appended first.
type made struct {
	ent *pb.Entry
	// rec is the record of a coded entry, nil for others; stands, if set, hears where the
	// entry stands.
	rec    *record
	stands func(id ecraft.ID)
}

// append asks for an entry, and has stands hear where it stands.
func (u *unplaced) append(data []byte, stands func(id ecraft.ID)) {
	e := &pb.Entry{Term: new(u.raft.Term()), Type: pb.EntryNormal.Enum(), Data: data}
	u.made = append(u.made, made{ent: e, stands: stands})
	u.Ask(extend.Effect{Do: extend.Append, Ent: e})
}

// appended notes where this leader's own entries stand.
func (u *unplaced) appended(ents []*pb.Entry) {
	for _, e := range ents {
		i := slices.IndexFunc(u.made, func(m made) bool { return m.ent == e })
		if i < 0 {
			continue // plain
		}
		m, id := u.made[i], idOf(e)
		if i == 0 {
			u.made = u.made[1:]
		} else {
			u.made = slices.Delete(u.made, i, i+1)
		}
		if m.rec != nil {
			m.rec.id = id
			u.ledger.add(m.rec)
			u.ledger.keep(m.rec, m.rec.word)
			u.ledger.spans.add(id.Index)
		}
		if m.stands != nil {
			m.stands(id)
		}
	}
	u.ledger.trim(u.cfg.Memory)
}

// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package coding

import (
	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/ecraft"
	"github.com/weftraft/weft/gossip"
	"github.com/weftraft/weft/raft/internal/extend"
)

// A follower pushes units: when its units of an entry are durable, the follower
// acknowledges the entry and pushes the units to the members that need them, by a
// schedule that follows from the header: no request, one delay.

// pushes is the units that this node has yet to push.
type pushes struct {
	*node
	ledger   *ledger
	accounts *accounts
	later    *gossip.Deferred
}

// share pushes this node's units of entries behind their acknowledgement: at once, or
// when the entries lie far enough behind the commit index. An entry committed before
// its arrival here is not shared, because the other members have the entry; for the same
// reason the others push no units of the entry.
func (s *pushes) share(ents []*pb.Entry, envs []*ecraft.Envelope, commit uint64) {
	var now parcels
	for i, env := range envs {
		if env == nil || env.Kind != ecraft.Coded {
			continue
		}
		if ents[i].GetIndex() <= commit {
			if rec := s.ledger.find(ents[i].GetIndex()); rec != nil {
				rec.unpushed = true
			}
			continue
		}
		if env.Own.Count == 0 && env.Payload == nil {
			continue
		}
		if s.cfg.GossipGap == 0 {
			now.pack(s, idOf(ents[i]), env)
		} else {
			s.later.Add(idOf(ents[i]), env.PayloadLen, s.ticks)
		}
	}
	s.ship(&now)
	s.shareDue()
}

// shareDue pushes the units of entries that lie far enough behind the commit index, or
// have waited long enough.
func (s *pushes) shareDue() {
	s.shareLater(func() (ecraft.ID, bool) { return s.later.Next(s.log.Committed(), s.ticks) })
}

// shareUpTo pushes the units that were held back of entries which may leave the log,
// because the entries are applied or a snapshot takes their place: a later question for
// these units would get nothing.
func (s *pushes) shareUpTo(index uint64) {
	s.shareLater(func() (ecraft.ID, bool) { return s.later.NextUpTo(index) })
}

func (s *pushes) shareLater(next func() (ecraft.ID, bool)) {
	var due parcels
	for {
		id, ok := next()
		if !ok {
			break
		}
		if env, err := s.envelopeOf(id); err == nil {
			due.pack(s, id, env)
		}
	}
	s.ship(&due)
}

// pushBytes is how many bytes of units a push has before another one is begun.
const pushBytes = 64 << 10

// parcels are units on their way, in messages of about pushBytes for each receiver.
type parcels struct {
	to      []uint64
	bytes   []int
	content []*pb.Message
	targets []gossip.Push
}

// pack adds the pushes of one entry by the schedule. A node that was assigned the whole
// payload makes the units of its slot.
func (p *parcels) pack(s *pushes, id ecraft.ID, env *ecraft.Envelope) {
	p.targets = gossip.Targets(&env.Header, s.id, p.targets[:0])
	var word *ecraft.Codeword
	if env.Payload != nil && len(p.targets) > 0 {
		word = ecraft.NewCodeword(&env.Header, env.Payload)
		defer word.Free()
	}
	var (
		data   []byte // shared by receivers of the same units
		packed int
	)
	for _, t := range p.targets {
		if a := s.accounts.of[t.Peer]; a != nil && a.unreachable {
			continue // when it is back, the member asks for the units
		}
		if t.Count != packed {
			strip := env.Own.Sub(0, t.Count)
			if word != nil {
				strip = word.Strip(env.SlotOf(s.id), 0, t.Count)
			}
			data, packed = gossip.AppendUnits(nil, strip), t.Count
		}
		i := p.open(t.Peer)
		if i < 0 {
			i = len(p.to)
			p.to = append(p.to, t.Peer)
			p.bytes = append(p.bytes, 0)
			p.content = append(p.content, s.unitsMessage(MsgUnits, t.Peer, forPush))
		}
		p.content[i].Entries = append(p.content[i].Entries, named(id, data))
		p.bytes[i] += len(data)
	}
}

// open returns the position of the receiver's last parcel if there is room in the
// parcel, and -1 otherwise.
func (p *parcels) open(to uint64) int {
	for i := len(p.to) - 1; i >= 0; i-- {
		if p.to[i] == to {
			if p.bytes[i] < pushBytes {
				return i
			}
			break
		}
	}
	return -1
}

// ship sends the parcels when their units are durable here.
func (s *pushes) ship(p *parcels) {
	for i, to := range p.to {
		ents := p.content[i].Entries
		s.Ask(extend.Effect{Do: extend.Vouch, Msg: p.content[i], Holds: p.content[i].GetIndex()})
		s.emit(Event{Kind: Pushed, Peer: to, Count: len(ents), Bytes: dataBytes(ents)})
	}
}

func dataBytes(ents []*pb.Entry) (n int) {
	for _, e := range ents {
		n += len(e.GetData())
	}
	return n
}

// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package coding

import (
	"slices"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/ecraft"
	"github.com/weftraft/weft/gossip"
	"github.com/weftraft/weft/raft/internal/extend"
)

// A follower pushes units: when its units of an entry are durable, the follower
// acknowledges the entry and pushes the units to the members that need them, by a
// schedule that follows from the header: no request, one delay. Voters push one payload
// to all learners together, behind all pushes to voters; the learners pass it on, see passes.

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
// reason the others push no units of the entry. The result says whether there is such an entry.
func (s *pushes) share(ents []*pb.Entry, envs []*ecraft.Envelope, commit uint64) (unpushed bool) {
	var now parcels
	for i, env := range envs {
		if env == nil || env.Kind != ecraft.Coded {
			continue
		}
		if ents[i].GetIndex() <= commit {
			if rec := s.ledger.find(ents[i].GetIndex()); rec != nil {
				rec.unpushed, unpushed = true, true
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
	return unpushed
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
// payload makes the units of its slot. A member that cannot be reached asks for units when it is back.
func (p *parcels) pack(s *pushes, id ecraft.ID, env *ecraft.Envelope) {
	s.accounts.seekLost(env.Members)
	p.targets = gossip.Targets(&env.Header, s.id, id.Index, s.accounts.peers(), p.targets[:0])
	var word *ecraft.Codeword
	if env.Payload != nil && len(p.targets) > 0 {
		word = ecraft.NewCodeword(&env.Header, env.Payload)
		defer word.Free()
	}
	strip := func(t gossip.Push) ecraft.Strip {
		if word != nil {
			return word.Strip(env.SlotOf(s.id), t.First, t.Count)
		}
		return env.Own.Sub(t.First, t.Count)
	}
	readers := env.Members[gossip.FirstReader(&env.Header, s.learns):]
	var (
		data   []byte // shared by receivers of the same units
		packed int
		read   map[uint64][]ecraft.Strip
	)
	for _, t := range p.targets {
		if slices.Contains(readers, t.Peer) {
			if read == nil {
				read = map[uint64][]ecraft.Strip{}
			}
			read[t.Peer] = append(read[t.Peer], strip(t))
			continue
		}
		if t.Count != packed {
			data, packed = gossip.AppendUnits(nil, strip(t)), t.Count
		}
		p.add(s.node, forPush, t.Peer, named(id, data))
	}
	for _, to := range readers {
		if strips := read[to]; len(strips) > 0 {
			p.add(s.node, forPush, to, named(id, gossip.AppendUnits(nil, strips...)))
		}
	}
}

// add puts an entry's units into the receiver's last parcel, or into a new one.
func (p *parcels) add(n *node, purpose byte, to uint64, e *pb.Entry) {
	i := p.open(to)
	if i < 0 {
		i = len(p.to)
		p.to = append(p.to, to)
		p.bytes = append(p.bytes, 0)
		p.content = append(p.content, n.unitsMessage(MsgUnits, to, purpose))
	}
	p.content[i].Entries = append(p.content[i].Entries, e)
	p.bytes[i] += len(e.GetData())
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

// ship sends the parcels when their units are durable here: those to voters, and then
// those to learners, which nothing waits for.
func (s *pushes) ship(p *parcels) {
	for _, learners := range []bool{false, true} {
		for i, to := range p.to {
			if s.learns(to) != learners {
				continue
			}
			ents := p.content[i].Entries
			s.Ask(extend.Effect{Do: extend.Vouch, Msg: p.content[i], Holds: p.content[i].GetIndex()})
			s.emit(Event{Kind: Pushed, Peer: to, Count: len(ents), Bytes: dataBytes(ents)})
		}
	}
}

func dataBytes(ents []*pb.Entry) (n int) {
	for _, e := range ents {
		n += len(e.GetData())
	}
	return n
}

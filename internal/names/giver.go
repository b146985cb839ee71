// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package names

import (
	"fmt"
	"slices"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/internal/wire"
)

// keepBytes bounds the data of the originals kept for a peer: four of the largest messages of
// package rawnode's default, which a lack of a moment ago asks for.
const keepBytes = 4 << 20

// Giver is the leader's part.
type Giver struct {
	// Announced reports whether a peer has announced that it takes names.
	Announced func(peer uint64) bool
	// Batch returns the id of the batch that is an entry's data, if a peer has sent the batch.
	Batch func(peer uint64, data []byte) (wire.CommandID, bool)
	// Zones, unless nil, has relays named, for data for which Whole reports that all members are sent the
	// same.
	Zones *Zones
	Whole func(data []byte) bool
	// Runs, unless nil, reports whether a peer has announced that it takes runs.
	Runs func(peer uint64) bool

	// Counts has what was done so far.
	Counts GiverCounts

	term  uint64 // of the originals
	peers map[uint64]*taker
	// Of this turn: checksums of entries, by index, and of runs, by the index before the first entry and of the last.
	sums    map[uint64]uint64
	runSums map[[2]uint64]uint64
}

// GiverCounts count since the start of a Giver.
type GiverCounts struct {
	Named, Saved uint64 // messages with names, and the bytes left out
	Relayed      uint64 // of these bytes, those that relays are to pass on
	Runs         uint64 // of the messages, those with a run
	Filled, Gone uint64 // lacks answered with the data; without, as the data was forgotten
	Pauses       uint64 // times a peer got no names for a while
	Unkept       uint64 // originals that the bound has pushed out
}

// taker is a peer.
type taker struct {
	last  uint64 // number of the last message with names
	kept  []original
	bytes int // of kept. Invariant: at most keepBytes
	trust trust
}

// original is the data of a message's named entries.
type original struct {
	number, from, last uint64 // index of the entry before the message's first, and of its last
	bytes              int
	data               [][]byte
	relay              uint64 // named in the message, or 0
}

// Idle reports whether no message can get names: without learners and zones, nothing is to be looked at.
func (g *Giver) Idle() bool { return g.Announced == nil && (g.Zones == nil || g.Zones.idle()) }

// Turn takes the messages of a turn, before Name is asked for each.
func (g *Giver) Turn(turn []wire.Message) {
	if g.Zones == nil || g.Zones.idle() {
		return
	}
	clear(g.sums)
	clear(g.runSums)
	var appends []*pb.Message
	for _, m := range turn {
		if b, ok := m.Body.(wire.Raft); ok && b.GetType() == pb.MsgApp && len(b.Entries) > 0 {
			appends = append(appends, b.Message)
		}
	}
	g.Zones.turn(appends)
}

// Name returns the message to send in the place of m: with names, or m.
func (g *Giver) Name(m wire.Message, tick uint64) wire.Message {
	b, ok := m.Body.(wire.Raft)
	if !ok || b.GetType() != pb.MsgApp || len(b.Entries) == 0 {
		return m
	}
	p := g.taker(m.To, b.GetTerm())
	p.drop(func(o original) bool { return o.from >= b.GetIndex() }) // m replaces them
	sources := g.sources(p, m.To, tick)
	named := wire.Named{}
	o := original{from: b.GetIndex(), last: b.Entries[len(b.Entries)-1].GetIndex()}
	if named.Run, o.data = sources.run(b); named.Run.Count > 0 {
		o.bytes, o.relay = int(named.Run.Length), named.Run.Relay
		g.Counts.Runs++
		g.Counts.Relayed += named.Run.Length
		return g.named(p, m, named, o)
	}
	for i, e := range b.Entries {
		name, ok := sources.name(e)
		if !ok {
			continue
		}
		name.Entry, name.Length = uint64(i), uint64(len(e.Data))
		named.Names = append(named.Names, name)
		o.data = append(o.data, e.Data)
		o.bytes += len(e.Data)
		if name.Relay != 0 {
			o.relay = name.Relay
			g.Counts.Relayed += uint64(len(e.Data))
		}
	}
	if len(named.Names) == 0 {
		return m
	}
	return g.named(p, m, named, o)
}

// named returns an append with names, or with a run, whose original is kept.
func (g *Giver) named(p *taker, m wire.Message, named wire.Named, o original) wire.Message {
	p.last++
	g.trust(p, m.To, o.relay).named()
	named.Number, o.number = p.last, p.last
	named.Raft = withData(m.Body.(wire.Raft), named.Names, nil)
	if named.Run.Count > 0 {
		named.Raft.Entries = nil
	}
	g.keep(p, o)
	g.Counts.Named++
	g.Counts.Saved += uint64(o.bytes)
	m.Body = named
	return m
}

// sources is where a peer has data from, other than from the leader.
type sources struct {
	g     *Giver
	peer  uint64
	own   bool   // its own batches
	relay uint64 // or 0
}

func (g *Giver) sources(p *taker, peer, tick uint64) sources {
	s := sources{g: g, peer: peer, own: g.Announced != nil && p.trust.permits(tick) && g.Announced(peer)}
	if g.Zones != nil {
		s.relay = g.Zones.relay(peer, tick)
	}
	return s
}

// name returns the name of an entry's data, if the data is worth one, and the peer has it from elsewhere.
func (s sources) name(e *pb.Entry) (wire.Name, bool) {
	if len(e.Data) < minBytes || len(e.Data) > wire.MaxFrame || e.GetType() != pb.EntryNormal {
		return wire.Name{}, false
	}
	if s.own {
		if id, ok := s.g.Batch(s.peer, e.Data); ok {
			return wire.Name{Boot: id.Boot, Sequence: id.Sequence, Sum: Sum(e.Data)}, true
		}
	}
	if s.relay != 0 && s.g.Zones.sent[s.relay].has(e.GetIndex()) && s.g.Whole(e.Data) {
		return wire.Name{Relay: s.relay, Sum: s.g.sum(e)}, true
	}
	return wire.Name{}, false
}

// run returns the run that stands for an append's entries, and their data; without, if they are not worth one, the peer votes,
// or the relay was not sent all of them, or is of an earlier version, which keeps no small ones.
func (s sources) run(b wire.Raft) (r wire.Run, data [][]byte) {
	n := len(b.Entries)
	if s.relay == 0 || s.g.Runs == nil || n < 2 || n > wire.MaxRun || s.g.Zones.Voter(s.peer) || !s.g.Runs(s.peer) || !s.g.Runs(s.relay) {
		return wire.Run{}, nil
	}
	from, last := b.GetIndex(), b.GetIndex()+uint64(n)
	if relay := s.g.Zones.sent[s.relay]; !relay.has(from+1) || !relay.has(last) {
		return wire.Run{}, nil
	}
	for _, e := range b.Entries {
		if e.Type != nil || len(e.Data) == 0 || e.GetTerm() != b.GetTerm() || !s.g.Whole(e.Data) || len(e.ProtoReflect().GetUnknown()) > 0 {
			return wire.Run{}, nil
		}
		data, r.Length = append(data, e.Data), r.Length+uint64(len(e.Data))
	}
	if r.Length < minBytes || r.Length > wire.MaxFrame {
		return wire.Run{}, nil
	}
	r.Count, r.Relay, r.Sum = uint64(n), s.relay, s.g.runSum(from, last, data)
	return r, data
}

// runSum returns the checksum of a run, which several peers are sent in a turn.
func (g *Giver) runSum(from, last uint64, data [][]byte) uint64 {
	key := [2]uint64{from, last}
	sum, ok := g.runSums[key]
	if !ok {
		sum = sumOf(data)
		if g.runSums == nil {
			g.runSums = map[[2]uint64]uint64{}
		}
		g.runSums[key] = sum
	}
	return sum
}

// sum returns the checksum of an entry's data, which several peers are sent in a turn.
func (g *Giver) sum(e *pb.Entry) uint64 {
	sum, ok := g.sums[e.GetIndex()]
	if !ok {
		sum = Sum(e.Data)
		if g.sums == nil {
			g.sums = map[uint64]uint64{}
		}
		g.sums[e.GetIndex()] = sum
	}
	return sum
}

// trust returns the trust in a peer's keeping of its batches, or in a relay's passing on to the peer.
func (g *Giver) trust(p *taker, peer, relay uint64) *trust {
	if relay == 0 {
		return &p.trust
	}
	return g.Zones.trusts(pair{peer, relay})
}

// taker returns a peer in a term. Originals of an earlier term are of no use.
func (g *Giver) taker(peer, term uint64) *taker {
	if term != g.term {
		g.term = term
		for _, p := range g.peers {
			p.kept, p.bytes = nil, 0
		}
	}
	p := g.peers[peer]
	if p == nil {
		p = &taker{trust: trust{credit: fullCredit}}
		if g.peers == nil {
			g.peers = map[uint64]*taker{}
		}
		g.peers[peer] = p
	}
	return p
}

// keep keeps an original, and forgets the oldest ones for which there is no room.
func (g *Giver) keep(p *taker, o original) {
	p.kept = append(p.kept, o)
	p.bytes += o.bytes
	for p.bytes > keepBytes {
		g.Counts.Unkept++
		p.bytes -= p.kept[0].bytes
		p.kept = slices.Delete(p.kept, 0, 1)
	}
}

func (p *taker) drop(which func(original) bool) {
	p.kept = slices.DeleteFunc(p.kept, func(o original) bool {
		if which(o) {
			p.bytes -= o.bytes
			return true
		}
		return false
	})
}

// Acked forgets the originals that a peer has acknowledged, up to an index.
func (g *Giver) Acked(peer, term, index uint64) {
	if p := g.peers[peer]; p != nil && term == g.term {
		p.drop(func(o original) bool { return o.last <= index })
	}
}

// Lack answers a peer that cannot join a message; ok is false if there is nothing to answer. A Fill
// without data says that the data is gone, and the message with it.
func (g *Giver) Lack(peer uint64, l wire.Lack, tick uint64) (fill wire.Fill, ok bool, err error) {
	p := g.peers[peer]
	if p == nil || l.Term != g.term {
		return wire.Fill{}, false, nil // of an earlier term, or of an earlier life of this node
	}
	if l.Number == 0 || l.Number > p.last {
		return wire.Fill{}, false, fmt.Errorf("%w: node %d lacks message %d, want 1 to %d", errBad, peer, l.Number, p.last)
	}
	fill = wire.Fill{Term: l.Term, Number: l.Number}
	relay := uint64(0)
	p.drop(func(o original) bool { // answered once: repeated lacks cost no data
		if o.number == l.Number {
			fill.Data, relay = o.data, o.relay
		}
		return o.number == l.Number
	})
	if g.trust(p, peer, relay).lacked(tick) {
		g.Counts.Pauses++
	}
	if fill.Data == nil {
		g.Counts.Gone++
	} else {
		g.Counts.Filled++
	}
	return fill, true, nil
}

// trust decides whether a peer gets names. Each message with names earns a credit, each lack costs
// perLack: with lacks above 1%, the credit comes to an end, and the peer gets no names for a pause,
// which doubles each time until the credit has been full.
type trust struct {
	credit int
	from   uint64 // tick of the pause's end
	pause  uint64 // ticks, of the last one
}

const (
	perLack                  = 100
	fullCredit               = 3 * perLack
	firstPause, longestPause = 50, 6400 // ticks: 5 s to about 11 min at 100 ms
)

func (t *trust) permits(tick uint64) bool { return tick >= t.from }

func (t *trust) named() {
	if t.credit = min(t.credit+1, fullCredit); t.credit == fullCredit {
		t.pause = 0
	}
}

// lacked reports whether a pause begins. Lacks of messages sent before a pause do not count in the
// pause.
func (t *trust) lacked(tick uint64) bool {
	if !t.permits(tick) {
		return false
	}
	if t.credit -= perLack; t.credit >= 0 {
		return false
	}
	t.credit = perLack
	t.pause = min(max(2*t.pause, firstPause), longestPause)
	t.from = tick + t.pause
	return true
}

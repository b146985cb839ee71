// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package replica

import (
	"slices"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/internal/wire"
)

// holdModel is a leader with its log, and what it has made for each member and not sent.
type holdModel struct {
	t     *rapid.T
	h     holding
	now   time.Duration
	term  uint64
	terms []uint64 // of the log's entries, from index 1 on
	sizes []int    // of their data; below 0: a change of members
	// commit is another one in each append, so that no two are equal. next is, by member, the index that the core sends next.
	commit uint64
	next   map[uint64]uint64
	held   map[uint64]bool // by member: appends may be held
	queue  map[uint64][]madeFor
	joined int
}

// madeFor is a message, and when the core made it.
type madeFor struct {
	wire.Message
	at time.Duration
}

func (m *holdModel) last() uint64 { return uint64(len(m.terms)) }

func (m *holdModel) termAt(index uint64) uint64 {
	if index == 0 {
		return 0
	}
	return m.terms[index-1]
}

// append makes an append with so many entries from an index on.
func (m *holdModel) append(to, from, entries uint64) wire.Message {
	m.commit++
	app := &pb.Message{Type: pb.MsgApp.Enum(), To: new(to), From: new(uint64(1)), Term: new(m.term), Index: new(from - 1), LogTerm: new(m.termAt(from - 1)), Commit: new(m.commit)}
	for i := range entries {
		e := &pb.Entry{Term: new(m.termAt(from + i)), Index: new(from + i)}
		if size := m.sizes[from+i-1]; size >= 0 {
			e.Data = make([]byte, size)
		} else {
			e.Type = pb.EntryConfChangeV2.Enum()
		}
		app.Entries = append(app.Entries, e)
	}
	return wire.Message{Group: 7, From: 1, To: to, Body: wire.Raft{Message: app}}
}

// core makes messages for the members, as a core does in a turn.
func (m *holdModel) core(t *rapid.T) (made []wire.Message) {
	for to := uint64(2); to <= 4; to++ {
		for range rapid.IntRange(0, 3).Draw(t, "messages") {
			var msg wire.Message
			switch kind := rapid.IntRange(0, 9).Draw(t, "kind"); kind {
			case 0:
				msg = wire.Message{Group: 7, From: 1, To: to, Body: wire.Raft{Message: &pb.Message{Type: pb.MsgHeartbeat.Enum(), To: new(to), From: new(uint64(1)), Term: new(m.term), Commit: new(m.commit)}}}
			case 1:
				msg = wire.Message{Group: 7, From: 1, To: to, Body: wire.LogEnd{Number: 1}}
			case 2: // the core goes back, or forward
				m.next[to] = rapid.Uint64Range(1, m.last()+1).Draw(t, "next")
				fallthrough
			default:
				n := m.last() + 1 - m.next[to]
				if kind < 6 {
					n = rapid.Uint64Range(0, n).Draw(t, "entries")
				}
				msg = m.append(to, m.next[to], n)
				m.next[to] += n
			}
			made = append(made, msg)
		}
	}
	return made
}

// grow has the log grow, or the term end.
func (m *holdModel) grow(t *rapid.T) {
	for range rapid.IntRange(0, 3).Draw(t, "grows") {
		size := rapid.SampledFrom([]int{0, 10, 10, 100, 600, -1}).Draw(t, "size")
		if size < 0 && rapid.IntRange(0, 3).Draw(t, "change") > 0 {
			size = 5
		}
		m.terms, m.sizes = append(m.terms, m.term), append(m.sizes, size)
	}
	if rapid.IntRange(0, 15).Draw(t, "term") == 0 {
		m.term++
	}
}

// left takes a message that leaves: one that was made, or some of them joined.
func (m *holdModel) left(msg wire.Message) {
	q := m.queue[msg.To]
	b, ok := msg.Body.(wire.Raft)
	if !ok || b.GetType() != pb.MsgApp {
		if len(q) == 0 || q[0].Body != msg.Body {
			m.t.Fatalf("%v leaves for node %d in front of %d others", msg.Body, msg.To, len(q))
		}
		m.queue[msg.To] = q[1:]
		return
	}
	want, n, bytes := &pb.Message{}, 0, 0
	for len(q) > 0 && (n == 0 || !proto.Equal(want, b.Message)) {
		part, ok := q[0].Body.(wire.Raft)
		if !ok || part.GetType() != pb.MsgApp || n > 0 && (part.GetTerm() != want.GetTerm() || part.GetIndex() != want.GetIndex()+uint64(len(want.Entries))) {
			break
		}
		if n == 0 {
			want = proto.Clone(part.Message).(*pb.Message)
		} else {
			want.Entries, want.Commit = append(want.Entries, part.Entries...), part.Commit
		}
		q, n = q[1:], n+1
	}
	if !proto.Equal(want, b.Message) {
		m.t.Fatalf("node %d is sent %v, of what was made for it that is joined %v", msg.To, b.Message, want)
	}
	for _, e := range b.Entries {
		bytes += len(e.Data)
	}
	if n > 1 && bytes > m.h.maxBytes {
		m.t.Fatalf("%d appends are joined, of %d bytes, the bound is %d", n, bytes, m.h.maxBytes)
	}
	m.queue[msg.To], m.joined = q, m.joined+n-1
}

// rests looks at what is held at the end of a turn.
func (m *holdModel) rests() {
	var first time.Duration
	due := false
	for to, q := range m.queue {
		for _, made := range q {
			switch b, ok := made.Body.(wire.Raft); {
			case !ok, b.GetType() != pb.MsgApp, !m.held[to], changeIn(b) > 0:
				m.t.Fatalf("%v is held for node %d", made.Body, to)
			case m.now-made.at >= m.h.longest:
				m.t.Fatalf("an append for node %d is held since %v, it is %v", to, made.at, m.now)
			}
		}
		if len(q) == 0 {
			continue
		}
		if end, _ := endOf(q[len(q)-1].Body.(wire.Raft)); end != m.last() {
			m.t.Fatalf("an append for node %d is held that ends at %d, and the log ends at %d", to, end, m.last())
		}
		if at := q[0].at + m.h.longest; !due || at < first {
			first, due = at, true
		}
	}
	if at, ok := m.h.deadline(); ok != due || at != first {
		m.t.Fatalf("the next append leaves at %v (%v), want %v (%v)", at, ok, first, due)
	}
}

// What leaves for a member is what was made for it, in order, but that appends without a gap are joined. Nothing waits but appends that
// end where the log ends, to members for which appends may be held, and these wait within the bound.
func TestHeldAppendsLeaveInOrderAndInTime(t *testing.T) {
	joined := 0
	rapid.Check(t, func(t *rapid.T) {
		m := &holdModel{t: t, h: holding{longest: 5 * time.Millisecond, maxBytes: 1000}, term: 3, terms: []uint64{1, 3}, sizes: []int{5, 5},
			next: map[uint64]uint64{2: 3, 3: 3, 4: 1}, held: map[uint64]bool{}, queue: map[uint64][]madeFor{}}
		for range rapid.IntRange(1, 40).Draw(t, "turns") {
			m.now += time.Duration(rapid.IntRange(0, 3).Draw(t, "ms")) * time.Millisecond
			if rapid.IntRange(0, 3).Draw(t, "members") == 0 {
				ids := rapid.SampledFrom([][]uint64{{2, 3}, {2, 3}, {3}, {2, 3, 4}, nil}).Draw(t, "of")
				m.h.members(ids)
				for id := uint64(2); id <= 4; id++ {
					m.held[id] = slices.Contains(ids, id)
				}
			}
			if rapid.IntRange(0, 7).Draw(t, "go") == 0 {
				m.h.letGo(3)
				m.held[3] = false
			}
			m.grow(t)
			made := m.core(t)
			for _, msg := range made {
				m.queue[msg.To] = append(m.queue[msg.To], madeFor{msg, m.now})
				if b, ok := msg.Body.(wire.Raft); ok && changeIn(b) > 0 {
					m.held[msg.To] = false
				}
			}
			for _, msg := range m.h.turn(made, m.now, m.last()) {
				m.left(msg)
			}
			m.rests()
		}
		m.h.members(nil)
		clear(m.held)
		for _, msg := range m.h.turn(nil, m.now, m.last()) {
			m.left(msg)
		}
		m.rests()
		if uint64(m.joined) != m.h.joined {
			t.Fatalf("%d appends were joined, counted are %d", m.joined, m.h.joined)
		}
		joined += m.joined
	})
	if joined == 0 {
		t.Fatal("nothing was joined")
	}
}

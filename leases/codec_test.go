// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package leases

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// sampleRoster draws a roster that may be.
func sampleRoster(r *rand.Rand, id RosterID) Roster {
	out := Roster{ID: id, Leader: 1, Voters: Voters{Incoming: []NodeID{1, 2, 3}}, Retired: r.IntN(2) == 0, Tuner: TunerMode(r.IntN(4))}
	if r.IntN(2) == 0 {
		out.Voters.Outgoing = []NodeID{2, 1 << 60}
	}
	bounds := []string{"", "a", "b\x00", "k\xff", ""}
	for i := range len(bounds) - 1 {
		span := Span{Start: bounds[i], End: bounds[i+1]}
		switch r.IntN(3) {
		case 0:
			out.Spans = append(out.Spans, Assignment{Span: span, Responders: []Responder{{Node: 2, Barrier: Index(r.Uint64())}, {Node: 9}}})
		case 1:
			out.Wanted = append(out.Wanted, Want{Span: span, Nodes: []NodeID{4, 5}, Tuned: r.IntN(2) == 0})
		}
	}
	return out
}

// sampleMessage draws a message that may be.
func sampleMessage(r *rand.Rand) Message {
	nonce := func() Nonce { return Nonce{Boot: Boot(r.Uint64()), Counter: 1 + r.Uint64N(1<<r.IntN(64))} }
	some := func() bool { return r.IntN(2) == 0 }
	m := Message{Term: Term(1 + r.Uint64N(1000))}
	if some() {
		m.Request = nonce()
	}
	if some() {
		m.Answer = Answer{Nonce: nonce(), For: time.Duration(1 + r.Int64N(1e10)), Seq: Seq(1 + r.Uint64N(9))}
	} else if some() {
		m.Answer = Answer{Nonce: nonce()}
	}
	if some() {
		m.Revoke, m.Confirm = nonce(), nonce()
	}
	if some() {
		m.Report = Report{Known: 9, Adopted: Seq(r.Uint64N(9))}
	}
	if some() {
		first := Seq(1 + r.Uint64N(9))
		for i := range r.IntN(4) {
			m.Lists = append(m.Lists, sampleRoster(r, RosterID{Term: m.Term, Seq: first + Seq(i)}))
		}
		m.News = News{Newest: first + Seq(max(len(m.Lists), 1)-1), Least: first}
	}
	if some() {
		m.Usage = []Usage{{Span: Span{Start: "x"}, Reads: r.Uint32(), Writes: 3}, {Span: KeySpan("y")}}
	}
	return m
}

func TestMessagesSurviveTheirEncoding(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		m := sampleMessage(r)
		data := AppendMessage(nil, &m)
		got, err := ParseMessage(data)
		require.NoError(t, err)
		require.Equal(t, m, got)
		x := Note{Term: 1 + Term(r.Uint64N(9)), Index: 1 + Index(r.Uint64N(math.MaxUint64-1)), Newest: Seq(r.Uint64N(9))}
		note, err := ParseNote(AppendNote(nil, x))
		require.NoError(t, err)
		require.Equal(t, x, note)
	}
}

// A heartbeat between two nodes that renew each other's leases is small.
func TestHeartbeatsAreSmall(t *testing.T) {
	m := Message{Term: 1000, Request: Nonce{Boot: math.MaxUint64, Counter: 1 << 20},
		Answer: Answer{Nonce: Nonce{Boot: math.MaxUint64, Counter: 1 << 20}, For: time.Second, Seq: 7}, Report: Report{Known: 7, Adopted: 7}}
	require.LessOrEqual(t, len(AppendMessage(nil, &m)), 40)
}

// After any cut, change or addition, bytes are refused or are the only encoding of their
// message.
func TestDamagedMessagesAreRefused(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	refused := 0
	for range 3000 {
		m := sampleMessage(r)
		data := AppendMessage(nil, &m)
		switch at := r.IntN(len(data)); r.IntN(3) {
		case 0:
			data = data[:at]
		case 1:
			data[at] ^= byte(1 + r.IntN(255))
		case 2:
			data = append(data, byte(r.Uint32()))
		}
		got, err := ParseMessage(data)
		if err != nil {
			require.ErrorIs(t, err, ErrMalformed)
			refused++
			continue
		}
		require.Equal(t, data, AppendMessage(nil, &got))
	}
	require.Greater(t, refused, 1500)
}

func TestImpossibleMessagesAreRefused(t *testing.T) {
	ok := func() Roster {
		return Roster{ID: RosterID{Term: 5, Seq: 2}, Leader: 1, Voters: Voters{Incoming: []NodeID{1, 2, 3}},
			Spans: []Assignment{{Span: Span{End: "m"}, Responders: []Responder{{Node: 2}, {Node: 3}}}}, Wanted: []Want{{Nodes: []NodeID{2}}}}
	}
	list := func(change func(*Roster)) Message {
		r := ok()
		change(&r)
		return Message{Term: 5, News: News{Newest: 2, Least: 1}, Lists: []Roster{r}}
	}
	_, err := ParseMessage(AppendMessage(nil, ptr(list(func(*Roster) {}))))
	require.NoError(t, err)
	for want, m := range map[string]Message{
		"term 0":            {Request: Nonce{Boot: 1, Counter: 1}},
		"both or neither":   {Term: 5, Answer: Answer{Nonce: Nonce{Counter: 1}, Seq: 1}},
		"newest known is":   {Term: 5, Report: Report{Known: 1, Adopted: 2}},
		"is in use":         {Term: 5, News: News{Newest: 1, Least: 2}},
		"last of 1 rosters": {Term: 5, Lists: []Roster{ok()}},
		"at place 1":        {Term: 5, News: News{Newest: 2}, Lists: []Roster{ok(), ok()}},
		"begin with 1":      list(func(r *Roster) { r.ID.Term = 0 }),
		"in a message of":   list(func(r *Roster) { r.ID.Term = 4 }),
		"leader 0":          list(func(r *Roster) { r.Leader = 0 }),
		"without voters":    list(func(r *Roster) { r.Voters = Voters{} }),
		"voters":            list(func(r *Roster) { r.Voters.Outgoing = []NodeID{3, 2} }),
		"is a responder":    list(func(r *Roster) { r.Spans[0].Responders[0].Node = 1 }),
		"ascending":         list(func(r *Roster) { r.Spans[0].Responders[1].Node = 2 }),
		"does not end before": list(func(r *Roster) {
			r.Spans = append(r.Spans, Assignment{Span: Span{Start: "l"}, Responders: []Responder{{Node: 2}}})
		}),
		"has no key":    list(func(r *Roster) { r.Wanted[0].Span = Span{Start: "b", End: "a"} }),
		"nodes wanted":  list(func(r *Roster) { r.Wanted[0].Nodes = []NodeID{0} }),
		"usage of span": {Term: 5, Usage: []Usage{{Span: Span{Start: "b", End: "b"}}}},
	} {
		_, err := ParseMessage(AppendMessage(nil, &m))
		require.ErrorIs(t, err, ErrMalformed, want)
		require.ErrorContains(t, err, want)
		require.ErrorIs(t, m.validate(), ErrMalformed, want)
	}
	require.ErrorContains(t, ptr(list(func(r *Roster) { r.Spans[0].Responders = nil })).validate(), "no responders")
	require.ErrorContains(t, (&Message{Term: 1, Answer: Answer{For: 1, Seq: 1}}).validate(), "no request")
	require.ErrorContains(t, (&Message{Term: 1, Answer: Answer{Nonce: Nonce{Counter: 1}, For: -1, Seq: 1}}).validate(), "a grant for -1ns")
	for _, x := range []Note{{}, {Term: 1}, {Index: 1}} {
		_, err := ParseNote(AppendNote(nil, x))
		require.ErrorIs(t, err, ErrMalformed)
	}
}

func ptr[T any](x T) *T { return &x }

// Lists longer than their bounds are refused before memory is taken for them.
func TestLongListsAreRefused(t *testing.T) {
	many := make([]NodeID, MaxNodes+1)
	for i := range many {
		many[i] = NodeID(i + 1)
	}
	long := Message{Term: 1, News: News{Newest: 1, Least: 1}, Lists: []Roster{{ID: RosterID{1, 1}, Leader: 1, Voters: Voters{Incoming: many}}}}
	require.Error(t, long.validate())
	_, err := ParseMessage(AppendMessage(nil, &long))
	require.ErrorContains(t, err, "256 nodes")
	_, err = ParseMessage(AppendMessage(nil, &Message{Term: 1, Lists: make([]Roster, MaxRosters+1)}))
	require.ErrorContains(t, err, "17 rosters")
	_, err = ParseMessage(AppendMessage(nil, &Message{Term: 1, Usage: make([]Usage, MaxUsage+1)}))
	require.ErrorContains(t, err, "257 spans with usage")
	_, err = ParseMessage(AppendMessage(nil, &Message{Term: 1, Usage: []Usage{{Span: Span{Start: strings.Repeat("x", MaxKey+1)}}}}))
	require.ErrorContains(t, err, "513 bytes of a bound")
}

func FuzzParseMessage(f *testing.F) {
	r := rand.New(rand.NewPCG(5, 6))
	for range 50 {
		m := sampleMessage(r)
		f.Add(AppendMessage(nil, &m))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := ParseMessage(data)
		if err != nil {
			require.ErrorIs(t, err, ErrMalformed)
			require.Equal(t, Message{}, m)
			return
		}
		require.Equal(t, data, AppendMessage(nil, &m))
		// No message, whoever sends it, breaks an invariant of who takes it.
		for _, leader := range []NodeID{1, 2} {
			n := started(Config{ID: 2, Boot: 7, ElectionTimeout: time.Second, Tuner: &TunerConfig{}}, Start{Now: 5, Term: m.Term, Empty: true})
			n.Configured(6, Members{Voters: Voters{Incoming: []NodeID{1, 2, 3}}})
			n.Turned(7, Turn{Term: m.Term, Leader: leader, First: 1})
			n.Heard(7)
			n.Poll(8)
			if err := n.Step(9, 1, m); err != nil {
				require.ErrorIs(t, err, ErrMalformed)
			}
			n.Tick(10)
			n.Poll(10)
			require.NoError(t, n.Check())
		}
	})
}

func FuzzParseNote(f *testing.F) {
	f.Add(AppendNote(nil, Note{Term: 3, Index: 7, Newest: 2}))
	f.Fuzz(func(t *testing.T, data []byte) {
		x, err := ParseNote(data)
		if err != nil {
			require.ErrorIs(t, err, ErrMalformed)
			return
		}
		require.Equal(t, data, AppendNote(nil, x))
	})
}

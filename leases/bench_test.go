// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package leases

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// benchNode returns node 2 or the leader of a group whose first nodes are responders, with
// entries in its log that are not committed.
func benchNode(b testing.TB, id NodeID, nodes, responders, waiting int) *Node {
	b.Helper()
	var ids []NodeID
	for i := range nodes {
		ids = append(ids, NodeID(i+1))
	}
	n, err := New(Config{ID: id, Boot: 1, ElectionTimeout: time.Second}, Start{Now: 1, Empty: true})
	if err != nil {
		b.Fatal(err)
	}
	n.Configured(1, Members{Voters: Voters{Incoming: ids}})
	n.Turned(1, Turn{Term: 1, Leader: 1, First: 1})
	n.TermDurable(1)
	r := Roster{ID: RosterID{Term: 1, Seq: 9}, Leader: 1, Voters: n.members.Voters, Spans: []Assignment{{}}}
	for i := range responders {
		r.Spans[0].Responders = append(r.Spans[0].Responders, Responder{Node: NodeID(i + 2)})
	}
	n.learn([]Roster{r})
	n.tryAdopt(1)
	n.Appended(Entries{First: 1, Count: waiting + 1, Keys: func(Index) []Span { return []Span{KeySpan("other")} }})
	n.Committed(1)
	n.Applied(1)
	for _, p := range n.peers {
		p.holding = holding{until: Instant(time.Hour), counter: 1, roster: r.ID}
	}
	return n
}

// A leader that waits for no change of the configuration looks at no roster as entries are applied.
func TestAppliedEntriesTakeNoMemory(t *testing.T) {
	n := benchNode(t, 1, 5, 4, 1000)
	n.Poll(2)
	require.Zero(t, testing.AllocsPerRun(100, func() {
		n.Committed(n.committed + 1)
		n.Applied(n.committed)
		n.Poll(2)
	}))
}

func BenchmarkReadIndex(b *testing.B) {
	for _, nodes := range []int{3, 5, 7} {
		for _, waiting := range []int{0, 100} {
			b.Run(fmt.Sprintf("N=%d/waiting=%d", nodes, waiting), func(b *testing.B) {
				n := benchNode(b, 2, nodes, nodes-1, waiting)
				span := KeySpan("k")
				b.ReportAllocs()
				for b.Loop() {
					if _, ok := n.ReadIndex(2, span); !ok {
						b.Fatal("not stable")
					}
				}
			})
		}
	}
}

func BenchmarkCommittable(b *testing.B) {
	for _, nodes := range []int{3, 5, 7} {
		for _, waiting := range []int{1, 100} {
			b.Run(fmt.Sprintf("N=%d/waiting=%d", nodes, waiting), func(b *testing.B) {
				n := benchNode(b, 1, nodes, nodes-1, waiting)
				b.ReportAllocs()
				for b.Loop() {
					n.Committable(n.last)
				}
			})
		}
	}
}

func BenchmarkMessage(b *testing.B) {
	m := Message{Term: 7, Request: Nonce{Boot: 1 << 60, Counter: 12345}, Report: Report{Known: 3, Adopted: 3},
		Answer: Answer{Nonce: Nonce{Boot: 1 << 61, Counter: 12345}, For: time.Second, Seq: 3}}
	data := AppendMessage(nil, &m)
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	for b.Loop() {
		data = AppendMessage(data[:0], &m)
		if _, err := ParseMessage(data); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkPermit is what each turn of a node with leases pays for reads between turns:
// nothing has changed, or the log has grown.
func BenchmarkPermit(b *testing.B) {
	for _, nodes := range []int{3, 5, 7} {
		for _, grows := range []bool{false, true} {
			b.Run(fmt.Sprintf("N=%d/grows=%v", nodes, grows), func(b *testing.B) {
				n := benchNode(b, 2, nodes, nodes-1, 10)
				permit := n.Permit(nil)
				b.ReportAllocs()
				for b.Loop() {
					if grows {
						n.last++
					}
					if permit = n.Permit(permit); permit == nil {
						b.Fatal("not stable")
					}
				}
			})
		}
	}
}

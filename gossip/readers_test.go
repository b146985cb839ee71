// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package gossip

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/weftraft/weft/ecraft"
)

func nobody(uint64) bool { return false }

// TestReadersGetOnePayloadTogether: whatever voters were assigned, readers get each of D units
// once, and the voters' pushes to each other are those of a group without readers.
func TestReadersGetOnePayloadTogether(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		voters, readers := rapid.IntRange(2, 8).Draw(t, "voters"), rapid.IntRange(1, 20).Draw(t, "readers")
		h := &ecraft.Header{Kind: ecraft.Coded, Encoder: 1, PayloadLen: 1000}
		h.Layout = ecraft.NewLayout(voters+1, voters+readers)
		held := 0
		for i := range h.Slots {
			h.Members = append(h.Members, uint64(i)+2)
			n := 0
			if i < voters {
				n = rapid.IntRange(0, h.D).Draw(t, "units")
			}
			h.Units = append(h.Units, uint8(n))
			held += n
		}
		index := rapid.Uint64().Draw(t, "index")
		isReader := func(id uint64) bool { return id >= uint64(voters)+2 }
		alone := *h
		alone.Members, alone.Units, alone.Slots = h.Members[:voters], h.Units[:voters], voters
		type unit struct{ slot, at int }
		got, share := map[unit]uint64{}, map[uint64]int{}
		for s, id := range h.Members[:voters] {
			list := Targets(h, id, index, Peers{Reader: isReader}, nil)
			usual := Targets(&alone, id, index, Peers{Reader: isReader}, nil)
			require.True(t, slices.Equal(usual, list[:len(usual)]), "pushes to voters come first, and are as ever")
			for _, p := range list[len(usual):] {
				require.True(t, isReader(p.Peer))
				for at := p.First; at < p.First+p.Count; at++ {
					require.Less(t, at, int(h.Units[s]), "a unit that the sender has")
					require.NotContains(t, got, unit{s, at})
					got[unit{s, at}] = p.Peer
					share[p.Peer]++
				}
			}
		}
		require.Len(t, got, min(held, h.D))
		for _, n := range share {
			require.LessOrEqual(t, n, (h.D+readers-1)/readers, "readers share the units evenly")
		}
		require.Empty(t, Targets(h, h.Members[voters], index, Peers{Reader: isReader}, nil), "a reader pushes nothing")
	})
}

// TestSlotsOfReadersAreTheLast: a learner with units, as a leader of an earlier version gives
// it, and one in front of a voter, have their place in the schedule.
func TestSlotsOfReadersAreTheLast(t *testing.T) {
	h := &ecraft.Header{Layout: ecraft.Layout{D: 2, Slots: 4}, Members: []uint64{2, 3, 4, 5}, Units: []uint8{1, 0, 1, 0}}
	odd := func(id uint64) bool { return id%2 == 1 }
	require.Equal(t, 3, FirstReader(h, odd))
	require.Equal(t, 4, FirstReader(h, nobody))
	h.Units[3] = 1
	require.Equal(t, 4, FirstReader(h, odd))
}

// TestReadersPassUnitsOn: a reader takes units of a voter's slot from a reader; from a voter, at a
// voter, or beyond what the slot was assigned it takes none.
func TestReadersPassUnitsOn(t *testing.T) {
	payload := []byte("whatever clients have said")
	h := &ecraft.Header{Kind: ecraft.Coded, Encoder: 1, PayloadLen: len(payload), PayloadCRC: ecraft.Checksum(payload),
		Layout: ecraft.Layout{D: 2, Slots: 4}, Members: []uint64{2, 3, 4, 5}, Units: []uint8{1, 1, 0, 0}}
	word := ecraft.NewCodeword(h, payload)
	id := ecraft.ID{Term: 1, Index: 9}
	for _, early := range []bool{false, true} {
		s := NewStore(5, 1<<20)
		if !early {
			s.Expect(id, h)
		}
		for slot := range 2 {
			_, err := s.Pass(id, 4, word.Strip(slot, 0, 1))
			require.NoError(t, err)
		}
		s.Expect(id, h)
		require.Equal(t, payload, s.Payload(id), "early %t", early)
	}
	for name, x := range map[string]struct {
		self, from  uint64
		slot, first int
	}{"from a voter": {5, 2, 1, 0}, "at a voter": {3, 4, 0, 0}, "beyond the assigned": {5, 4, 0, 1}, "of a reader": {5, 4, 2, 0}, "from nobody": {5, 77, 0, 0}} {
		s := NewStore(x.self, 1<<20)
		s.Expect(id, h)
		_, err := s.Pass(id, x.from, word.Strip(x.slot, x.first, 1))
		require.ErrorIs(t, err, ErrRefused, name)
		_, err = s.Add(id, 4, word.Strip(1, 0, 1))
		if x.self == 5 {
			require.ErrorIs(t, err, ErrRefused, "what is passed on says so")
		}
	}
}

// TestNodeWithoutUnitsAsksItsNeighbourFirst, then those with units, then the others.
func TestNodeWithoutUnitsAsksItsNeighbourFirst(t *testing.T) {
	h := &ecraft.Header{Layout: ecraft.Layout{D: 2, Slots: 6}, Members: []uint64{2, 3, 4, 5, 6, 7}, Units: []uint8{1, 0, 1, 0, 0, 0}}
	p := NewPuller(5, PullerOptions{})
	p.SetMembers([]uint64{1, 2, 3, 4, 5, 6, 7, 8})
	require.Equal(t, []uint64{6, 2, 4, 7, 3, 8}, p.ring(h, 10, 1, nil))
	require.Equal(t, []uint64{6, 4, 2, 7, 3, 8}, p.ring(h, 11, 1, nil), "each entry begins with another")
	h.Units[3] = 1
	require.Equal(t, []uint64{6, 7, 2, 3, 4, 8}, p.ring(h, 11, 1, nil), "a node with units")
}

// TestAllLinksSendToTheNodeThatWasAway has four members with units, of which any two complete an entry.
func TestAllLinksSendToTheNodeThatWasAway(t *testing.T) {
	h := &ecraft.Header{Layout: ecraft.Layout{D: 2, Slots: 6}, Members: []uint64{2, 3, 4, 5, 6, 7}, Units: []uint8{1, 1, 1, 1, 0, 0}, PayloadLen: 64}
	p := NewPuller(7, PullerOptions{})
	p.SetMembers([]uint64{1, 2, 3, 4, 5, 6, 7})
	var missing []Lacking
	for i := range uint64(8) {
		missing = append(missing, Lacking{ID: ecraft.ID{Term: 1, Index: i + 1}, Header: h, Need: 2, Overdue: true, First: make([]uint8, 6)})
	}
	units := map[uint64]int{}
	for _, a := range p.Plan(0, missing, 1, nil) {
		for _, w := range a.Wants {
			units[a.To] += w.Need
		}
	}
	require.Equal(t, map[uint64]int{2: 4, 3: 4, 4: 4, 5: 4}, units)
}

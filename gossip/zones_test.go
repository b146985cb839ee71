// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package gossip

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/weftraft/weft/ecraft"
)

// spreading is what becomes of an entry by pushes, and by passing on.
type spreading struct {
	h     *ecraft.Header
	peers Peers
	index uint64
	has   map[uint64]map[[2]int]bool // units by slot and place
	into  map[string]int             // units that came into a zone
	twice int                        // units that came where they were
}

// spreadZones has all members that are up push their units, and pass them on.
func spreadZones(h *ecraft.Header, peers Peers, index uint64) *spreading {
	w := &spreading{h: h, peers: peers, index: index, has: map[uint64]map[[2]int]bool{}, into: map[string]int{}}
	for at, id := range h.Members {
		w.has[id] = map[[2]int]bool{}
		for unit := range int(h.Units[at]) {
			w.has[id][[2]int{at, unit}] = true
		}
	}
	for at, id := range h.Members {
		if peers.down(id) {
			continue
		}
		for _, p := range Targets(h, id, index, peers, nil) {
			for unit := p.First; unit < p.First+p.Count; unit++ {
				w.arrive('p', id, p.Peer, [2]int{at, unit})
			}
		}
	}
	return w
}

// arrive takes a unit as package coding does: a voter passes on what was pushed, a reader what a voter has sent.
func (w *spreading) arrive(step byte, from, to uint64, unit [2]int) {
	if !w.peers.near(from, to) {
		w.into[w.peers.Zone(to)]++
	}
	if w.has[to][unit] {
		w.twice++
	}
	w.has[to][unit] = true
	reads := w.h.SlotOf(to) >= FirstReader(w.h, w.peers.Reader)
	next := map[bool]byte{true: 'o', false: 'c'}[reads]
	if step == 'o' || step == 'c' && !reads {
		return
	}
	for _, id := range PassOn(w.h, to, from, w.index, w.peers, nil) {
		w.arrive(next, to, id, unit)
	}
}

// zonesDrawn returns voters and readers in some zones, of which some members are down: they were assigned nothing, and the
// others hold D units or more together.
func zonesDrawn(t *rapid.T) (h *ecraft.Header, zones map[uint64]string, down map[uint64]bool, voters int) {
	voters = rapid.IntRange(2, 8).Draw(t, "voters")
	h = &ecraft.Header{Kind: ecraft.Coded, Encoder: 1, PayloadLen: 1000}
	h.Layout = ecraft.NewLayout(voters+1, voters+rapid.IntRange(0, 12).Draw(t, "readers"))
	zones, down = map[uint64]string{}, map[uint64]bool{}
	for held := 0; held < h.D; {
		held, h.Members, h.Units = 0, nil, nil
		for at := range h.Slots {
			id, units := uint64(at)+2, 0
			zones[id] = rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "zone")
			if down[id] = rapid.IntRange(0, 6).Draw(t, "down") == 0; at < voters && !down[id] {
				units = rapid.IntRange(1, h.D).Draw(t, "units")
			}
			h.Members, h.Units, held = append(h.Members, id), append(h.Units, uint8(units)), held+units
		}
	}
	return h, zones, down, voters
}

// TestUnitsComeIntoAZoneOnce: each member that is up gets D units and none twice, and a zone gets those that its members lack
// together from elsewhere.
func TestUnitsComeIntoAZoneOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h, zones, down, voters := zonesDrawn(t)
		reads := func(id uint64) bool { return id >= uint64(voters)+2 }
		peers := Peers{Reader: reads, Zone: func(id uint64) string { return zones[id] }, Down: func(id uint64) bool { return down[id] }}
		w := spreadZones(h, peers, rapid.Uint64().Draw(t, "index"))
		require.Zero(t, w.twice, "a unit comes where it was")
		lacks := map[string]int{}
		for at, id := range h.Members {
			if down[id] {
				require.Empty(t, w.has[id], "node %d is down", id)
				continue
			}
			require.GreaterOrEqual(t, len(w.has[id]), h.D, "node %d", id)
			if _, ok := lacks[zones[id]]; !ok {
				lacks[zones[id]] = h.D
			}
			lacks[zones[id]] -= int(h.Units[at])
		}
		for zone, n := range lacks {
			require.Equal(t, max(n, 0), w.into[zone], "zone %s", zone)
		}
	})
}

// TestFiveMembersInThreeZones has the figures of five members, whose leader stands with node 4: with the units that the
// leader sends, 6 of 6 into the two other zones, 16 of 6 cross.
func TestFiveMembersInThreeZones(t *testing.T) {
	h := coded(6, 2, 2, 2, 2)
	zone := func(id uint64) string { return []string{"a", "a", "b", "c", "a", "b"}[id] }
	first := map[uint64]int{}
	for index := range uint64(12) {
		w := spreadZones(h, Peers{Reader: nobody, Zone: zone}, index)
		require.Equal(t, map[string]int{"a": 4, "b": 2, "c": 4}, w.into)
		for _, p := range Targets(h, 4, index, Peers{Reader: nobody, Zone: zone}, nil) {
			first[p.Peer]++
		}
	}
	require.Equal(t, map[uint64]int{2: 6, 3: 12, 5: 6}, first, "collectors take turns")
}

// TestVotersWithoutUnitsDoNotCollect, unless nobody else is there.
func TestVotersWithoutUnitsDoNotCollect(t *testing.T) {
	h := coded(6, 2, 0, 2, 2)
	zone := func(id uint64) string { return []string{"", "", "b", "b", "a", "a"}[id] }
	for index := range uint64(4) {
		require.Contains(t, Targets(h, 4, index, Peers{Reader: nobody, Zone: zone}, nil), Push{Peer: 2, Count: 2})
	}
	down := func(id uint64) bool { return id == 2 }
	require.Contains(t, Targets(h, 4, 0, Peers{Reader: nobody, Zone: zone, Down: down}, nil), Push{Peer: 3, Count: 2})
}

// TestMembersWhoseZonesAreNotKnownAreApart: each is pushed what it lacks, and passes nothing on.
func TestMembersWhoseZonesAreNotKnownAreApart(t *testing.T) {
	h := coded(6, 2, 2, 2, 2)
	peers := Peers{Reader: nobody, Zone: func(id uint64) string { return map[uint64]string{2: "a"}[id] }}
	got := map[uint64]int{}
	for _, p := range Targets(h, 2, 0, peers, nil) {
		got[p.Peer] += p.Count
	}
	require.Equal(t, map[uint64]int{3: 2, 4: 2, 5: 2}, got)
	require.Empty(t, PassOn(h, 3, 2, 0, peers, nil))
}

// TestZonesDoNotMatterWithoutAnOwnZone: a node that knows no zone of its own pushes as without zones, and so does one
// whose zone has all members.
func TestZonesDoNotMatterWithoutAnOwnZone(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h, zones, down, voters := zonesDrawn(t)
		usual := Peers{Reader: func(id uint64) bool { return id >= uint64(voters)+2 }, Down: func(id uint64) bool { return down[id] }}
		for _, self := range h.Members[:voters] {
			want := Targets(h, self, 7, usual, nil)
			unknown, alike := usual, usual
			unknown.Zone = func(id uint64) string {
				if id == self {
					return ""
				}
				return zones[id]
			}
			alike.Zone = func(uint64) string { return "a" }
			require.Equal(t, want, Targets(h, self, 7, unknown, nil))
			require.Equal(t, want, Targets(h, self, 7, alike, nil))
			require.Empty(t, PassOn(h, self, h.Members[0], 7, unknown, nil))
			require.Empty(t, PassOn(h, self, h.Members[0], 7, alike, nil))
		}
	})
}

// TestVoterPassesUnitsOn: a voter takes any assigned unit of another voter that says so.
func TestVoterPassesUnitsOn(t *testing.T) {
	payload := []byte("whatever clients have said")
	h := &ecraft.Header{Kind: ecraft.Coded, Encoder: 1, PayloadLen: len(payload), PayloadCRC: ecraft.Checksum(payload),
		Layout: ecraft.Layout{D: 2, Slots: 4}, Members: []uint64{2, 3, 4, 5}, Units: []uint8{1, 1, 1, 0}}
	word := ecraft.NewCodeword(h, payload)
	id := ecraft.ID{Term: 1, Index: 9}
	for _, self := range []uint64{3, 5} {
		s := NewStore(self, 1<<20)
		s.Expect(id, h)
		_, err := s.Collect(id, 2, word.Strip(2, 1, 1))
		require.ErrorIs(t, err, ErrRefused, "beyond the assigned")
		_, err = s.Collect(id, 77, word.Strip(2, 0, 1))
		require.ErrorIs(t, err, ErrRefused, "from nobody")
		_, err = s.Add(id, 2, word.Strip(2, 0, 1))
		require.ErrorIs(t, err, ErrRefused, "what is passed on says so")
		for slot := range 2 {
			_, err = s.Collect(id, 4, word.Strip(slot, 0, 1))
			require.NoError(t, err)
		}
		require.Equal(t, payload, s.Payload(id))
	}
}

// TestNearMembersAreAskedFirst, and far ones after a hedge: a silent collector costs ticks.
func TestNearMembersAreAskedFirst(t *testing.T) {
	near := func(id uint64) bool { return id == 4 || id == 6 }
	p := newPuller(PullerOptions{Near: near, Hedge: 6})
	missing := lacking(1)
	require.Equal(t, []uint64{4, 6, 3, 5}, p.ring(missing[0].Header, missing[0].Index, 1, nil))
	missing[0].First = []uint8{2, 0, 2, 0, 2} // those near have pushed
	missing[0].Need, missing[0].Next = 2, true
	asks := func(from, to int) (list [][4]int) {
		for now := from; now < to; now++ {
			list = append(list, asked(p.Plan(now, missing, 1, nil))...)
		}
		return list
	}
	require.Equal(t, [][4]int{{4, 2, 2, 2}, {6, 2, 2, 2}}, asks(0, 5), "one after the other, for all: node 4 is silent")
	p.Answered(6, at(1))
	require.Empty(t, asks(5, 8), "pushes may still come")
	require.Equal(t, [][4]int{{3, 2, 2, 0}}, asks(8, 9), "then a far one")

	for name, l := range map[string]struct {
		near func(id uint64) bool
		edit func(*Lacking)
	}{
		"nobody is near": {func(uint64) bool { return false }, func(*Lacking) {}},
		"urgent":         {near, func(l *Lacking) { l.Urgent = true }},
		"overdue":        {near, func(l *Lacking) { l.Overdue = true }},
	} {
		p := newPuller(PullerOptions{Near: l.near, Hedge: 100})
		missing := lacking(1)
		l.edit(&missing[0])
		far := 0
		for now := range 12 {
			for _, a := range asked(p.Plan(now, missing, 1, nil)) {
				if !near(uint64(a[0])) {
					far++
				}
			}
		}
		require.Positive(t, far, name)
	}
}

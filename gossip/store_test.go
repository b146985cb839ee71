// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package gossip

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weftraft/weft/ecraft"
)

// entry is a coded entry with all that can be known of it.
type entry struct {
	ecraft.ID
	h       *ecraft.Header
	payload []byte
	word    *ecraft.Codeword
}

// newEntry makes an entry of node 1 for slots of nodes 2, 3, ....
func newEntry(id ecraft.ID, size, d int, units ...uint8) *entry {
	e := &entry{ID: id, h: coded(d, units...), payload: make([]byte, size)}
	rng := rand.NewChaCha8([32]byte{byte(id.Term), byte(id.Index), byte(id.Index >> 8), byte(size)})
	_, _ = rng.Read(e.payload) // never fails
	e.h.PayloadLen, e.h.PayloadCRC = size, ecraft.Checksum(e.payload)
	e.word = ecraft.NewCodeword(e.h, e.payload)
	return e
}

// units returns units of a node's slot.
func (e *entry) units(node uint64, first, count int) ecraft.Strip {
	return e.word.Strip(e.h.SlotOf(node), first, count)
}

// base returns the units that a node was assigned.
func (e *entry) base(node uint64) ecraft.Strip { return e.units(node, 0, e.h.BaseOf(node)) }

// lie returns a strip whose checksums are right and whose units are not.
func (e *entry) lie(node uint64, first, count int) ecraft.Strip {
	payload := bytes.Clone(e.payload)
	for i := range payload {
		payload[i] ^= byte(node + 1)
	}
	word := ecraft.NewCodeword(e.h, payload)
	return word.Strip(e.h.SlotOf(node), first, count)
}

// corrupted returns a strip with one byte of one unit changed.
func corrupted(s ecraft.Strip, unit int) ecraft.Strip {
	data := ecraft.AppendStrip(nil, s)
	data[len(data)-(s.Count-unit)*(s.UnitLen+4)] ^= 1
	s, _, err := ecraft.ParseStrip(data)
	if err != nil {
		panic(err)
	}
	return s
}

func TestUnitsBecomeThePayload(t *testing.T) {
	e := newEntry(at(7), 1000, 6, 2, 2, 2, 2)
	s := NewStore(2, 1<<20)
	require.False(t, s.Expect(e.ID, e.h, e.base(2)))
	require.True(t, s.Known(e.ID))
	units, own := s.Missing(e.ID)
	require.Equal(t, 4, units)
	require.Equal(t, 2, own)
	complete, err := s.Add(e.ID, 3, e.base(3))
	require.NoError(t, err)
	require.False(t, complete)
	require.Nil(t, s.Payload(e.ID))
	list := s.Lacking(7, 10, nil)
	require.Len(t, list, 1)
	require.Equal(t, []uint8{2, 2, 0, 0}, list[0].First)
	require.Equal(t, 2, list[0].Need)
	require.Empty(t, s.Lacking(6, 10, nil))
	// The rest comes from a peer that has the payload: units of our own slot.
	complete, err = s.Add(e.ID, 5, e.units(2, 2, 2))
	require.NoError(t, err)
	require.True(t, complete)
	require.Equal(t, e.payload, s.Payload(e.ID))
	require.Empty(t, s.Lacking(7, 10, nil))
	require.NoError(t, s.Check())
}

func TestUnitsThatComeEarlyCount(t *testing.T) {
	e := newEntry(at(7), 1000, 6, 2, 2, 2, 2)
	s := NewStore(2, 1<<20)
	for _, from := range []uint64{3, 4} {
		complete, err := s.Add(e.ID, from, e.base(from))
		require.NoError(t, err)
		require.False(t, complete)
	}
	other := newEntry(ecraft.ID{Term: 2, Index: 7}, 1000, 6, 2, 2, 2, 2)
	_, err := s.Add(other.ID, 5, other.base(5))
	require.NoError(t, err)
	require.True(t, s.Expect(e.ID, e.h, e.base(2)), "units of another term do no harm")
	require.Equal(t, e.payload, s.Payload(e.ID))
	require.NoError(t, s.Check())
	s.Applied(7)
	require.Equal(t, recordBytes+1000, s.Bytes(), "early units of what is applied are gone")
}

// A unit that was damaged on the way is refused; others of the strip count.
func TestDamagedUnitsAreRefused(t *testing.T) {
	e := newEntry(at(7), 1000, 6, 2, 2, 2, 2)
	s := NewStore(2, 1<<20)
	s.Expect(e.ID, e.h, e.base(2))
	_, err := s.Add(e.ID, 3, corrupted(e.base(3), 1))
	require.ErrorIs(t, err, ecraft.ErrCorrupt)
	require.ErrorContains(t, err, "peer 3")
	units, _ := s.Missing(e.ID)
	require.Equal(t, 3, units)
	_, err = s.Add(e.ID, 3, e.base(3))
	require.NoError(t, err, "the same peer may send it again")
	complete, err := s.Add(e.ID, 4, e.base(4))
	require.NoError(t, err)
	require.True(t, complete)
	require.NoError(t, s.Check())
}

func TestUnitsOfOthersSlotsAreRefused(t *testing.T) {
	e := newEntry(at(7), 1000, 6, 2, 2, 2, 2)
	s := NewStore(2, 1<<20)
	s.Expect(e.ID, e.h, e.base(2))
	for _, from := range []uint64{3, 1, 77} {
		_, err := s.Add(e.ID, from, e.base(5))
		require.ErrorIs(t, err, ErrRefused)
	}
	_, err := s.Add(e.ID, 3, newEntry(at(7), 2000, 6, 2, 2, 2, 2).base(3))
	require.ErrorIs(t, err, ecraft.ErrMalformed, "units of another length")
	units, _ := s.Missing(e.ID)
	require.Equal(t, 4, units)
}

// Units from the log that rotted there are got from others.
func TestOwnUnitsMayBeDamaged(t *testing.T) {
	e := newEntry(at(7), 1000, 6, 2, 2, 2, 2)
	s := NewStore(2, 1<<20)
	s.Expect(e.ID, e.h, corrupted(e.base(2), 0))
	units, own := s.Missing(e.ID)
	require.Equal(t, 5, units)
	require.Equal(t, 0, own)
	complete, err := s.Add(e.ID, 3, e.units(2, 0, 6))
	require.NoError(t, err)
	require.True(t, complete)
	require.Equal(t, e.payload, s.Payload(e.ID))
}

// TestWrongUnitsAreAskedForAgain: units with right checksums make a wrong payload.
// Those of peers are dropped, and what comes afterwards makes the right one. Own units
// stay, unless no others are to blame.
func TestWrongUnitsAreAskedForAgain(t *testing.T) {
	e := newEntry(at(7), 1000, 6, 2, 2, 2, 2)
	s := NewStore(2, 1<<20)
	s.ExpectPinned(e.ID, e.h, e.base(2))
	_, err := s.Add(e.ID, 3, e.lie(3, 0, 2))
	require.NoError(t, err)
	complete, err := s.Add(e.ID, 4, e.base(4))
	require.ErrorIs(t, err, ErrWrongPayload)
	require.ErrorContains(t, err, "peers [3 4]")
	require.False(t, complete)
	require.NoError(t, s.Check())
	units, own := s.Missing(e.ID)
	require.Equal(t, []int{4, 2}, []int{units, own}, "all that was not in the log is wanted again")
	for _, from := range []uint64{3, 4} {
		complete, err = s.Add(e.ID, from, e.base(from))
		require.NoError(t, err)
	}
	require.True(t, complete)
	require.Equal(t, e.payload, s.Payload(e.ID))
	require.True(t, s.Pin(e.ID))

	s = NewStore(2, 1<<20)
	s.Expect(e.ID, e.h, e.lie(2, 0, 6))
	units, own = s.Missing(e.ID)
	require.Equal(t, []int{6, 0}, []int{units, own}, "nothing of it is of use")
	complete, err = s.Add(e.ID, 3, e.units(2, 0, 6))
	require.NoError(t, err)
	require.True(t, complete)
	require.NoError(t, s.Check())
}

// TestOwnUnitsComeBack: units of the log that a peer had sent as well, and those of a
// rider, are still there when the units of peers are dropped.
func TestOwnUnitsComeBack(t *testing.T) {
	e := newEntry(at(7), 1000, 6, 2, 2, 2, 2)
	s := NewStore(2, 1<<20)
	s.Expect(e.ID, e.h)
	_, err := s.Add(e.ID, 3, e.units(2, 0, 1))
	require.NoError(t, err)
	s.Expect(e.ID, e.h, e.base(2))
	_, err = s.Add(e.ID, 2, e.units(2, 0, 3)) // a rider
	require.NoError(t, err)
	_, err = s.Add(e.ID, 4, e.lie(4, 0, 3))
	require.ErrorIs(t, err, ErrWrongPayload)
	units, own := s.Missing(e.ID)
	require.Equal(t, []int{3, 3}, []int{units, own})
	require.NoError(t, s.Check())
}

// put has a store complete an entry.
func (s *Store) put(e *entry) { s.Expect(e.ID, e.h, e.units(s.self, 0, e.h.D)) }

func TestOldestIsAlwaysAdmitted(t *testing.T) {
	s := NewStore(2, 6000)
	big := newEntry(at(5), 10000, 6, 2, 2, 2, 2)
	small := newEntry(at(6), 100, 6, 2, 2, 2, 2)
	s.Expect(small.ID, small.h, small.base(2))
	require.True(t, s.Known(small.ID))
	s.Expect(big.ID, big.h, big.base(2))
	require.True(t, s.Known(big.ID))
	require.True(t, s.Known(small.ID), "there is room as yet")
	_, _ = s.Add(big.ID, 3, big.base(3))
	require.False(t, s.Known(small.ID))
	from, ok := s.Forgot()
	require.True(t, ok)
	require.EqualValues(t, 6, from)
	_, ok = s.Forgot()
	require.False(t, ok, "once")
	complete, err := s.Add(big.ID, 4, big.base(4))
	require.NoError(t, err)
	require.True(t, complete)
	require.NoError(t, s.Check())
	require.Greater(t, s.Bytes(), 6000)
	s.Applied(5)
	require.Zero(t, s.Bytes(), "what is applied has no privilege")
	s.Expect(small.ID, small.h, small.base(2))
	require.True(t, s.Known(small.ID))
}

func TestPinnedEntriesStay(t *testing.T) {
	s := NewStore(2, 3000)
	list := []*entry{}
	for i := range uint64(4) {
		e := newEntry(at(i+1), 1000, 6, 2, 2, 2, 2)
		list = append(list, e)
		s.put(e)
		require.Equal(t, i < 2, s.Pin(e.ID))
		require.NoError(t, s.Check())
	}
	s.put(newEntry(at(9), 5000, 6, 2, 2, 2, 2))
	require.Equal(t, list[0].payload, s.Payload(list[0].ID))
	require.Equal(t, list[1].payload, s.Payload(list[1].ID))
	require.False(t, s.Known(at(9)))
	s.Unpin(list[1].ID)
	require.True(t, s.Known(list[1].ID), "there is room")
	s.Applied(1)
	s.put(list[2])
	require.False(t, s.Known(list[0].ID), "what is complete and applied needs no pin")
	require.NoError(t, s.Check())
}

// An old entry that is needed once more can be pinned before it has to go,
// however full the store is of newer ones.
func TestOldEntriesCanBePinned(t *testing.T) {
	s := NewStore(2, 10000)
	for i := range uint64(20) {
		e := newEntry(at(i+10), 1000, 6, 2, 2, 2, 2)
		s.put(e)
		if i < 15 {
			s.Applied(e.Index)
		}
	}
	e := newEntry(at(3), 1000, 6, 2, 2, 2, 2)
	s.Expect(e.ID, e.h, e.base(2))
	require.False(t, s.Known(e.ID))
	s.ExpectPinned(e.ID, e.h, e.base(2))
	require.True(t, s.Lacking(3, 1, nil)[0].Urgent)
	s.put(newEntry(at(40), 5000, 6, 2, 2, 2, 2))
	complete, err := s.Add(e.ID, 3, e.units(2, 2, 4))
	require.NoError(t, err)
	require.True(t, complete)
	require.NoError(t, s.Check())
	s.Unpin(e.ID)
	require.LessOrEqual(t, s.Bytes(), 10000)
	require.NoError(t, s.Check())
}

// TestFloodOfEarlyUnitsIsBounded: what is too much is dropped, and there is room again
// when the entries that the units are of cannot come any more.
func TestFloodOfEarlyUnitsIsBounded(t *testing.T) {
	s := NewStore(2, 80000)
	e := newEntry(at(3000), 1000, 6, 2, 2, 2, 2)
	for i := range uint64(1000) {
		_, _ = s.Add(at(i+100), 5, e.base(5))
	}
	require.NoError(t, s.Check())
	require.LessOrEqual(t, s.Bytes(), 80000/earlyShare)
	s.Applied(2000)
	require.Zero(t, s.Bytes())
	_, _ = s.Add(e.ID, 3, e.base(3))
	_, _ = s.Add(e.ID, 4, e.base(4))
	require.True(t, s.Expect(e.ID, e.h, e.base(2)))
	require.NoError(t, s.Check())
}

func TestCutForgetsEntries(t *testing.T) {
	s := NewStore(2, 1<<20)
	for i := range uint64(5) {
		e := newEntry(at(i+1), 100, 6, 2, 2, 2, 2)
		s.put(e)
	}
	s.Cut(3)
	require.True(t, s.Known(at(2)))
	require.False(t, s.Known(at(3)))
	e := newEntry(ecraft.ID{Term: 2, Index: 2}, 100, 6, 2, 2, 2, 2)
	s.Expect(e.ID, e.h)
	require.False(t, s.Known(at(2)), "one entry an index")
	require.NoError(t, s.Check())
}

// An entry that was applied and is needed once more, to make units of it, can be
// had again.
func TestAppliedEntriesCanBeExpected(t *testing.T) {
	s := NewStore(2, 1<<20)
	s.Applied(10)
	e := newEntry(at(7), 1000, 6, 2, 2, 2, 2)
	s.ExpectPinned(e.ID, e.h, e.base(2))
	s.Applied(11)
	require.Len(t, s.Lacking(10, 9, nil), 1)
	complete, err := s.Add(e.ID, 3, e.units(2, 2, 4))
	require.NoError(t, err)
	require.True(t, complete)
	require.NoError(t, s.Check())
}

func TestEntriesThatAreNotCoded(t *testing.T) {
	s := NewStore(2, 1<<20)
	require.False(t, s.Expect(at(1), &ecraft.Header{Kind: ecraft.Whole}))
	require.False(t, s.Known(at(1)))
	require.NoError(t, s.Check())
}

// What is lacking of an old entry is not asked for when nobody needs it any more.
func TestOldEntriesAreGivenUp(t *testing.T) {
	s := NewStore(2, 10000)
	s.Applied(5)
	e := newEntry(at(3), 1000, 6, 2, 2, 2, 2)
	s.ExpectPinned(e.ID, e.h, e.base(2))
	s.Pin(e.ID)
	s.Unpin(e.ID)
	require.Len(t, s.Lacking(5, 9, nil), 1)
	s.Unpin(e.ID)
	require.Empty(t, s.Lacking(5, 9, nil))
	require.Zero(t, s.Bytes())
	require.NoError(t, s.Check())
}

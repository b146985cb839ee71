// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package gossip

import (
	"encoding/hex"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weftraft/weft/ecraft"
)

func TestMessagesGolden(t *testing.T) {
	e := newEntry(at(7), 6, 3, 1, 1)
	require.Equal(t, "01040602", hex.EncodeToString(AppendAsk(nil, Want{Need: 4, OwnHeld: 6, Theirs: 2})))
	require.Equal(t, "0100", hex.EncodeToString(AppendUnits(nil)))
	strip := e.units(3, 0, 2)
	require.Equal(t, "0101"+hex.EncodeToString(ecraft.AppendStrip(nil, strip)),
		hex.EncodeToString(AppendUnits(nil, strip)))
}

func TestMessagesRoundTrip(t *testing.T) {
	e := newEntry(at(7), 100, 6, 2, 2, 2, 2)
	for _, u := range [][]ecraft.Strip{
		nil, {e.units(2, 4, 2)}, {e.units(3, 0, 1), e.units(3, 1, 3), e.units(2, 0, 6)},
	} {
		got, err := ParseUnits(AppendUnits([]byte{}, u...))
		require.NoError(t, err)
		require.Equal(t, u, got)
	}
	u, err := ParseUnits(nil)
	require.NoError(t, err, "no data stands for no units")
	require.Empty(t, u)
	w := Want{ID: at(9), Need: 255, OwnHeld: 6, Theirs: 0}
	got, err := ParseAsk(w.ID, AppendAsk(nil, w))
	require.NoError(t, err)
	require.Equal(t, w, got)
}

func TestMalformedMessages(t *testing.T) {
	e := newEntry(at(7), 100, 6, 2, 2, 2, 2)
	good := AppendUnits(nil, e.base(2))
	change := func(at int, to byte) []byte {
		data := append([]byte(nil), good...)
		data[at] = to
		return data
	}
	for _, data := range [][]byte{
		good[:1], change(0, 2), change(1, maxStrips+1), change(1, 2), change(1, 0),
		good[:len(good)-1], append(good[:len(good):len(good)], 0), change(2, 1),
		append([]byte{1, 1}, ecraft.AppendStrip(nil, ecraft.Strip{})...),
	} {
		_, err := ParseUnits(data)
		require.ErrorIs(t, err, ErrMalformed, "%x", data)
	}
	for _, data := range [][]byte{nil, {1, 1, 1}, {1, 1, 1, 1, 1}, {2, 1, 1, 1}, {1, 0, 1, 1}} {
		_, err := ParseAsk(at(1), data)
		require.ErrorIs(t, err, ErrMalformed, "%x", data)
	}
}

// A store keeps small units of a message, and counts them: the rest of the message is not kept with them.
func TestFewUnitsDoNotKeepALargeMessage(t *testing.T) {
	small, large := newEntry(at(7), 60, 6, 1, 1), newEntry(at(7), 1<<20, 6, 1, 1)
	data := AppendUnits(nil, small.units(2, 0, 1), large.units(3, 0, 3))
	u, err := ParseUnits(data)
	require.NoError(t, err)
	clear(data)
	require.NoError(t, u[0].Verify(), "it has memory of its own")
	require.Error(t, u[1].Verify(), "most of the message is not copied")
}

// A complete responder gives units of the asker's slot, an incomplete one what it
// has of its own.
func TestAnswer(t *testing.T) {
	e := newEntry(at(7), 100, 6, 2, 2, 2, 2)
	own := []ecraft.Strip{e.units(3, 0, 2), e.units(3, 2, 1)}
	places := func(strips []ecraft.Strip) (list [][3]int) {
		for _, s := range strips {
			require.NoError(t, s.Verify())
			list = append(list, [3]int{s.Slot, s.First, s.Count})
		}
		return list
	}
	for _, c := range []struct {
		name     string
		asker    uint64
		w        Want
		complete bool
		want     [][3]int
	}{
		{"complete", 2, Want{Need: 4, OwnHeld: 2}, true, [][3]int{{0, 2, 4}}},
		{"more than there is", 2, Want{Need: 9, OwnHeld: 4}, true, [][3]int{{0, 4, 2}}},
		{"all held", 2, Want{Need: 1, OwnHeld: 6}, true, nil},
		{"beyond", 2, Want{Need: 1, OwnHeld: 255}, true, nil},
		{"no slot", 99, Want{Need: 6, Theirs: 0}, true, [][3]int{{1, 0, 6}}},
		{"incomplete", 2, Want{Need: 4, OwnHeld: 2}, false, [][3]int{{1, 0, 2}, {1, 2, 1}}},
		{"part is there", 2, Want{Need: 4, OwnHeld: 2, Theirs: 1}, false, [][3]int{{1, 1, 1}, {1, 2, 1}}},
		{"few needed", 2, Want{Need: 1, OwnHeld: 2}, false, [][3]int{{1, 0, 1}}},
		{"nothing new", 2, Want{Need: 4, Theirs: 3}, false, nil},
		{"nothing needed", 2, Want{}, true, nil},
	} {
		word := e.word
		if !c.complete {
			word = nil
		}
		require.Equal(t, c.want, places(Answer(e.h, 3, c.asker, c.w, own, word)), c.name)
	}
	// Each rider has all units above the base ones: those of an earlier rider do
	// not count once more.
	ridden := []ecraft.Strip{e.units(3, 0, 2), e.units(3, 2, 1), e.units(3, 2, 2), e.units(3, 2, 1), e.units(3, 2, 3)}
	require.Equal(t, [][3]int{{1, 0, 2}, {1, 2, 1}, {1, 3, 1}, {1, 4, 1}}, places(Answer(e.h, 3, 2, Want{Need: 6}, ridden, nil)))

	require.Nil(t, Answer(e.h, 1, 99, Want{Need: 6}, nil, e.word), "neither has a slot")
	require.Nil(t, Answer(&ecraft.Header{Kind: ecraft.Carrier}, 3, 2, Want{Need: 6}, nil, nil))
}

func FuzzParseUnits(f *testing.F) {
	e := newEntry(at(7), 100, 6, 2, 2, 2, 2)
	f.Add(AppendUnits(nil, e.base(2), e.base(3)))
	f.Add([]byte{1, 0})
	f.Fuzz(func(t *testing.T, data []byte) {
		u, err := ParseUnits(data)
		if err != nil {
			require.ErrorIs(t, err, ErrMalformed)
			return
		}
		if len(data) > 0 {
			require.Equal(t, data, AppendUnits(nil, u...))
		}
		s := NewStore(2, 1<<16)
		s.Expect(e.ID, e.h, e.base(2))
		for _, strip := range u {
			for from := uint64(0); from < 4; from++ {
				_, _ = s.Add(e.ID, from, strip)
				_, _ = s.Add(at(8), from, strip)
			}
		}
		require.NoError(t, s.Check())
	})
}

func FuzzParseAsk(f *testing.F) {
	f.Add([]byte{1, 4, 2, 0})
	e := newEntry(at(7), 100, 6, 2, 2, 2, 2)
	f.Fuzz(func(t *testing.T, data []byte) {
		w, err := ParseAsk(at(7), data)
		if err != nil {
			require.ErrorIs(t, err, ErrMalformed)
			return
		}
		require.Equal(t, data, AppendAsk(nil, w))
		for _, c := range []*ecraft.Codeword{e.word, nil} {
			for asker := uint64(0); asker < 7; asker++ {
				for _, strip := range Answer(e.h, 3, asker, w, []ecraft.Strip{e.base(3)}, c) {
					require.NoError(t, strip.Verify())
				}
			}
		}
	})
}

// FuzzLyingPeers lets peers send whatever the input says: the truth, lies with
// right checksums, damaged units, other slots. No wrong payload ever comes out,
// no account is wrong; and what an honest peer that is complete sends afterwards, twice,
// makes the payload.
func FuzzWrongUnits(f *testing.F) {
	e := newEntry(at(7), 100, 6, 2, 2, 2, 2)
	f.Add([]byte{3, 0, 2, 4, 0, 2})
	f.Add([]byte{0x83, 0, 2, 4, 0, 2, 0x83, 0, 2, 4, 0, 2, 5, 0, 2})
	f.Fuzz(func(t *testing.T, script []byte) {
		s := NewStore(2, 1<<16)
		expected := false
		for ; len(script) >= 3; script = script[3:] {
			from := uint64(1 + script[0]&7)
			if from == 2 {
				continue // units of the own log
			}
			slot, first := uint64(script[1]&3)+2, int(script[1]>>2)%6
			count := 1 + int(script[2])%(6-first)
			strip := e.units(slot, first, count)
			switch {
			case script[0]&0x80 != 0 && from <= 4: // 1 to 4 lie, 3 and 4 have slots
				strip = e.lie(slot, first, count)
			case script[0]&0x40 != 0:
				strip = corrupted(strip, int(script[2]>>4)%count)
			case script[0]&0x20 != 0 && !expected:
				expected = true
				s.Expect(e.ID, e.h, e.base(2))
			}
			_, _ = s.Add(e.ID, from, strip)
			require.NoError(t, s.Check())
		}
		s.Expect(e.ID, e.h, e.base(2))
		for range 2 {
			_, _ = s.Add(e.ID, 5, e.units(2, 2, 4))
		}
		require.NoError(t, s.Check())
		require.Equal(t, e.payload, s.Payload(e.ID))
	})
}

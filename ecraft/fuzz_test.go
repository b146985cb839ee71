// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package ecraft_test

import (
	"bytes"
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weftraft/weft/ecraft"
)

// FuzzParse gives Parse arbitrary bytes, also with right checksums, as a liar would send. Bytes
// that Parse accepts have the only valid form: sealed again from the parts, they are the same
// bytes.
func FuzzParse(f *testing.F) {
	for _, s := range samples() {
		f.Add(s.data, s.prefix, s.node, false)
		f.Add(s.data, s.prefix, s.node, true)
		f.Add(s.data[:len(s.data)/2], s.prefix, s.node, true)
	}
	f.Fuzz(func(t *testing.T, data []byte, prefix int, node uint64, liar bool) {
		if liar {
			data = lie(data, prefix)
		}
		e, err := ecraft.Parse(data, prefix, node)
		if err != nil {
			require.ErrorIs(t, err, ecraft.ErrMalformed)
			require.Nil(t, e)
			return
		}
		require.True(t, ecraft.IsEnvelope(data, prefix))
		_, found := ecraft.Detect(data)
		require.True(t, found)
		require.NoError(t, e.Validate())
		again := append(bytes.Clone(e.Prefix), ecraft.AppendHeader(nil, &e.Header)...)
		// The header's CRC and its prefix length count the prefix in.
		copy(again[prefix+10:], data[prefix+10:prefix+12])
		copy(again[len(again)-4:], data[len(again)-4:len(again)])
		if e.Own.Count > 0 {
			again = ecraft.AppendStrip(again, e.Own)
		}
		for _, s := range e.RiderUnits {
			again = ecraft.AppendStrip(again, s)
		}
		require.Equal(t, data, append(again, e.Payload...))
		if e.Kind == ecraft.Coded && e.Payload != nil {
			resealed(t, e, data, prefix, node)
		}
	})
}

// lie returns data with right checksums of the header, if data is long enough, and of a payload
// after the header.
func lie(data []byte, prefix int) []byte {
	const fixed = 36
	if prefix < 0 || prefix > 100 || len(data) < prefix+fixed+4 {
		return data
	}
	data = bytes.Clone(data)
	env := data[prefix:]
	copy(env, samples()[0].data[:9])
	binary.LittleEndian.PutUint16(env[10:], uint16(prefix))
	end := min(max(int(env[12])+int(env[13])<<8-4, fixed), len(env)-4) // any length that fits
	binary.LittleEndian.PutUint32(env[12:], uint32(end+4))
	if env[14]&1 != 0 { // the rest is a payload
		binary.LittleEndian.PutUint32(env[16:], uint32(len(env)-end-4))
		binary.LittleEndian.PutUint32(env[20:], ecraft.Checksum(env[end+4:]))
	}
	binary.LittleEndian.PutUint32(env[end:], ecraft.Checksum(data[:prefix+end]))
	return data
}

// resealed makes the envelope anew from its header and payload, and the envelopes of all other
// members, which must be able to parse theirs.
func resealed(t *testing.T, e *ecraft.Envelope, data []byte, prefix int, node uint64) {
	c := ecraft.NewCodeword(&e.Header, e.Payload)
	defer c.Free()
	if len(e.Riders) == 0 {
		require.Equal(t, data, ecraft.Seal(nil, &e.Header, node, prefix, c, nil))
	}
	a := ecraft.NewAssembly(&e.Header)
	defer a.Free()
	for slot, to := range e.Members {
		other, err := ecraft.Parse(ecraft.Seal(nil, &e.Header, to, prefix, c, nil), prefix, to)
		require.NoError(t, err)
		require.NoError(t, other.Own.Verify())
		_, err = a.Add(c.Strip(slot, 0, e.D))
		require.NoError(t, err)
	}
	got, err := a.Payload()
	require.NoError(t, err)
	require.True(t, bytes.Equal(e.Payload, got))
}

// FuzzParseStrip gives ParseStrip arbitrary bytes.
func FuzzParseStrip(f *testing.F) {
	p := payload(1, 60)
	c := ecraft.NewCodeword(atLevel(5, 1, p), p)
	f.Add(ecraft.AppendStrip(nil, c.Strip(1, 2, 3)))
	f.Add(ecraft.AppendStrip([]byte{}, ecraft.Strip{}))
	f.Add(append(ecraft.AppendStrip(nil, c.Strip(3, 5, 1)), "more"...))
	f.Fuzz(func(t *testing.T, data []byte) {
		s, rest, err := ecraft.ParseStrip(data)
		if err != nil {
			require.ErrorIs(t, err, ecraft.ErrMalformed)
			return
		}
		require.Equal(t, len(data), s.EncodedLen()+len(rest))
		require.Equal(t, data, append(ecraft.AppendStrip(nil, s), rest...))
		good := 0
		for i := range s.Count {
			u, err := s.Unit(i)
			if err != nil {
				require.ErrorIs(t, err, ecraft.ErrCorrupt)
				continue
			}
			good++
			require.Len(t, u, s.UnitLen)
			require.NoError(t, s.Sub(s.First+i, 1).Verify())
		}
		require.Equal(t, good == s.Count, s.Verify() == nil)
	})
}

// FuzzAssembly has peers send units, some of them lies: units of another payload, of another
// layout, damaged units, or arbitrary bytes. The result is the payload or an error, and the honest
// units are always enough.
func FuzzAssembly(f *testing.F) {
	f.Add([]byte{0, 0, 3, 1, 1, 0x13, 2, 2, 0x25, 3, 3, 0x36}, []byte("the payload, which is not long"), []byte("x"))
	f.Add([]byte{2, 0, 1, 0, 0, 0x16}, payload(1, 200), []byte{7, 7})
	f.Add([]byte{1, 3, 0x61, 1, 1, 3}, []byte{0}, []byte{})
	f.Fuzz(func(t *testing.T, steps, p, own []byte) {
		if len(p) == 0 || len(p) > 1<<12 || len(steps) == 0 || len(steps) > 300 {
			return
		}
		n := 3 + int(steps[0]%7)
		h := atLevel(n, 1, p)
		lie := bytes.Clone(p)
		lie[int(steps[0])%len(p)] ^= 1
		codewords := []*ecraft.Codeword{
			ecraft.NewCodeword(h, p),
			ecraft.NewCodeword(h, lie),
			ecraft.NewCodeword(atLevel(n, 1, append(lie, p...)), append(lie, p...)),
		}
		a := ecraft.NewAssembly(h)
		for steps = steps[1:]; len(steps) >= 3; steps = steps[3:] {
			slot, first := int(steps[1])%h.Slots, int(steps[2]>>4)%h.D
			count := min(int(steps[2]&15), h.D-first)
			raw := ecraft.AppendStrip(nil, codewords[int(steps[0])%len(codewords)].Strip(slot, first, count))
			switch steps[0] >> 6 {
			case 1: // damaged somewhere
				raw[int(steps[1])*7%len(raw)] ^= steps[2] | 1
			case 2: // bytes of its own
				raw = own
			}
			s, _, err := ecraft.ParseStrip(raw)
			if err != nil {
				continue
			}
			before := a.Missing()
			added, err := a.Add(s)
			if err != nil && added == s.Count {
				t.Fatalf("all units added, and %v", err)
			}
			require.GreaterOrEqual(t, before-a.Missing(), min(added, before))
			if got, err := a.Payload(); err == nil {
				require.True(t, bytes.Equal(p, got))
			} else if a.Missing() > 0 {
				require.ErrorIs(t, err, ecraft.ErrIncomplete)
			} else {
				require.ErrorIs(t, err, ecraft.ErrCorrupt)
			}
		}
		a = ecraft.NewAssembly(h)
		for slot := range h.Slots {
			_, err := a.Add(codewords[0].Strip(slot, 0, 1+h.D/2))
			require.NoError(t, err)
		}
		got, err := a.Payload()
		require.NoError(t, err)
		require.True(t, bytes.Equal(p, got))
	})
}

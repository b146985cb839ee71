// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package replica

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/internal/wire"
)

func TestEnvelopeRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		commands := rapid.SliceOfN(rapid.SliceOf(rapid.Byte()), 0, 5).Draw(t, "commands")
		id := wire.CommandID{Origin: rapid.Uint64Min(1).Draw(t, "origin"), Boot: rapid.Uint64().Draw(t, "boot"), Sequence: rapid.Uint64Min(1).Draw(t, "sequence")}
		floor := rapid.Uint64Max(id.Sequence).Draw(t, "floor")
		env, err := decodeEnvelope(encodeBatch(id, floor, commands))
		require.NoError(t, err)
		require.Equal(t, id, env.id)
		require.Equal(t, floor, env.floor)
		require.Len(t, env.commands, len(commands))
		for i := range commands {
			require.True(t, bytes.Equal(commands[i], env.commands[i]))
		}
	})
	env, err := decodeEnvelope(asVerbatim([]byte("as it is")))
	require.NoError(t, err)
	require.Equal(t, "as it is", string(env.commands[0]))
}

// asVerbatim puts a command in an envelope without an id, as hosts do that write entries by themselves.
func asVerbatim(command []byte) []byte { return append([]byte{kindVerbatim}, command...) }

// The format is durable: these bytes must always mean the same.
func TestEnvelopeBytes(t *testing.T) {
	id := wire.CommandID{Origin: 1, Boot: 2, Sequence: 300}
	require.Equal(t, []byte("\x10x"), asVerbatim([]byte("x")))
	require.Equal(t, []byte("\x11\x01\x02\xac\x02\x03x"), encodeBatch(id, 3, [][]byte{[]byte("x")}))
	require.Equal(t, []byte("\x12\x01\x02\xac\x02\x03\x02\x01x\x02yz"), encodeBatch(id, 3, [][]byte{[]byte("x"), []byte("yz")}))
	require.Equal(t, []byte("\x13\x01\x02\xac\x02\x03"), encodeBatch(id, 3, nil))
}

func FuzzEnvelope(f *testing.F) {
	id := wire.CommandID{Origin: 1, Boot: 2, Sequence: 300}
	f.Add(asVerbatim([]byte("x")))
	for n := range 3 {
		f.Add(encodeBatch(id, 3, make([][]byte, n)))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		env, err := decodeEnvelope(data)
		if err != nil {
			require.ErrorIs(t, err, errEntryFormat)
			return
		}
		if env.kind != kindVerbatim {
			again, err := decodeEnvelope(encodeBatch(env.id, env.floor, env.commands))
			require.NoError(t, err)
			require.Equal(t, len(env.commands), len(again.commands))
			require.Equal(t, env.id, again.id)
		}
	})
}

func FuzzHostState(f *testing.F) {
	h := hostState{at: logMark{term: 3, index: 9}, conf: pb.EnsureConfState(&pb.ConfState{Voters: []uint64{1, 2}}),
		origins: originTable{1: {boot: 5, floor: 2, above: []uint64{4, 7}}}}
	f.Add(h.encode())
	f.Fuzz(func(t *testing.T, data []byte) {
		h, err := decodeHostState(data)
		if err != nil {
			require.ErrorIs(t, err, ErrState)
			return
		}
		again, err := decodeHostState(h.encode())
		require.NoError(t, err)
		require.Equal(t, h.at, again.at)
		require.Equal(t, h.encode(), again.encode())
	})
}

// The table lets each sequence through once, whatever comes in whatever order,
// and its size follows what is under way, not what has been.
func TestOriginTable(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const window = 8
		table, applied := originTable{}, map[uint64]bool{}
		floor, next := uint64(1), uint64(1)
		for range rapid.IntRange(1, 200).Draw(t, "steps") {
			for next < floor+window {
				next++
			}
			seq := floor + rapid.Uint64Range(0, next-floor-1).Draw(t, "seq")
			if rapid.IntRange(0, 3).Draw(t, "old") == 0 && floor > 1 {
				seq = rapid.Uint64Range(1, floor-1).Draw(t, "decided")
			}
			id := wire.CommandID{Origin: 3, Boot: 1, Sequence: seq}
			decided := applied[seq] || seq < floor
			require.Equal(t, !decided, table.admit(id, min(floor, seq)))
			applied[seq] = true
			require.True(t, table.applied(id))
			for applied[floor] {
				floor++
			}
			if rapid.IntRange(0, 9).Draw(t, "give up") == 0 {
				table.admit(id, floor) // the origin tells that the next is given up
				floor = min(floor+1, next)
				table.admit(id, floor)
			}
			require.LessOrEqual(t, len(table[3].above), window)
			copied, err := decodeOrigins(table.append(nil))
			require.NoError(t, err)
			require.Equal(t, table.append(nil), copied.append(nil))
		}
		require.False(t, table.admit(wire.CommandID{Origin: 3, Boot: 0, Sequence: next}, 1), "an earlier boot")
		require.True(t, table.admit(wire.CommandID{Origin: 3, Boot: 2, Sequence: 1}, 1), "a later boot begins anew")
		require.Equal(t, uint64(2), table.boot(3))
		require.False(t, table.applied(wire.CommandID{Origin: 3, Boot: 1, Sequence: 1}))
	})
}

// The host's bytes are made for each step of the state machine. With many gateways most of the work would be to sort them, and then
// to encode rows that have not changed.
func TestHostBytesOfManyOriginsAreMadeInOrder(t *testing.T) {
	h := hostState{conf: pb.EnsureConfState(nil), origins: originTable{}}
	check := func() {
		t.Helper()
		fresh := originTable{}
		for origin, row := range h.origins {
			fresh[origin] = &originRow{boot: row.boot, floor: row.floor, above: row.above}
		}
		require.Equal(t, (&hostState{conf: h.conf, origins: fresh}).encode(), h.encode())
		require.Equal(t, float64(1), testing.AllocsPerRun(1, func() { h.encode() }))
	}
	for origin := range uint64(300) {
		h.origins.admit(wire.CommandID{Origin: origin*7919%1000 + 1, Boot: 1, Sequence: 1}, 1)
		check()
	}
	for _, id := range []wire.CommandID{{Origin: 1, Boot: 1, Sequence: 5}, {Origin: 1, Boot: 2, Sequence: 1}, {Origin: 1, Boot: 1, Sequence: 9}} {
		h.origins.admit(id, 1)
		check()
	}
	h.origins.setFirst([]uint64{1, 2}, 0)
	check()
	h.origins.setFirst([]uint64{1, 2, 3}, markBit|1)
	check()
	for i := range uint64(2000) { // two batches in three come in order, and now and then a gateway starts again
		id := wire.CommandID{Origin: 1 + i*7919%37*11, Boot: 1 + i/1500, Sequence: 1 + i/2 + i%3%2*5}
		h.origins.admit(id, max(1, id.Sequence-i%9))
		if i%3 == 0 {
			check()
		}
	}
	stale := 0
	for _, part := range h.rows.parts {
		if part.stale {
			stale++
		}
	}
	require.Equal(t, 1, stale, "of %d parts", len(h.rows.parts))
	_ = h.origins.append(nil) // which takes the rows for parts of its own
	check()
}

func BenchmarkHostBytes(b *testing.B) {
	for _, origins := range []uint64{10, 1000, 50_000} {
		h := hostState{conf: pb.EnsureConfState(&pb.ConfState{Voters: []uint64{1, 2, 3}}), origins: originTable{}}
		for i := range origins {
			h.origins.admit(wire.CommandID{Origin: 1 + i*7919, Boot: 1 << 60, Sequence: 100_000}, 100_000)
		}
		b.Run(fmt.Sprint(origins), func(b *testing.B) {
			b.ReportAllocs()
			for i := range uint64(b.N) { // each step has a batch of a gateway
				h.origins.admit(wire.CommandID{Origin: 1 + i%origins*7919, Boot: 1 << 60, Sequence: 100_001 + i/origins}, 100_001+i/origins)
				h.encode()
			}
		})
	}
}

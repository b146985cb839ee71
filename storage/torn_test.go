// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package storage_test

import (
	"encoding/binary"
	"slices"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"github.com/weftraft/weft/storage"
	"github.com/weftraft/weft/storage/storagetest"
)

// TestTornFramesStayDead: of two frames in a torn tail the second is whole. The next
// start puts the segment's index where the first was, and power fails before the seal
// is on the disk. That the second begins where the index happens to end does not make
// it live.
func TestTornFramesStayDead(t *testing.T) {
	const name = "0000000000000001.seg"
	for size := 0; size < 1000; size += 8 {
		mem := vfs.NewMem()
		e, err := storage.Open("data", crashOptions(mem))
		require.NoError(t, err)
		put := func(group, from uint64, n, bytes int) {
			o := op{group: group, write: storage.Write{Entries: storagetest.Entries(1, from, n, bytes)}}
			require.NoError(t, o.toEngine(e, nil))
		}
		put(1, 1, 40, 20)
		_, err = e.Step()
		require.NoError(t, err)
		put(1, 41, 1, size)
		put(2, 1, 1, 20)
		_, err = e.Step()
		require.NoError(t, err)
		torn := readFile(t, mem, name)
		places := frames(torn)
		first, second, mark := places[len(places)-3], places[len(places)-2], places[len(places)-1]
		clear(torn[first:second])
		clear(torn[mark:]) // nobody was told that the two are durable
		writeFile(t, mem, name, torn)
		_, err = storage.Open("data", crashOptions(unlocked{mem}))
		require.NoError(t, err)
		sealed := readFile(t, mem, name)
		if places := frames(sealed); places[len(places)-1] != second { // the seal is elsewhere
			continue
		}
		writeFile(t, mem, name, slices.Concat(sealed[:second], torn[second:]))
		require.NoError(t, mem.Remove("data/0000000000000002.seg"))
		e, err = storage.Open("data", crashOptions(unlocked{mem}))
		require.NoError(t, err)
		g, err := e.Group(2)
		require.NoError(t, err)
		last, err := g.LastIndex()
		require.NoError(t, err)
		require.Zero(t, last)
		return
	}
	t.Fatal("no size makes the two frames equally long")
}

// frames returns where the frames of a segment begin.
func frames(b []byte) (places []int) {
	for off := 0; off+56 <= len(b) && string(b[off:off+4]) == "WLF1"; {
		places = append(places, off)
		n := 56 + int(binary.LittleEndian.Uint32(b[off+40:])) + int(binary.LittleEndian.Uint32(b[off+44:]))
		kind := b[off+48]
		off += (n + 7) &^ 7
		if kind == 4 { // a seal
			break
		}
	}
	return places
}

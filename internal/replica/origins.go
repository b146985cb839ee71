// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package replica

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/weftraft/weft/internal/wire"
	"github.com/weftraft/weft/raft"
)

// originTable is the part of the replicated state that makes a repeated batch
// apply once: for each origin, which sequences of its latest boot were applied.
//
// An origin may have several batches under way, and when one of them gets lost
// and is sent again it comes behind later ones. So the table keeps, exactly,
// what was applied above a floor; the origin tells the floor with each batch,
// and it moves because an origin has a bounded number of batches under way.
// (One number an origin would do if the log kept an origin's order. The leader
// would then have to refuse everything behind a gap, and each lost frame would
// cost the origin all that it has under way.)
//
// The table depends on nothing but the log, so all replicas have the same.
//
// Its size is bounded: a leader refuses a sequence that is too far above the floor that comes with it ([inbox.window]), and what is of
// too many gateways.
type originTable map[uint64]*originRow

// maxWindow bounds how far an origin may go on behind a batch whose fate is open. For a gateway the bound is less: what it leaves
// open is written with each step of the state machine, by all members.
const maxWindow, gatewayWindow = 1 << 20, 1 << 16

// While the host's bytes have more than largeTable, a gateway may go on for smallWindow: state machines take 16 MiB of the host (state.MaxHostBytes),
// and gateways that all leave as much open as they may would come to 12 GB.
const largeTable, smallWindow = 8 << 20, 64

// maxOrigins bounds the rows of the origin table, and the senders of proposals.
const maxOrigins = 1 << 16

// maxBoot bounds what is believed of a boot: clocks are far below.
const maxBoot = 1 << 63

type originRow struct {
	boot uint64
	// floor: every sequence below it is decided, applied or not.
	floor uint64
	// above are the applied sequences at or above floor, ascending.
	// Invariant: above[0] > floor, as the floor passes what is applied.
	above []uint64
	// in is the part that has the row, of the last result of rows, or nil.
	// Invariant: whoever changes the row calls changed.
	in *originPart
}

// changed has the row encoded again.
func (row *originRow) changed() {
	if row.in != nil {
		row.in.stale = true
	}
}

// noOrigin is the row of the first members of the group, ascending, in the place of
// sequences. If one of these is the mark of a new beginning, the mark is also in the place of
// the boot, because a node may have such a number, too. No node has the number of this row, so
// no batch asks for the row, and versions without knowledge of the row keep the row unchanged.
const noOrigin = 0

// setFirst sets the first members, and the mark of a new beginning, unless 0, as one of these.
func (t originTable) setFirst(members []uint64, mark uint64) {
	row := originRow{boot: 1, above: slices.Sorted(slices.Values(members))}
	if mark != 0 {
		row.boot, row.above = mark, slices.Sorted(slices.Values(append(row.above, mark)))
	}
	if old := t[noOrigin]; old != nil {
		old.boot, old.above = row.boot, row.above
		old.changed()
		return
	}
	t[noOrigin] = &row
}

// mark returns which of the first members is the mark of a new beginning, or 0.
func (t originTable) mark() uint64 {
	if row := t[noOrigin]; row != nil && slices.Contains(row.above, row.boot) && isMark(row.boot) {
		return row.boot
	}
	return 0
}

// markBit is set in each mark.
const markBit = 1 << 62

// isMark reports whether a number can be a mark.
func isMark(id uint64) bool { return id&markBit != 0 && id < raft.LocalApplyThread }

// first returns the first members, or nil if they are not known.
func (t originTable) first() []uint64 {
	if row := t[noOrigin]; row != nil {
		return row.above
	}
	return nil
}

// admit notes a batch that is about to be applied, and reports whether it is to
// be: false if it was applied before, was given up by its origin, or comes from
// an earlier boot.
func (t originTable) admit(id wire.CommandID, floor uint64) bool {
	row := t[id.Origin]
	switch {
	case row == nil:
		row = &originRow{boot: id.Boot, floor: 1}
		t[id.Origin] = row
	case id.Boot > row.boot:
		row.boot, row.floor, row.above = id.Boot, 1, nil // in its place: see originRows
	case id.Boot < row.boot:
		return false
	}
	i, again := slices.BinarySearch(row.above, id.Sequence)
	again = again || id.Sequence < row.floor
	if !again {
		row.above = slices.Insert(row.above, i, id.Sequence)
	}
	row.raise(floor)
	row.changed()
	return !again
}

// raise moves the floor up, and then on over what is applied.
func (row *originRow) raise(floor uint64) {
	row.floor = max(row.floor, floor)
	for len(row.above) > 0 && row.above[0] <= row.floor {
		row.floor = max(row.floor, row.above[0]+1)
		row.above = row.above[1:]
	}
}

// applied reports whether a batch is known to have been applied.
// What lies below the floor may have been given up instead.
func (t originTable) applied(id wire.CommandID) bool {
	row := t[id.Origin]
	if row == nil || row.boot != id.Boot {
		return false
	}
	_, found := slices.BinarySearch(row.above, id.Sequence)
	return found || id.Sequence < row.floor
}

// boot returns the latest boot of an origin, 0 if there was none.
func (t originTable) boot(origin uint64) uint64 {
	if row := t[origin]; row != nil {
		return row.boot
	}
	return 0
}

// append encodes the table; equal tables give equal bytes.
func (t originTable) append(b []byte) []byte { return t.rows(originRows{}).append(b) }

// originRows are the rows of a table, by ascending origin, in parts. The rows are the table's own, which change in their places.
type originRows struct {
	parts []*originPart
	rows  int // in all parts
}

// originPart is some rows in their order, and their encoding. Each step of the state machine has the whole table's encoding, and
// changes a few rows: a part is encoded again if one of its rows has changed.
type originPart struct {
	rows    []rowOf
	encoded []byte
	stale   bool
}

// partRows is how many rows a part has: with more, fewer parts are put together, and a change has more rows encoded again.
const partRows = 64

type rowOf struct {
	origin uint64
	*originRow
}

// rows returns the rows, given the last result or none: to look for them and to sort them takes several times as long as to encode them.
func (t originTable) rows(last originRows) originRows {
	if n := len(last.parts); n > 0 && last.rows == len(t) && last.parts[0].rows[0].in == last.parts[0] { // none has come, and none goes
		return last
	}
	all := make([]rowOf, 0, len(t))
	for o, row := range t {
		all = append(all, rowOf{o, row})
	}
	slices.SortFunc(all, func(a, b rowOf) int { return cmp.Compare(a.origin, b.origin) })
	rows := originRows{rows: len(all)}
	for some := range slices.Chunk(all, partRows) {
		part := &originPart{rows: some, stale: true}
		for _, row := range some {
			row.in = part
		}
		rows.parts = append(rows.parts, part)
	}
	return rows
}

func (rows originRows) append(b []byte) []byte {
	b = binary.AppendUvarint(b, uint64(rows.rows))
	for _, part := range rows.parts {
		if part.stale {
			part.encode()
		}
		b = append(b, part.encoded...)
	}
	return b
}

func (p *originPart) encode() {
	b := p.encoded[:0]
	for _, row := range p.rows {
		b = binary.AppendUvarint(b, row.origin)
		b = binary.AppendUvarint(b, row.boot)
		b = binary.AppendUvarint(b, row.floor)
		b = binary.AppendUvarint(b, uint64(len(row.above)))
		for _, s := range row.above {
			b = binary.AppendUvarint(b, s-row.floor)
		}
	}
	p.encoded, p.stale = b, false
}

// decodeOrigins is the inverse of append.
func decodeOrigins(b []byte) (originTable, error) {
	bad := fmt.Errorf("%w: the table of origins is damaged", ErrState)
	next := func() (v uint64, ok bool) {
		v, n := binary.Uvarint(b)
		if n <= 0 {
			return 0, false
		}
		b = b[n:]
		return v, true
	}
	count, ok := next()
	t := originTable{}
	for range count {
		origin, ok1 := next()
		boot, ok2 := next()
		floor, ok3 := next()
		n, ok4 := next()
		if !ok1 || !ok2 || !ok3 || !ok4 || n > uint64(len(b)) {
			return nil, bad
		}
		row := &originRow{boot: boot, floor: floor}
		for range n {
			d, ok := next()
			if s := floor + d; !ok || s < floor || len(row.above) > 0 && s <= row.above[len(row.above)-1] {
				return nil, bad
			}
			row.above = append(row.above, floor+d)
		}
		t[origin] = row
	}
	if !ok || len(b) > 0 {
		return nil, bad
	}
	return t, nil
}

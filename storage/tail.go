// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package storage

import (
	"errors"
	"fmt"
	"strings"
)

// tail decides on the meaning of an invalid frame at r.end: the end of the log, a tail
// torn by a crash, or damage.
//
// A crash tears only unsynced bytes, in the last segment. Their parts may have reached
// the disk in any order, so whole frames behind the hole prove nothing by themselves.
// But each frame has the last durable frame at its writing: if a frame behind the hole
// calls the frame in the hole durable, the disk has lost durable data.
func (r *recovery) tail(sc *scanner, last bool, reason error) error {
	lost := r.seq + 1
	if !last {
		return r.blame(sc, reason)
	}
	_, proof, err := sc.find(r.end+frameAlign, func(at int64, h frameHeader) bool { return h.durable >= lost && r.follows(at, h) })
	if err != nil {
		return err
	}
	if proof {
		return r.blame(sc, reason)
	}
	// Without a first frame, nothing says what the file was before.
	end, err := sc.remains(r.end, r.begin.recycled || r.end == 0, r.follows)
	if err != nil {
		return err
	}
	r.found.CutBytes, r.found.CutSegment, r.found.CutOffset = end-r.end, sc.seg.number, r.end
	return nil
}

// follows reports whether a header whose sum nobody has made yet can be that of a frame behind
// the invalid one. A frame takes a header at least, so numbers grow no faster than places: a
// client that stores headers does not get a sum made for each without a guess of the numbers.
// Of the numbers behind no valid frame at all nothing is known.
func (r *recovery) follows(at int64, h frameHeader) bool {
	return h.durable < h.seq && (r.seq == 0 || h.seq > r.seq && h.seq-r.seq-1 <= uint64(at-r.end)/headerLen)
}

// blame makes the error for a damaged frame at r.end. The group is read from the frame
// itself if only its body is damaged, and otherwise concluded from the following
// frames: the first group with a gap.
func (r *recovery) blame(sc *scanner, reason error) error {
	d := &DamageError{Segment: sc.seg.number, Offset: r.end,
		Reason: strings.TrimPrefix(reason.Error(), errNoFrame.Error()+": ")}
	h, meta, err := sc.head(r.end)
	if err == nil && h.kind == frameWrite {
		d.Group = h.group
		if rec, err := decodeRecord(meta, h.bodyLen); err == nil && len(rec.rows) > 0 {
			n, err := sc.checkBody(r.end+headerLen+int64(h.metaLen), rec.rows)
			if err != nil && !errors.Is(err, errNoFrame) {
				return err
			}
			d.Index = rec.first + uint64(min(n, len(rec.rows)-1))
		}
		return d
	}
	for off := r.end + frameAlign; ; off += frameAlign {
		at, ok, err := sc.find(off, func(at int64, h frameHeader) bool { return h.kind == frameWrite && r.follows(at, h) })
		if err != nil {
			return err
		}
		if !ok {
			return d
		}
		off = at
		if r.gap(sc, at, d) {
			return d
		}
	}
}

// gap looks for a gap between a group's log in r and the frame at off, and puts the gap
// into d.
func (r *recovery) gap(sc *scanner, off int64, d *DamageError) bool {
	h, meta, err := sc.head(off)
	if err != nil {
		return false
	}
	rec, err := decodeRecord(meta, h.bodyLen)
	if err != nil || len(rec.rows) == 0 || rec.moved || rec.installed != nil {
		return false
	}
	next := uint64(1)
	if g := r.e.groups[h.group]; g != nil {
		next = g.log.base.index + 1
		if log := r.logs[g]; log != nil {
			next = max(next, log.end())
		}
	}
	if rec.first <= next {
		return false
	}
	d.Group, d.Index = h.group, next
	return true
}

// sealTail ends the last segment of an earlier process: with a seal where the valid
// frames end, over the remains of a crash.
func (r *recovery) sealTail(w *writer, last *segment) error {
	if r.sealed {
		return nil
	}
	if r.end == 0 {
		// Not even its first frame is valid.
		if err := w.frame(frameBegin, 0, w.beginMeta(true).append(nil), nil); err != nil {
			return err
		}
	}
	if err := w.seal(); err != nil {
		return fmt.Errorf("storage: sealing segment %d behind its torn tail: %w", last.number, err)
	}
	return nil
}

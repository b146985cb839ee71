// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package storage

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2/vfs"

	pb "go.etcd.io/raft/v3/raftpb"
)

// recovery puts the groups together from the segments, oldest first.
type recovery struct {
	e     *Engine
	found Recovery
	seq   uint64 // of the last valid frame; 0 before the first
	// needed is the oldest segment that must exist, by the frames read so far.
	needed uint64
	logs   map[*Group]*spans
	slots  []slot // scratch
	// unsure are the last segment's frames not called durable by any frame.
	unsure []frameAt

	// Facts about the segment being read.
	begin   beginMeta
	indexAt int64 // where its index frame is, 0 without
	sealed  bool
	end     int64 // of its valid frames
}

// frameAt is where a frame begins in its segment.
type frameAt struct {
	seq uint64
	off int64
}

// recover reads the log, cuts a torn tail, and begins a new segment: nothing is
// appended to an earlier process's segment, because behind its end there may be whole
// frames of the torn batch, which would come to life if new frames happened to end
// where they begin.
func (e *Engine) recover() error {
	r := &recovery{e: e, logs: map[*Group]*spans{}, needed: 1}
	if err := r.open(); err != nil {
		return err
	}
	for i := range e.segments {
		if err := r.segment(i); err != nil {
			return err
		}
	}
	// Segments stay needed until a purged frame in a later segment.
	if len(e.segments) > 0 && r.needed < e.segments[0].number {
		return &DamageError{Segment: r.needed, Offset: -1,
			Reason: fmt.Sprintf("the files of segments %d to %d are missing", r.needed, e.segments[0].number-1)}
	}
	for g, log := range r.logs {
		if err := r.finish(g, *log); err != nil {
			return err
		}
	}
	if err := r.settle(); err != nil {
		return err
	}
	r.found.Groups = len(e.groups)
	e.recovery = r.found
	e.opts.Logf("storage: %s: %d groups with %d entries in %d segments", e.w.dir.path, r.found.Groups, r.found.Entries, r.found.Segments)
	if r.found.CutBytes > 0 {
		e.opts.Logf("storage: %s: cut %d bytes of torn writes, nobody was told that they are durable, at byte %d of segment %d",
			e.w.dir.path, r.found.CutBytes, r.found.CutOffset, r.found.CutSegment)
	}
	return nil
}

// open opens the segment files.
func (r *recovery) open() error {
	e := r.e
	numbers, err := e.w.dir.segments()
	if err != nil {
		return err
	}
	r.found.Segments = len(numbers)
	for i, n := range numbers {
		if i > 0 && n != numbers[i-1]+1 {
			return &DamageError{Segment: numbers[i-1] + 1, Offset: -1, Reason: "the file of the segment is missing"}
		}
		name := e.w.dir.join(segmentName(n))
		var f vfs.File
		if i == len(numbers)-1 {
			f, err = e.opts.FS.OpenReadWrite(name, diskCategory)
		} else {
			f, err = e.opts.FS.Open(name)
		}
		if err != nil {
			return fmt.Errorf("storage: opening segment %d: %w", n, err)
		}
		s := &segment{number: n, file: f}
		e.segments = append(e.segments, s)
		info, err := f.Stat()
		if err != nil {
			return fmt.Errorf("storage: reading the size of segment %d: %w", n, err)
		}
		if info.Size() > maxFileBytes {
			return &DamageError{Segment: n, Offset: -1, Reason: fmt.Sprintf("the file has %d bytes, no segment has more than %d", info.Size(), int64(maxFileBytes))}
		}
		s.allocated.Store(info.Size())
	}
	return nil
}

func (r *recovery) scanner(s *segment, window int64) *scanner {
	return &scanner{seg: s, size: s.allocated.Load(), sum: r.e.w.dir.sum, window: window, read: &r.found.ReadBytes}
}

// segment reads segment i: its index if there is one, and otherwise its frames. Bodies
// are checked only in the last segment, where they show the end of the log; bodies of
// other segments are checked when read.
func (r *recovery) segment(i int) error {
	s, last := r.e.segments[i], i == len(r.e.segments)-1
	r.begin, r.indexAt, r.sealed, r.end = beginMeta{}, 0, false, 0
	if !last {
		if ok, err := r.byIndex(s, r.e.segments[i+1]); ok || err != nil {
			return err
		}
	}
	sc := r.scanner(s, skimBytes)
	if last {
		sc.window = scanBytes
	}
	for !r.sealed {
		err := r.frame(sc, last)
		if errors.Is(err, errNoFrame) {
			if !last && r.onlyIndexLost(r.e.segments[i+1]) {
				break
			}
			if err := r.tail(sc, last, err); err != nil {
				return err
			}
			break
		}
		if err != nil {
			return err
		}
		s.size.Store(r.end)
	}
	r.found.Bytes += s.size.Load()
	return nil
}

// frame reads the frame at r.end and puts it into effect.
func (r *recovery) frame(sc *scanner, last bool) error {
	h, meta, err := sc.head(r.end)
	if err != nil {
		return err
	}
	if r.seq != 0 && h.seq != r.seq+1 {
		return fmt.Errorf("%w: the frame has number %d, want %d", errNoFrame, h.seq, r.seq+1)
	}
	if (h.kind == frameBegin) != (r.end == 0) {
		return fmt.Errorf("%w: a frame of kind %d at byte %d", errNoFrame, h.kind, r.end)
	}
	if r.indexAt > 0 && h.kind != frameSeal {
		// A whole frame of a torn batch, which begins where the index ends.
		return fmt.Errorf("%w: a frame of kind %d behind the index", errNoFrame, h.kind)
	}
	switch h.kind {
	case frameWrite:
		err = r.write(sc, h, meta, last)
	case frameBegin:
		err = r.beginning(sc, h, meta)
	case framePurged:
		if len(meta) != 8 {
			return r.malformed(sc, h, fmt.Errorf("%d bytes, want 8", len(meta)))
		}
		r.needed = max(r.needed, binary.LittleEndian.Uint64(meta))
		r.e.w.index.needed = r.needed
	case frameIndex:
		r.indexAt = r.end
	case frameSeal:
		r.sealed = true
	case frameMark:
	default:
		err = r.malformed(sc, h, fmt.Errorf("kind %d is unknown", h.kind))
	}
	if err != nil {
		return err
	}
	if r.seq = h.seq; last {
		r.unsure = append(r.unsure, frameAt{h.seq, r.end})
		for len(r.unsure) > 0 && r.unsure[0].seq <= h.durable {
			r.unsure = r.unsure[1:]
		}
	}
	r.end += h.len() // possibly behind the file, if only padding was torn off
	r.found.Frames++
	return nil
}

// malformed is the error for a frame with right checksums and invalid contents.
func (r *recovery) malformed(sc *scanner, h frameHeader, err error) error {
	return &DamageError{Segment: sc.seg.number, Offset: r.end, Group: h.group,
		Reason: fmt.Sprintf("frame of kind %d: %v", h.kind, err)}
}

func (r *recovery) beginning(sc *scanner, h frameHeader, meta []byte) error {
	m, err := decodeBeginMeta(meta)
	if errors.Is(err, errBadRecord) {
		return r.malformed(sc, h, err)
	}
	if err != nil {
		return err
	}
	if m.id != r.e.opts.Identity {
		return fmt.Errorf("%w: segment %d is of %v, this node is %v", ErrIdentity, sc.seg.number, m.id, r.e.opts.Identity)
	}
	r.begin, r.needed = m, max(r.needed, m.first)
	return nil
}

// write lets a record take effect.
func (r *recovery) write(sc *scanner, h frameHeader, meta []byte, check bool) error {
	rec, err := decodeRecord(meta, h.bodyLen)
	if err != nil {
		return r.malformed(sc, h, err)
	}
	body := r.end + headerLen + int64(h.metaLen)
	if check {
		if _, err := sc.checkBody(body, rec.rows); err != nil {
			return err
		}
		r.e.w.index.add(h.group, uint32(body), rec) // the last segment gets its index now
	}
	r.apply(h.group, rec, sc.seg, uint32(body))
	return nil
}

// apply repeats the effect in memory that stage and its kin had when rec was written.
func (r *recovery) apply(group uint64, rec *record, seg *segment, body uint32) {
	r.e.mu.Lock()
	g := r.e.groupLocked(group)
	r.e.mu.Unlock()
	log := r.logs[g]
	if log == nil {
		log = &spans{}
		r.logs[g] = log
	}
	if s := rec.installed; s != nil {
		g.snapshot = pb.EnsureSnapshot(s)
		g.log.base = position{term: s.GetMetadata().GetTerm(), index: s.GetMetadata().GetIndex()}
		*log = nil
	}
	if len(rec.rows) > 0 {
		r.slots = r.slots[:0]
		for _, w := range rec.rows {
			r.slots = append(r.slots, slot{term: w.term, seg: seg, off: body, size: w.size, crc: w.crc})
			body += w.size
		}
		if !rec.moved {
			log.cutFrom(rec.first)
		}
		log.put(rec.first, r.slots)
	}
	if rec.hardState != nil {
		g.hardState = rec.hardState
	}
	if rec.recorded != nil {
		g.snapshot = pb.EnsureSnapshot(rec.recorded)
	}
	if rec.base != nil {
		g.log.base = *rec.base
		log.cutTo(rec.base.index)
	}
	g.places.publish(rec, seg)
}

// finish turns the pieces of g's log into its index. A missing piece was in a segment
// with damage not shown by any checksum.
func (r *recovery) finish(g *Group, log spans) error {
	first := g.log.base.index + 1
	switch {
	case len(log) == 0:
		return nil
	case log[0].first > first:
		return &DamageError{Segment: r.e.segments[0].number, Offset: -1, Group: g.id, Index: first,
			Reason: fmt.Sprintf("entries %d to %d are missing", first, log[0].first-1)}
	case len(log) > 1:
		return &DamageError{Segment: r.e.segments[0].number, Offset: -1, Group: g.id, Index: log[0].end(),
			Reason: fmt.Sprintf("entries %d to %d are missing", log[0].end(), log[1].first-1)}
	}
	log.cutTo(g.log.base.index)
	g.log.slots = log[0].slots
	for i := range g.log.slots {
		s := &g.log.slots[i]
		s.seg.live.Add(int64(s.size))
	}
	r.found.Entries += len(g.log.slots)
	return nil
}

// untouched reports whether the last segment has its first frame and nothing else, not even
// remains of others: then no frame in it can come to life, and the segment is gone on with. A
// node that is started again and again and does nothing, as where its state is damaged, would
// otherwise leave a file each time, with nobody to join them.
func (r *recovery) untouched() bool { return r.end == emptyLen && !r.sealed && r.found.CutBytes == 0 }

// settle makes the log read so far durable, ends the last segment and begins a new one.
// After a kill of the process alone, the log read may be only in the operating system's
// caches: the engine must not act on it, nor call it durable, before a sync. So there
// are two syncs.
func (r *recovery) settle() error {
	w := &r.e.w
	w.seq = r.seq
	next := uint64(1)
	if n := len(r.e.segments); n > 0 {
		last := r.e.segments[n-1]
		w.out.reset(last, r.end)
		w.indexAt, w.ending, w.sealed = r.indexAt, r.indexAt > 0, r.sealed
		if !r.e.opts.NoSync {
			if err := r.writeAgain(last); err != nil {
				return err
			}
			if err := last.file.SyncData(); err != nil {
				return failedSync{fmt.Errorf("storage: syncing segment %d: %w", last.number, err)}
			}
			w.durable, w.marked = w.seq, w.seq
		}
		if r.untouched() {
			return nil
		}
		if err := r.sealTail(w, last); err != nil {
			return err
		}
		next = last.number + 1
	}
	if err := w.begin(next); err != nil {
		return err
	}
	return w.sync()
}

// writeAgain rewrites possibly undurable frames, unchanged, before the sync. After a
// failed sync, the file system may show data missing from the disk, and call it clean:
// the next sync would then succeed without writing the data.
func (r *recovery) writeAgain(last *segment) error {
	if len(r.unsure) == 0 {
		return nil
	}
	sc := r.scanner(last, scanBytes)
	end := min(r.end, sc.size)
	for off := r.unsure[0].off; off < end; off += scanBytes {
		b, err := sc.bytes(off, int(min(scanBytes, end-off)))
		if err != nil {
			return err
		}
		if _, err := last.file.WriteAt(b, off); err != nil {
			return fmt.Errorf("storage: writing %d bytes at byte %d of segment %d again: %w", len(b), off, last.number, err)
		}
	}
	return nil
}

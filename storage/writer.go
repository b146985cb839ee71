// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package storage

import (
	"encoding/binary"
	"fmt"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// writer lays frames into the log, for one goroutine.
type writer struct {
	e      *Engine
	dir    *directory
	out    gather
	cache  cache
	purger purger

	seq uint64 // of the last frame
	// durable is the last synced frame, marked the last frame called durable by a frame
	// on disk. Invariant: marked <= durable <= seq.
	durable, marked uint64

	batch []*request // the batch being written, or waiting for room
	laid  int        // how many of batch are written, or in out

	// Where the end of a segment has got to, which may take several tries:
	// ending as soon as no frame of a group may follow, sealed with its seal.
	ending, sealed bool
	index          index // of the present segment
	indexAt        int64 // where its index frame is, 0 without
	doomed         []*segment

	meta, head, prefix []byte // scratch
	ends               []int  // scratch: ends of the entries' heads in prefix
}

// write writes the rest of the batch, syncs if any write needs a sync, and publishes
// the places of entries in memory. Without room write stops, and can be called again;
// any other error ends the engine's service.
func (w *writer) write() error {
	for ; w.laid < len(w.batch); w.laid++ {
		if err := w.request(w.batch[w.laid]); err != nil {
			return err
		}
	}
	lazy := true
	for _, r := range w.batch {
		lazy = lazy && r.lazy
	}
	if err := w.flush(); err != nil {
		return err
	}
	if !lazy {
		if err := w.sync(); err != nil {
			return err
		}
	}
	for _, r := range w.batch {
		if r.seg != nil {
			w.publish(r)
		}
		if r.purged != 0 {
			w.doom()
		}
	}
	w.cache.evict(w.e.opts.CacheBytes)
	w.count()
	return nil
}

func (w *writer) count() {
	if len(w.batch) == 0 {
		return
	}
	c := &w.e.count
	c.batches.Add(1)
	if n := uint64(len(w.batch)); n > c.maxBatch.Load() {
		c.maxBatch.Store(n) // only this goroutine stores
	}
	for _, r := range w.batch {
		if r.record == nil {
			continue
		}
		c.writes.Add(1)
		if !r.record.moved {
			c.entries.Add(uint64(len(r.record.rows)))
			c.payloadBytes.Add(uint64(r.record.bodyLen()))
		}
	}
}

// request writes the frame of r, if it has any.
func (w *writer) request(r *request) error {
	switch {
	case r.purged != 0:
		if err := w.frame(framePurged, 0, binary.LittleEndian.AppendUint64(w.meta[:0], r.purged), nil); err != nil {
			return err
		}
		w.index.needed = r.purged
		return nil
	case r.record == nil || r.record.empty():
		return nil
	}
	rec := r.record
	w.encodeHeads(rec)
	meta, err := rec.appendMeta(w.meta[:0])
	if err != nil {
		return fmt.Errorf("storage: encoding a record of group %d: %w", r.group.id, err)
	}
	w.meta = meta
	if err := w.frame(frameWrite, r.group.id, meta, rec); err != nil {
		return err
	}
	n := frameLen(len(meta), rec.bodyLen())
	w.purger.pay(n, r.internal)
	r.seg, r.body = w.out.seg, w.out.end()-n+headerLen+int64(len(meta))
	w.index.add(r.group.id, uint32(r.body), rec)
	return nil
}

// encodeHeads completes the rows of rec, leaving the heads of its entries in
// w.prefix. Entries being moved are encoded already.
func (w *writer) encodeHeads(rec *record) {
	w.prefix, w.ends = w.prefix[:0], w.ends[:0]
	for i, e := range rec.entries {
		at := len(w.prefix)
		w.prefix = appendEntryHead(w.prefix, e)
		w.ends = append(w.ends, len(w.prefix))
		rec.rows[i] = entryRow(e, w.prefix[at:])
	}
}

// frame appends a frame to the log, first going on to the next segment if the present
// one is full. rec gives the body and may be nil. After an error nothing is appended.
func (w *writer) frame(kind frameKind, group uint64, meta []byte, rec *record) error {
	if kind == frameWrite || kind == framePurged {
		if w.ending || w.out.end() >= w.e.opts.SegmentBytes {
			if err := w.rotate(); err != nil {
				return err
			}
		}
	}
	end, seq, marked := w.out.end(), w.seq, w.marked
	err := w.append(kind, group, meta, rec)
	if err != nil {
		w.out.rewind(end)
		w.seq, w.marked = seq, marked
	}
	return err
}

func (w *writer) append(kind frameKind, group uint64, meta []byte, rec *record) error {
	bodyLen := 0
	if rec != nil {
		bodyLen = rec.bodyLen()
	}
	w.seq++
	w.marked = w.durable
	w.head = appendFrameHead(w.head[:0], w.dir.sum, frameHeader{
		segment: w.out.seg.number, seq: w.seq, durable: w.durable,
		group: group, bodyLen: uint32(bodyLen), kind: kind,
	}, meta)
	if err := w.out.append(w.head); err != nil {
		return err
	}
	if rec != nil {
		if err := w.body(rec); err != nil {
			return err
		}
	}
	w.out.pad()
	return nil
}

func (w *writer) body(rec *record) error {
	at := 0
	for i, e := range rec.entries {
		if err := w.out.append(w.prefix[at:w.ends[i]]); err != nil {
			return err
		}
		if err := w.out.append(e.Data); err != nil {
			return err
		}
		at = w.ends[i]
	}
	return w.out.append(rec.raw)
}

// flush hands everything to the file system.
func (w *writer) flush() error {
	if err := w.out.flush(); err != nil {
		return err
	}
	w.out.seg.size.Store(w.out.end())
	return nil
}

// sync makes everything flushed durable.
func (w *writer) sync() error {
	if err := w.flush(); err != nil {
		return err
	}
	if w.durable == w.seq || w.e.opts.NoSync {
		return nil
	}
	recorder := w.e.opts.Recorder
	var begun time.Time
	if recorder != nil {
		begun = time.Now()
	}
	if err := w.out.seg.file.SyncData(); err != nil {
		return failedSync{fmt.Errorf("storage: syncing segment %d: %w", w.out.seg.number, err)}
	}
	if recorder != nil {
		recorder.Synced(time.Since(begun))
	}
	w.e.count.syncs.Add(1)
	w.durable = w.seq
	return nil
}

// mark writes a frame with the last durable frame, unless a frame on disk has it
// already. Without marks, damage to the very last batch would look like a torn tail. No
// caller waits for a mark: until the mark is on disk, recovery behaves as without.
func (w *writer) mark() error {
	if w.marked == w.durable || w.ending || w.out.end() >= w.e.opts.SegmentBytes {
		return nil
	}
	if err := w.frame(frameMark, 0, nil, nil); err != nil {
		return err
	}
	return w.flush()
}

// rotate seals the present segment and begins the next. The seal is synced
// before the next file exists: only the last segment can have a torn tail.
func (w *writer) rotate() error {
	if err := w.seal(); err != nil {
		return err
	}
	return w.begin(w.out.seg.number + 1)
}

// seal ends the present segment: with its index, and the seal. Without room the call
// can be repeated.
func (w *writer) seal() error {
	if !w.ending {
		at := w.out.end()
		if meta := w.index.meta(); meta != nil && int64(len(meta)) <= at/indexShare {
			if err := w.frame(frameIndex, 0, meta, nil); err != nil {
				return err
			}
			w.indexAt, w.head = at, nil // which may be large
		}
		w.ending = true
	}
	if !w.sealed {
		if err := w.frame(frameSeal, 0, nil, nil); err != nil {
			return err
		}
		w.sealed = true
	}
	return w.sync()
}

// begin begins a new segment.
func (w *writer) begin(number uint64) error {
	f, bytes, recycled, err := w.dir.create(number)
	if err != nil {
		return err
	}
	seg := &segment{number: number, file: f}
	seg.allocated.Store(bytes)
	w.e.mu.Lock()
	w.e.segments = append(w.e.segments, seg)
	w.e.mu.Unlock()
	if recycled {
		w.e.count.recycled.Add(1)
	}
	w.out.reset(seg, 0)
	meta := w.beginMeta(recycled)
	w.index, w.indexAt, w.ending, w.sealed = index{}, 0, false, false
	return w.frame(frameBegin, 0, meta.append(nil), nil) // only gathered: it finds room
}

// prepare gets room ahead of need: for the next frames, and from the middle of a
// segment on for the next segment. After a refusal the engine stays full until there is
// room for a segment. See full.go.
func (w *writer) prepare() error {
	if err := w.out.ahead(); err != nil {
		return err
	}
	bytes := w.e.opts.SegmentBytes
	if len(w.dir.spares) > 0 || w.out.end() < bytes/2 && w.e.Stalled() == nil {
		return nil
	}
	bytes += minStepBytes // for a seal
	return w.dir.prepare(func(f vfs.File) error { return w.out.allocate(f, 0, bytes) }, bytes)
}

func (w *writer) beginMeta(recycled bool) beginMeta {
	w.e.mu.Lock()
	defer w.e.mu.Unlock()
	return beginMeta{id: w.e.opts.Identity, first: w.e.segments[0].number, recycled: recycled, index: w.indexAt}
}

// beginMeta is the meta part of a segment's first frame.
type beginMeta struct {
	id Identity
	// first is the oldest segment there was: none from there on may be missing.
	first uint64
	// recycled says that the file has bytes of an earlier life behind the frames; other
	// files have only remains of torn frames there.
	recycled bool
	// index is where the index frame of the segment before is; 0 without.
	index int64
}

// Lengths of a segment's first meta part. Segments of version 1 say nothing of
// an index.
const (
	beginMetaLen1 = 32
	beginMetaLen  = 40

	emptyLen = headerLen + beginMetaLen // of a segment with nothing behind its first frame
)

func (m beginMeta) append(b []byte) []byte {
	var flags uint32
	if m.recycled {
		flags = 1
	}
	b = binary.LittleEndian.AppendUint32(b, segmentVersion)
	b = binary.LittleEndian.AppendUint32(b, flags)
	b = binary.LittleEndian.AppendUint64(b, m.id.Cluster)
	b = binary.LittleEndian.AppendUint64(b, m.id.Node)
	b = binary.LittleEndian.AppendUint64(b, m.first)
	return binary.LittleEndian.AppendUint64(b, uint64(m.index))
}

func decodeBeginMeta(b []byte) (beginMeta, error) {
	if len(b) < beginMetaLen1 {
		return beginMeta{}, fmt.Errorf("%w: segment begins with %d bytes, want %d", errBadRecord, len(b), beginMetaLen)
	}
	v := binary.LittleEndian.Uint32(b)
	if v == 0 || v > segmentVersion {
		return beginMeta{}, fmt.Errorf("%w: segment has version %d, this program reads up to %d; run a newer program", ErrVersion, v, segmentVersion)
	}
	want := beginMetaLen
	if v == 1 {
		want = beginMetaLen1
	}
	if len(b) != want {
		return beginMeta{}, fmt.Errorf("%w: segment of version %d begins with %d bytes, want %d", errBadRecord, v, len(b), want)
	}
	m := beginMeta{
		recycled: binary.LittleEndian.Uint32(b[4:])&1 != 0,
		id:       Identity{Cluster: binary.LittleEndian.Uint64(b[8:]), Node: binary.LittleEndian.Uint64(b[16:])},
		first:    binary.LittleEndian.Uint64(b[24:]),
	}
	if v > 1 {
		m.index = int64(binary.LittleEndian.Uint64(b[32:]))
	}
	return m, nil
}

// publish lets memory know where the record of r is.
func (w *writer) publish(r *request) {
	g, rec := r.group, r.record
	g.mu.Lock()
	defer g.mu.Unlock()
	g.places.publish(rec, r.seg)
	off := uint32(r.body)
	for i, row := range rec.rows {
		index := rec.first + uint64(i)
		if rec.moved {
			w.publishMoved(g, index, r.seg, off, row)
		} else if g.log.has(index) {
			// A later write may have replaced the entry already.
			if s := g.log.at(index); s.entry == rec.entries[i] && s.seg == nil {
				s.written(r.seg, off, row.crc)
			}
		}
		off += row.size
	}
	if len(rec.entries) > 0 {
		w.cache.add(cached{
			group: g, first: rec.first, n: len(rec.rows), seg: r.seg,
			start: uint32(r.body), end: off, bytes: int64(off) - r.body + entryBytes*int64(len(rec.rows)),
		})
	}
}

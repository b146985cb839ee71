// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package storage

import (
	"sync/atomic"
	"time"
)

// Stats are counters since Open, and gauges where marked "now".
type Stats struct {
	Writes       uint64 // durable writes; lazy ones count once written
	Entries      uint64 // entries in these writes
	PayloadBytes uint64 // encoded size of these entries
	WrittenBytes uint64 // bytes given to segment files, all told
	Batches      uint64 // rounds of the writer
	MaxBatch     uint64 // most writes in one round
	Syncs        uint64 // syncs of segment files
	ReadBytes    uint64 // bytes read back from segments after Open
	ReadEntries  uint64 // entries read back from segments after Open
	MovedEntries uint64 // entries written again to free a segment
	MovedBytes   uint64 // encoded size of the moved entries
	Purged       uint64 // segments removed
	Recycled     uint64 // segments begun in a purged file

	Full bool // the disk is full and writes wait, or soon will, now: see Group.Stalled

	Segments     int   // segment files now, with the current one
	SegmentBytes int64 // bytes of frames in the files now
	FileBytes    int64 // sizes of all files of the log now, with spares and blocks allocated ahead
	LiveBytes    int64 // bytes still held by a group: entries and state, now
	QueuedBytes  int64 // bytes of entries and snapshots to be written, now
	// Waits is for how long writes wait now and none has ended: see Group.Progress.
	Waits       time.Duration
	CachedBytes int64 // bytes of written entries in memory, now
	Groups      int   // groups now
}

// Recorder receives the durations of the engine's work on the disk, for histograms. The engine's
// writer calls the methods between two writes, so a method should return at once. Methods may be
// called while [Open] runs.
type Recorder interface {
	// Synced says how long a sync of a segment file took. Syncs that failed are not
	// told: the engine fails then.
	Synced(took time.Duration)
}

// Recovery is Open's findings in the directory.
type Recovery struct {
	Segments int   // segment files read
	Frames   int   // valid frames in the segments
	Groups   int   // groups in the segments
	Entries  int   // entries in the logs of all groups
	Bytes    int64 // bytes of valid frames

	Indexed   int   // segments of which only the index was read
	ReadBytes int64 // bytes read from segment files

	// CutBytes is the length of the torn tail cut off: remains of writes under way when
	// the node stopped, never reported as durable. 0 after an orderly Close. CutSegment
	// and CutOffset are the place.
	CutBytes   int64
	CutSegment uint64
	CutOffset  int64
}

// counters are the parts of Stats changed by several goroutines.
type counters struct {
	writes, entries, payloadBytes, writtenBytes atomic.Uint64
	batches, maxBatch, syncs                    atomic.Uint64
	readBytes, readEntries                      atomic.Uint64
	movedEntries, movedBytes, purged, recycled  atomic.Uint64
}

func (c *counters) stats() Stats {
	return Stats{
		Writes: c.writes.Load(), Entries: c.entries.Load(),
		PayloadBytes: c.payloadBytes.Load(), WrittenBytes: c.writtenBytes.Load(),
		Batches: c.batches.Load(), MaxBatch: c.maxBatch.Load(), Syncs: c.syncs.Load(),
		ReadBytes: c.readBytes.Load(), ReadEntries: c.readEntries.Load(),
		MovedEntries: c.movedEntries.Load(), MovedBytes: c.movedBytes.Load(),
		Purged: c.purged.Load(), Recycled: c.recycled.Load(),
	}
}

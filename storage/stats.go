// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package storage

import "sync/atomic"

// Stats are counters since Open, and gauges where it says "now".
type Stats struct {
	Writes       uint64 // writes that became durable, or were written if lazy
	Entries      uint64 // entries in them
	PayloadBytes uint64 // encoded size of those entries
	WrittenBytes uint64 // bytes given to segment files, all told
	Batches      uint64 // rounds of the writer
	MaxBatch     uint64 // most writes in one round
	Syncs        uint64 // syncs of segment files
	ReadBytes    uint64 // bytes read back from segments after Open
	ReadEntries  uint64 // entries read back from segments after Open
	MovedEntries uint64 // entries written again so that a segment could go
	MovedBytes   uint64 // encoded size of those
	Purged       uint64 // segments that went
	Recycled     uint64 // segments begun in a purged file

	Full bool // the disk is full and writes wait, or soon will, now: see Group.Stalled

	Segments     int   // segment files now, with the current one
	SegmentBytes int64 // bytes of frames in them now
	FileBytes    int64 // sizes of all files of the log now, with spare ones and what is allocated ahead
	LiveBytes    int64 // bytes in them that a group still holds: entries and state, now
	QueuedBytes  int64 // bytes of entries and snapshots that wait to be written, now
	CachedBytes  int64 // bytes of written entries in memory, now
	Groups       int   // groups now
}

// Recovery is what Open found in the directory.
type Recovery struct {
	Segments int   // segment files read
	Frames   int   // valid frames in them
	Groups   int   // groups in them
	Entries  int   // entries in the logs of all groups
	Bytes    int64 // bytes of valid frames

	Indexed   int   // segments of which only the index was read
	ReadBytes int64 // bytes read from segment files

	// CutBytes is the length of the torn tail that was cut: the remains of
	// writes that were under way when the node stopped and that nobody was told
	// are durable. 0 after an orderly Close. CutSegment and CutOffset say where.
	CutBytes   int64
	CutSegment uint64
	CutOffset  int64
}

// counters are the parts of Stats that several goroutines move.
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

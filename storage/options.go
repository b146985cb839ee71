// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package storage

import (
	"errors"
	"fmt"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// Identity names the owner of a directory's log. It is written when the directory is
// made and compared at every Open, so that a node never starts on another node's log.
// Both numbers are at least 1.
type Identity struct {
	Cluster uint64
	Node    uint64
}

func (id Identity) String() string { return fmt.Sprintf("cluster %d, node %d", id.Cluster, id.Node) }

// Bounds and defaults of [Options], in bytes.
const (
	MinSegmentBytes     = 4 << 10
	MaxSegmentBytes     = 1 << 30
	DefaultSegmentBytes = 64 << 20
	DefaultQueueBytes   = 64 << 20
	DefaultCacheBytes   = 64 << 20
	DefaultBatchBytes   = 4 << 20
	DefaultSpares       = 2
)

// Options configures [Open]. Only Identity has no useful zero value.
type Options struct {
	// Identity is the cluster and node that own the log.
	Identity Identity

	// Begun says that the directory had a log before. If no segment is there, Open does not begin another one, and returns
	// a [DamageError]: a node without its log has forgotten its votes.
	Begun bool

	// FS is the file system; nil means the operating system's.
	FS vfs.FS

	// SegmentBytes is the size at which a segment file is sealed and the next
	// one begun, in [MinSegmentBytes, MaxSegmentBytes]; 0 means
	// DefaultSegmentBytes. A single write may make a segment longer.
	SegmentBytes int64

	// QueueBytes bounds the encoded entries and snapshots that wait to be written, over
	// all groups; 0 means DefaultQueueBytes. A write may enter while the queue is below
	// the bound, so that a write larger than the bound still passes.
	QueueBytes int64

	// CacheBytes bounds the written entries in memory, over all groups: their encoded size,
	// and 128 bytes for each. 0 means DefaultCacheBytes, negative none.
	CacheBytes int64

	// BatchBytes bounds the bytes of entries collected by the writer before a sync; 0
	// means DefaultBatchBytes.
	BatchBytes int64

	// Spares is the number of purged segment files kept to be written again, so that
	// the file system need not allocate blocks; 0 means DefaultSpares, negative none.
	// Besides, the file of the next segment is made when the present one is half full.
	Spares int

	// NoSync leaves out every sync. A power failure or a crash of the operating system
	// then loses data reported as durable: for tests only.
	NoSync bool

	// Manual starts no writer: queued writes happen when the caller calls
	// [Engine.Step], for example in a simulation that decides their time.
	Manual bool

	noIndex bool // Open reads all frames: for tests, as the answer must be the same

	// Recorder, unless nil, receives the durations of disk work.
	Recorder Recorder

	// Hung, unless nil, is called once, on a goroutine of its own, when writes wait and none has ended
	// for HungAfter, which must be more than 0. Nothing in the process can end a call that hangs in
	// the system: a Hung that ends the process lets a supervisor start the node elsewhere. It is not
	// called for a full disk that goes on to refuse, nor with Manual.
	Hung      func()
	HungAfter time.Duration

	// Logf receives a line for each event of interest to an operator: recovery, a cut
	// tail, the failure of the engine. nil means silence.
	Logf func(format string, args ...any)
}

// Validate returns an error that names every mistake, or nil.
func (o Options) Validate() error {
	var errs []error
	bad := func(field string, value any, want string) {
		errs = append(errs, fmt.Errorf("%w option %s: %v, want %s", ErrInvalid, field, value, want))
	}
	if o.Identity.Cluster == 0 {
		bad("Identity.Cluster", o.Identity.Cluster, "1 or more")
	}
	if o.Identity.Node == 0 {
		bad("Identity.Node", o.Identity.Node, "1 or more")
	}
	if s := o.SegmentBytes; s != 0 && (s < MinSegmentBytes || s > MaxSegmentBytes) {
		bad("SegmentBytes", s, fmt.Sprintf("0 or %d to %d", MinSegmentBytes, MaxSegmentBytes))
	}
	if o.QueueBytes < 0 {
		bad("QueueBytes", o.QueueBytes, "0 or more")
	}
	if o.BatchBytes < 0 {
		bad("BatchBytes", o.BatchBytes, "0 or more")
	}
	if o.Hung != nil && o.HungAfter <= 0 {
		bad("HungAfter", o.HungAfter, "more than 0, as Hung is set")
	}
	return errors.Join(errs...)
}

// withDefaults fills in the defaults of zero values.
func (o Options) withDefaults() Options {
	if o.FS == nil {
		o.FS = vfs.Default
	}
	o.SegmentBytes = orDefault(o.SegmentBytes, DefaultSegmentBytes)
	o.QueueBytes = orDefault(o.QueueBytes, DefaultQueueBytes)
	o.CacheBytes = max(0, orDefault(o.CacheBytes, DefaultCacheBytes))
	o.BatchBytes = orDefault(o.BatchBytes, DefaultBatchBytes)
	o.Spares = max(0, orDefault(o.Spares, DefaultSpares))
	if o.Logf == nil {
		o.Logf = func(string, ...any) {}
	}
	return o
}

func orDefault[T int | int64](v, def T) T {
	if v == 0 {
		return def
	}
	return v
}

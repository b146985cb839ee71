// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package pebblestate

import (
	"errors"
	"fmt"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/weftraft/weft/internal/gate"
	"github.com/weftraft/weft/rawnode/session"
	"github.com/weftraft/weft/rawnode/state"
)

// Defaults and bounds of [Options], in bytes.
const (
	DefaultMemTableBytes = 16 << 20
	MinMemTableBytes     = 64 << 10
	DefaultCacheBytes    = 32 << 20
	// MaxIdentityBytes bounds Options.Identity.
	MaxIdentityBytes = state.MaxIdentityBytes
	// MaxKeyBytes bounds a user's key, and MaxValueBytes a value.
	MaxKeyBytes   = 64 << 10
	MaxValueBytes = 64 << 20
)

// Options configures [Open]. Dir must be set; all else has a useful zero value.
type Options struct {
	// Dir is a directory for this database alone. It is made if it is not there.
	Dir string
	// FS is the file system; nil means the operating system's.
	FS vfs.FS
	// Identity, unless empty, says whose state it is, such as "cluster 7, node 2". It is
	// compared with that of the time when the directory was made. At most
	// [MaxIdentityBytes].
	Identity string
	// MemTableBytes is how much is applied before Pebble flushes by itself; the log
	// replays some times that after a crash. 0 means [DefaultMemTableBytes], and
	// [MinMemTableBytes] is the least.
	MemTableBytes uint64
	// CacheBytes is what the cache of blocks has at least; 0 means [DefaultCacheBytes]. Memtables that are not
	// in use leave their room to it.
	CacheBytes int64
	// Retry is the time between two attempts to write to a full disk; 0 means 200 ms. Patience is how long, or
	// up to twice as long, Open waits for room; 0 means 5 s.
	Retry, Patience time.Duration
	// Adjust, unless nil, may change Pebble's other options, such as compression,
	// filters, levels, listeners, and from which size on values have files of their own (2 KB). File
	// system, log, comparer, and the listeners FlushEnd, BackgroundError and DataCorruption are set
	// afterwards.
	Adjust func(*pebble.Options)
	// Logf receives a line for each event of interest to an operator; nil means silence.
	Logf func(format string, args ...any)
}

// GroupOptions configures [DB.Group].
type GroupOptions struct {
	// Sessions, unless nil, has clients' sessions: a command that is proposed again takes
	// effect once. Commands then have envelopes: [state.Plain], [state.OpenSession],
	// [state.InSession], [state.EndSession]. All replicas must have the same limits, always: hosts
	// compare them, and [DB.Group] refuses other limits than before ([state.ErrLimits]). Their bounds are those of [state.Options].
	Sessions *session.Limits
	// Query, unless nil, answers queries (Group.Query of package weft) from a state as of one moment. It is called
	// by several goroutines, while commands go on; the reader is valid until it returns.
	Query func(r Reader, request []byte) (answer []byte, err error)
}

// Errors, beside [state.ErrInvalid], [state.ErrIdentity], [state.ErrLocked],
// [state.ErrDamaged], [state.ErrVersion], [state.ErrInterrupted] and [state.ErrClosed].
var (
	// ErrFull says that the disk has no room. What waits goes on when there is room.
	ErrFull = errors.New("pebblestate: the disk is full")
	// ErrFailed wraps what made the database give up: the disk failed. Stop the node, and
	// start it again when the cause is gone; the log has what is not durable.
	ErrFailed = errors.New("pebblestate: the state cannot be written any more")
)

// Validate returns an error that names every mistake, or nil.
func (o Options) Validate() error {
	var errs []error
	bad := func(field string, value any, want string) {
		errs = append(errs, fmt.Errorf("%w: Options.%s is %v, want %s", state.ErrInvalid, field, value, want))
	}
	if o.Dir == "" {
		bad("Dir", `""`, "a directory for the state")
	}
	if len(o.Identity) > MaxIdentityBytes {
		bad("Identity", fmt.Sprintf("%d bytes", len(o.Identity)), fmt.Sprintf("at most %d", MaxIdentityBytes))
	}
	if o.MemTableBytes != 0 && (o.MemTableBytes < MinMemTableBytes || o.MemTableBytes > 1<<30) {
		bad("MemTableBytes", o.MemTableBytes, fmt.Sprintf("0, or %d to %d", MinMemTableBytes, 1<<30))
	}
	if o.CacheBytes < 0 {
		bad("CacheBytes", o.CacheBytes, "0 or more")
	}
	if o.Retry < 0 {
		bad("Retry", o.Retry, "0 or more")
	}
	if o.Patience < 0 {
		bad("Patience", o.Patience, "0 or more")
	}
	return errors.Join(errs...)
}

func (o *Options) setDefaults() {
	if o.FS == nil {
		o.FS = vfs.Default
	}
	if o.MemTableBytes == 0 {
		o.MemTableBytes = DefaultMemTableBytes
	}
	if o.CacheBytes == 0 {
		o.CacheBytes = DefaultCacheBytes
	}
	if o.Logf == nil {
		o.Logf = func(string, ...any) {}
	}
}

// memTables is how many memtables there can be before Apply waits.
const memTables = 4

// apart keeps values from 2 KB on in files of their own, which compactions of keys leave alone: else each byte of a large value is
// written again for each level. A value is moved once three tenths of its kind's files are garbage.
func apart() pebble.ValueSeparationPolicy {
	return pebble.ValueSeparationPolicy{Enabled: true, MinimumSize: 2 << 10, MaxBlobReferenceDepth: 10, TargetGarbageRatio: 0.3}
}

// pebbleOptions are those of the database.
func (b *Base) pebbleOptions(g *gate.Gate) *pebble.Options {
	o := &pebble.Options{
		FormatMajorVersion:          pebble.FormatNewest,
		MemTableSize:                b.opts.MemTableBytes,
		MemTableStopWritesThreshold: memTables,
		// Pebble takes the memory of memtables from the cache. Without room for them, a state that is written
		// to would read filters and indexes from files.
		CacheSize:     b.opts.CacheBytes + memTables*int64(b.opts.MemTableBytes),
		EventListener: &pebble.EventListener{},
	}
	o.Experimental.ValueSeparationPolicy = apart
	if b.opts.Adjust != nil {
		b.opts.Adjust(o)
	}
	o.FS = g.FS(b.opts.FS)
	o.DisableWAL = true
	o.Comparer = pebble.DefaultComparer
	o.Merger = nil
	o.ReadOnly = false
	o.Logger = g.Logger()
	if o.EventListener == nil {
		o.EventListener = &pebble.EventListener{}
	}
	o.EventListener.FlushEnd = func(pebble.FlushInfo) { b.flushes.Add(1) }
	o.EventListener.BackgroundError = g.Fail
	o.EventListener.DataCorruption = func(i pebble.DataCorruptionInfo) { b.opts.Logf("%v", i) }
	return o
}

// damage marks Pebble's reports of corruption.
func damage(err error) error {
	if pebble.IsCorruptionError(err) {
		return fmt.Errorf("%w: %w", state.ErrDamaged, err)
	}
	return err
}

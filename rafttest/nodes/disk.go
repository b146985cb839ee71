// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package nodes

import (
	"errors"
	"fmt"
	"slices"
	"syscall"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/weftraft/weft/internal/replica"
	"github.com/weftraft/weft/internal/world"
	"github.com/weftraft/weft/raft"
	"github.com/weftraft/weft/storage"
)

const logDir = "log"

// disk is a node's disk: the log of all its groups, in the real engine on a file
// system that can crash; and a queue of what takes time there.
type disk struct {
	n      *node
	fs     *vfs.MemFS
	engine *storage.Engine

	queue   []logWork // for the append stage, in order
	queued  int       // bytes of entries in queue
	writing bool
	stalled error // as the members have heard, at stalledAt
	stuck   bool  // the last round found no room, and nothing to write
	trying  bool  // another round will come

	stalledAt time.Duration
	free      time.Duration // when the disk has done all its work
	slowUntil time.Duration
	full      bool
	fullUntil time.Duration

	// fuse, unless 0, counts operations on the file system until power fails
	// in the middle of them. image is what is left then.
	fuse  int
	image *vfs.MemFS
}

// logWork is work for the log of a member: one of its fields.
type logWork struct {
	m       *member
	append  *replica.Append
	compact *replica.Compact
	bytes   int
}

func newDisk(n *node) disk { return disk{n: n, fs: vfs.NewCrashableMem()} }

// open opens the log, as the process that starts does.
func (d *disk) open() (err error) {
	p := &d.n.w.plan
	d.queue, d.queued, d.writing, d.fuse, d.image, d.stalled = nil, 0, false, 0, nil, nil
	d.stuck, d.trying = false, false
	d.free = d.n.w.Now()
	d.engine, err = storage.Open(logDir, storage.Options{
		Identity:     storage.Identity{Cluster: 1, Node: d.n.id},
		FS:           errorfs.Wrap(d.fs, errorfs.InjectorFunc(d.before)),
		SegmentBytes: p.segmentBytes, QueueBytes: p.logBytes, BatchBytes: p.logBatch, CacheBytes: p.logCache,
		Spares: 1, Manual: true, NoSync: d.n.w.opts.Bug == NoFsync,
	})
	if err == nil && d.engine.Recovery().CutBytes > 0 {
		d.n.w.reach.TornTails++
	}
	return err
}

// before is called before each operation on the file system.
func (d *disk) before(op errorfs.Op) error {
	if op.Kind.ReadOrWrite() != errorfs.OpIsWrite {
		return nil
	}
	if d.fuse > 0 {
		if d.fuse--; d.fuse == 0 && d.image == nil {
			d.image = d.afterPowerFailure()
		}
	}
	if !d.full {
		return nil
	}
	switch op.Kind {
	case errorfs.OpFileWriteAt: // the engine has asked for the blocks, by Preallocate
		if d.n.w.plan.rewrites {
			return nil
		}
		return syscall.ENOSPC
	case errorfs.OpCreate, errorfs.OpFileWrite, errorfs.OpFilePreallocate:
		return syscall.ENOSPC
	}
	return nil
}

// fillUp lets a disk have no room for a time.
func (d *disk) fillUp(outage time.Duration) {
	w := d.n.w
	w.tell(d.n.id, "disk full")
	d.full, d.fullUntil = true, max(d.fullUntil, w.Now()+outage)
	w.At(d.fullUntil, func() {
		if d.full && w.Now() >= d.fullUntil {
			w.tell(d.n.id, "disk has room")
			d.full = false
		}
	})
}

// crash leaves the surviving data on the disk.
func (d *disk) crash(power bool) {
	switch {
	case d.image != nil:
		d.fs = d.image
	case power:
		d.fs = d.afterPowerFailure()
	default:
		d.fs = d.fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 100, RNG: d.n.w.disks.Rand})
	}
	d.engine = nil
}

// afterPowerFailure returns the data left after a loss of power: the synced
// blocks, and by chance some of the others. (The file system can draw the
// blocks by itself, but in the order of a map.)
func (d *disk) afterPowerFailure() *vfs.MemFS {
	left := d.fs.CrashClone(vfs.CrashCloneCfg{})
	percent := world.Pick(d.n.w.disks, 0, 0, 20, 50, 80, 100)
	if percent == 0 {
		return left
	}
	names, err := left.List(logDir)
	if err != nil {
		return left // power failed before there was a directory
	}
	slices.Sort(names)
	for _, name := range names {
		if err := d.overlay(left, left.PathJoin(logDir, name), percent); err != nil {
			d.n.w.fail(NoFailure, "%v: copy %s: %v", d.n, name, err)
		}
	}
	return left
}

// overlay adds some of the unsynced blocks of a file.
func (d *disk) overlay(left *vfs.MemFS, path string, percent int) error {
	now, err := readFile(d.fs, path)
	if err != nil {
		return nil // the file has another name by now, and the new name was not synced
	}
	synced, err := readFile(left, path)
	if err != nil {
		return err
	}
	if string(now) == string(synced) {
		return nil
	}
	f, err := left.OpenReadWrite(path, vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	const block = 512
	for at := 0; at < len(now); at += block {
		if d.n.w.disks.IntN(100) >= percent {
			continue
		}
		if _, err := f.WriteAt(now[at:min(at+block, len(now))], int64(at)); err != nil {
			return errors.Join(err, f.Close())
		}
	}
	return errors.Join(f.Sync(), f.Close())
}

func readFile(fs vfs.FS, path string) ([]byte, error) {
	info, err := fs.Stat(path)
	if err != nil {
		return nil, err
	}
	f, err := fs.Open(path)
	if err != nil {
		return nil, err
	}
	b := make([]byte, info.Size())
	if len(b) > 0 {
		_, err = f.ReadAt(b, 0)
	}
	return b, errors.Join(err, f.Close())
}

// occupy returns when the disk has written bytes behind all earlier work, and
// synced the bytes if asked to.
func (d *disk) occupy(bytes int, sync bool) (until time.Duration) {
	c := &d.n.w.plan.costs
	took := per(bytes, c.DiskKiB)
	if sync {
		took += c.Sync
	}
	if d.n.w.Now() < d.slowUntil {
		took *= 20
	}
	d.free = max(d.free, d.n.w.Now()) + took
	return d.free
}

// put queues work for the log.
func (d *disk) put(w logWork) {
	if w.append != nil {
		for _, e := range w.append.Write.Entries {
			w.bytes += proto.Size(e)
		}
	}
	d.queue = append(d.queue, w)
	d.queued += w.bytes
	d.write()
}

// write begins a round of the log's writer: the entries waiting at the
// processor's turn go to the engine, and are on the disk after the disk's time.
func (d *disk) write() {
	if d.writing || len(d.queue) == 0 && d.stalled == nil {
		return
	}
	d.writing = true
	d.n.cpu.add(func() (time.Duration, func()) { return d.n.w.plan.costs.Write, d.round })
}

func (d *disk) round() {
	waited := len(d.queue)
	bytes, sync, err := d.fill()
	if err != nil {
		d.n.fail(fmt.Errorf("write the log: %w", err))
		return
	}
	d.stuck = d.stalled != nil && len(d.queue) == waited
	d.n.w.At(d.occupy(bytes, sync), d.n.bound(d.written))
}

// fill gives the engine as much as the engine takes.
func (d *disk) fill() (bytes int, sync bool, err error) {
	for len(d.queue) > 0 && int64(bytes) < d.n.w.plan.logBatch {
		w := d.queue[0]
		if err = w.give(); errors.Is(err, storage.ErrBusy) {
			return bytes, sync, nil
		} else if err != nil {
			return bytes, sync, err
		}
		bytes += w.bytes
		sync = sync || w.append != nil && !w.append.Write.Lazy
		d.queued -= w.bytes
		d.queue = d.queue[1:]
	}
	return bytes, sync, nil
}

// give hands one piece of work to the engine.
func (w logWork) give() error {
	if c := w.compact; c != nil {
		err := w.m.log.SetSnapshot(c.Snapshot, nil)
		if err == nil || errors.Is(err, raft.ErrSnapOutOfDate) {
			err = w.m.log.Compact(c.Index)
		}
		if errors.Is(err, raft.ErrCompacted) {
			err = nil
		}
		w.m.n.w.reach.Compactions++
		return err
	}
	a, m := *w.append, w.m
	early := m.n.w.opts.Bug == EarlyAck
	err := m.log.Append(a.Write, func(err error) {
		switch {
		case err != nil:
			m.n.disk.failed(err)
		case !early:
			m.post(0, func(r *replica.Replica) { r.AppendDone(a) })
		}
	})
	if err == nil && early {
		m.post(0, func(r *replica.Replica) { r.AppendDone(a) })
	}
	return err
}

// failed is called by the engine when it gives up.
func (d *disk) failed(err error) {
	n := d.n
	n.w.After(0, n.bound(func() { n.fail(err) }))
}

// written ends a round: the engine writes and syncs, and says what is durable.
func (d *disk) written() {
	d.writing = false
	for more := true; more; {
		var err error
		more, err = d.engine.Step()
		if d.image != nil {
			d.n.w.reach.TornWrites++
			d.n.crash(true)
			d.n.w.After(d.n.w.outage(), d.n.start)
			return
		}
		if err != nil {
			d.n.fail(err)
			return
		}
	}
	d.look()
	if d.stuck {
		d.tryLater()
	} else {
		d.write()
	}
}

// tryLater looks for room again after a while, or with the next write.
func (d *disk) tryLater() {
	if d.trying {
		return
	}
	d.trying = true
	d.n.after(electionTime/2, func() {
		d.trying = false
		d.write()
	})
}

// look sees whether the log is full, and tells the members when that changes.
func (d *disk) look() {
	stalled := d.engine.Stalled()
	if (stalled == nil) == (d.stalled == nil) {
		return
	}
	d.stalled, d.stalledAt = stalled, d.n.w.Now()
	d.n.w.tell(d.n.id, "log stalled: %v", stalled != nil)
	if stalled != nil {
		d.n.w.reach.Stalls++
		d.n.w.loseLeaderOf(d.n)
	}
	for _, g := range d.n.w.groups {
		if m := d.n.members[g.id]; m != nil {
			m.post(0, func(r *replica.Replica) { _ = r.Stalled(stalled) })
		}
	}
}

// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package nodes

import (
	"errors"
	"fmt"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/weftraft/weft/internal/encoded"
	"github.com/weftraft/weft/internal/replica"
	"github.com/weftraft/weft/internal/world"
	"github.com/weftraft/weft/raft"
	"github.com/weftraft/weft/storage"
)

const logDir = "log"

// disk is a node's disk: the log of all its groups, in the real engine, and a queue
// of what takes time there.
type disk struct {
	*world.Disk
	n      *node
	engine *storage.Engine

	queue   []logWork // for the append stage, in order
	queued  int       // bytes of entries in queue
	writing bool
	stalled error // as the members have heard, at stalledAt
	stuck   bool  // the last round found no room, and nothing to write
	trying  bool  // another round will come

	stalledAt time.Duration
	damage    *world.Damage // of the files, while the node runs on them
}

// logWork is work for the log of a member: one of its fields.
type logWork struct {
	m       *member
	append  *replica.Append
	compact *replica.Compact
	bytes   int
	number  uint64 // of the append
}

func newDisk(n *node) disk {
	return disk{n: n, Disk: world.NewDisk(&n.w.Agenda, n.w.disks, logDir)}
}

// open opens the log, as the process that starts does.
func (d *disk) open() (err error) {
	d.queue, d.queued, d.writing, d.stalled = nil, 0, false, nil
	d.stuck, d.trying = false, false
	d.engine, err = d.openLog(d.Files())
	if err == nil && d.engine.Recovery().CutBytes > 0 {
		d.n.w.reach.TornTails++
	}
	return err
}

// openLog opens the log of a file system. A new log has a name at random: of the run's randomness,
// not of what upstream's library draws from at another run just now.
func (d *disk) openLog(files vfs.FS) (e *storage.Engine, err error) {
	w := d.n.w
	p := &w.plan
	open := func() {
		e, err = storage.Open(logDir, storage.Options{
			Identity:     storage.Identity{Cluster: 1, Node: d.n.id},
			FS:           files,
			SegmentBytes: p.segmentBytes, QueueBytes: p.logBytes, BatchBytes: p.logBatch, CacheBytes: p.logCache,
			Spares: 1, Manual: true, NoSync: w.opts.Bug == noFsync,
		})
	}
	if w.opts.Core != nil {
		open() // the run has crypto/rand for itself: see TestUpstream
	} else {
		world.WithEntropy(w.logNames, open)
	}
	return e, err
}

// fillUp lets a disk have no room for a time.
func (d *disk) fillUp(outage time.Duration) {
	d.n.w.tell(d.n.id, "disk full")
	d.Fill(d.n.w.plan.rewrites, outage)
}

// crash leaves the surviving data on the disk.
func (d *disk) crash(power bool) {
	left := world.All
	if power {
		left = world.Some
	}
	if err := d.Crash(left); err != nil {
		d.n.w.fail(noFailure, "%v: crash: %v", d.n, err)
	}
	d.engine = nil
}

// takes returns how long the disk takes to write bytes, and to sync them if asked to.
func (d *disk) takes(bytes int, sync bool) time.Duration {
	c := &d.n.w.plan.costs
	took := per(bytes, c.DiskKiB)
	if sync {
		took += c.Sync
		if c.SyncTail > 0 {
			took += d.n.w.disks.Wait(c.SyncTail)
		}
	}
	return took
}

// put queues work for the log.
func (d *disk) put(w logWork) {
	if w.append != nil {
		for _, e := range w.append.Write.Entries {
			w.bytes += encoded.Size(e)
		}
	}
	d.queue = append(d.queue, w)
	d.queued += w.bytes
	d.write()
}

// write begins a round of the log's writer: when the processor comes to the round, the
// waiting entries go to the engine, and they are durable after the time that the disk takes.
func (d *disk) write() {
	if d.writing || len(d.queue) == 0 && d.stalled == nil {
		return
	}
	d.writing = true
	d.n.cpu.Add(func() (time.Duration, func()) { return d.n.w.plan.costs.Write, d.round })
}

func (d *disk) round() {
	waited := len(d.queue)
	bytes, sync, err := d.fill()
	if err != nil {
		d.n.fail(fmt.Errorf("write the log: %w", err))
		return
	}
	d.stuck = d.stalled != nil && len(d.queue) == waited
	d.Do(d.takes(bytes, sync), d.n.bound(d.written))
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
	early := m.n.w.opts.Bug == earlyAck || m.n.w.opts.Bug == ownEarly && m.core.State().Role == raft.StateLeader
	err := m.log.Append(a.Write, func(err error) {
		m.written(a.Write, err)
		m.unstored.store(w.number)
		switch {
		case err != nil:
			m.n.disk.failed(err)
		case !early:
			m.drive.Post(0, func(r *replica.Replica) { r.AppendDone(a) })
		}
	})
	if err == nil && early {
		m.drive.Post(0, func(r *replica.Replica) { r.AppendDone(a) })
	}
	return err
}

// written hears that a write is durable, unless the engine has failed, or power: then only the
// files say how far the log goes.
func (m *member) written(w storage.Write, err error) {
	if err != nil || m.n.disk.Blown() {
		return
	}
	if err := m.g.heldBy(m.n).durable(w); err != nil {
		m.n.w.fail(logMatching, "group %d: %v: %v", m.g.id, m.n, err)
	}
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
		if d.Blown() {
			d.n.w.faults.torn(d.n)
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
		d.n.w.faults.stalled(d.n)
	}
	for _, g := range d.n.w.groups {
		if m := d.n.members[g.id]; m != nil {
			m.drive.Post(0, func(r *replica.Replica) { _ = r.Stalled(stalled) })
		}
	}
}

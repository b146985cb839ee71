// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package torture

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/weftraft/weft/cmd/internal/cluster"
	"github.com/weftraft/weft/internal/lab"
)

// ErrSkipped wraps why a test could not be made here.
var ErrSkipped = errors.New("skipped")

// diskBytes is the size of a small disk: some segments of the log and the state
// beside them.
const diskBytes = 128 << 20

// FullDisk gives each node a small disk, and fills the disk of a follower, then
// the leader's, and then all disks. A node with a full disk must report the full
// disk, acknowledge nothing that is stored at this node alone, and go on after
// room was made; a majority with room must never stop.
func FullDisk(ctx context.Context, cfg Config) (_ *Summary, err error) {
	cfg.MaxValue = min(cfg.MaxValue, smallValue) // or the disks are full at once
	begin := time.Now()
	small := &disks{dir: filepath.Join(cfg.Dir, "disks")}
	defer func() { err = errors.Join(err, small.unmount()) }()
	for id := 1; id <= cfg.Nodes; id++ {
		if err := small.mount(id); err != nil {
			return nil, err
		}
	}
	r, stop, err := newRun(ctx, cfg, "full-disk", func(id int) string { return filepath.Join(small.path(id), "data") })
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, r.gates.close(), r.cluster.Close()) }()
	for _, step := range []func(context.Context, *disks) error{r.fullFollower, r.fullLeader, r.fullMajority, r.fullAndStopped, r.fullAndKilled} {
		if err = step(ctx, small); err != nil {
			break
		}
	}
	return r.end(ctx, stop, begin, err)
}

func (r *run) fullFollower(ctx context.Context, d *disks) error {
	leader, err := r.cluster.WaitLeader(ctx)
	if err != nil {
		return err
	}
	for _, n := range r.cluster.Nodes {
		if n != leader {
			return r.fullOne(ctx, d, n, "a follower")
		}
	}
	return errors.New("no follower")
}

func (r *run) fullLeader(ctx context.Context, d *disks) error {
	leader, err := r.cluster.WaitLeader(ctx)
	if err != nil {
		return err
	}
	return r.fullOne(ctx, d, leader, "the leader")
}

// fullOne fills one node's disk, checks that the other nodes go on, and makes
// room again.
func (r *run) fullOne(ctx context.Context, d *disks, n *cluster.Node, role string) error {
	if err := d.fill(n.ID); err != nil {
		return err
	}
	r.say("the disk of node %d (%s) is full", n.ID, role)
	if err := r.says(ctx, n, true); err != nil {
		return err
	}
	err := r.cluster.Wait(ctx, "a leader with room", func(all []*statusResponse) bool {
		for i, s := range all {
			if s.GetRole() == "leader" && r.cluster.Nodes[i] != n && s.GetStalled() == "" {
				return true
			}
		}
		return false
	})
	if err != nil {
		return err
	}
	if err := r.acknowledged(ctx); err != nil {
		return err
	}
	r.say("the others go on: %d writes acknowledged; making room", r.tally().acknowledged)
	return r.recover(ctx, d, n)
}

// fullMajority fills all disks. While a majority has no room, nothing may be
// acknowledged, and all go on by themselves when there is room.
func (r *run) fullMajority(ctx context.Context, d *disks) error {
	if err := r.fillAll(ctx, d); err != nil {
		return err
	}
	return r.recover(ctx, d, r.cluster.Nodes...)
}

// grace is what supervisors give a process between SIGTERM and SIGKILL, at least.
const grace = 10 * time.Second

// fullAndStopped asks all nodes to end while their disks are full. Each node must
// end within its grace period, and no acknowledged write is lost.
func (r *run) fullAndStopped(ctx context.Context, d *disks) error {
	if err := r.fillAll(ctx, d); err != nil {
		return err
	}
	begin := time.Now()
	errs := make([]error, len(r.cluster.Nodes))
	var stopping sync.WaitGroup
	for i, n := range r.cluster.Nodes {
		stopping.Go(func() { errs[i] = errors.Join(n.Terminate(grace), d.free(n.ID)) })
	}
	stopping.Wait()
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("stop on a full disk: %w", err)
	}
	r.say("SIGTERM: all nodes ended in %v; made room, starting them again", time.Since(begin).Round(time.Millisecond))
	return r.startAll(ctx)
}

// startAll starts all nodes, and waits until writes go on.
func (r *run) startAll(ctx context.Context) error {
	for _, n := range r.cluster.Nodes {
		if err := n.Start(); err != nil {
			return err
		}
	}
	return r.acknowledged(ctx)
}

// fullAndKilled kills all nodes while their disks are full, starts the nodes again,
// and checks that no acknowledged write is lost.
func (r *run) fullAndKilled(ctx context.Context, d *disks) error {
	if err := r.fillAll(ctx, d); err != nil {
		return err
	}
	for _, n := range r.cluster.Nodes {
		r.sum.Kills++
		if err := errors.Join(n.Kill(), d.free(n.ID)); err != nil {
			return err
		}
	}
	r.say("killed all nodes, made room, starting them again")
	return r.startAll(ctx)
}

// fillAll fills all disks until a majority reports full disks and no write is
// acknowledged for a while. A few tries may be needed, because nodes make room
// by deleting obsolete segments and tables.
func (r *run) fillAll(ctx context.Context, d *disks) error {
	r.say("filling the disks of all nodes")
	for end := time.Now().Add(fillLimit); time.Now().Before(end); {
		for _, n := range r.cluster.Nodes {
			if err := d.fill(n.ID); err != nil {
				return err
			}
		}
		before, full := r.tally(), true
		for since := time.Now(); full && time.Since(since) < callTimeout; {
			full = r.majorityFull(ctx)
			_ = lab.Sleep(ctx, 50*time.Millisecond) // the caller sees the end
		}
		if after := r.tally(); full && after.acknowledged == before.acknowledged && after.refused > before.refused {
			r.say("a majority says that it is full; in %v: acknowledged 0, refused %d, unknown %d",
				callTimeout, after.refused-before.refused, after.unknown-before.unknown)
			return nil
		}
	}
	return fmt.Errorf("within %v there were no %v in which a majority said that it is full and nothing was acknowledged; the nodes say %v",
		fillLimit, callTimeout, r.cluster.Status(ctx))
}

func (r *run) majorityFull(ctx context.Context) bool {
	full := 0
	for _, s := range r.cluster.Status(ctx) {
		if s.GetStalled() != "" {
			full++
		}
	}
	return full > len(r.cluster.Nodes)/2
}

// recover makes room, and waits until the nodes say so and writes go on.
func (r *run) recover(ctx context.Context, d *disks, nodes ...*cluster.Node) error {
	for _, n := range nodes {
		if err := d.free(n.ID); err != nil {
			return err
		}
	}
	for _, n := range nodes {
		if err := r.says(ctx, n, false); err != nil {
			return err
		}
	}
	if _, err := r.cluster.WaitLeader(ctx); err != nil {
		return err
	}
	return r.acknowledged(ctx)
}

// says waits until a node reports a full disk, or a disk with room.
func (r *run) says(ctx context.Context, n *cluster.Node, full bool) error {
	what := fmt.Sprintf("node %d to say that it has room", n.ID)
	if full {
		what = fmt.Sprintf("node %d to say that its disk is full", n.ID)
	}
	said := ""
	err := r.cluster.Wait(ctx, what, func(all []*statusResponse) bool {
		s := all[n.ID-1]
		if s != nil && full {
			said = s.GetStalled()
		}
		return s != nil && (s.GetStalled() != "") == full
	})
	if err == nil && full {
		r.say("node %d says: %s", n.ID, said)
	}
	return err
}

// fillLimit bounds how long it may take until full disks stay full.
const fillLimit = time.Minute

// disks are small file systems, one for each node.
type disks struct {
	dir     string
	mounted []string
}

func (d *disks) path(id int) string    { return filepath.Join(d.dir, fmt.Sprint(id)) }
func (d *disks) ballast(id int) string { return filepath.Join(d.path(id), "ballast") }

func (d *disks) mount(id int) error {
	if err := os.MkdirAll(d.path(id), 0o755); err != nil {
		return err
	}
	if err := mountSmall(d.path(id), diskBytes); err != nil {
		return fmt.Errorf("%w: no small file system can be mounted: %w (this needs root, on Linux)", ErrSkipped, err)
	}
	d.mounted = append(d.mounted, d.path(id))
	return nil
}

func (d *disks) unmount() error {
	var errs []error
	for _, path := range d.mounted {
		errs = append(errs, unmountSmall(path))
	}
	return errors.Join(errs...)
}

// fill adds to a file until there is no more room.
func (d *disks) fill(id int) error {
	f, err := os.OpenFile(d.ballast(id), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, io.LimitReader(zeros{}, 2*diskBytes))
	if err == nil {
		err = fmt.Errorf("%s took %d bytes, want no room before", f.Name(), 2*diskBytes)
	} else if isFull(err) {
		err = nil
	}
	return errors.Join(err, f.Close())
}

func (d *disks) free(id int) error { return os.Remove(d.ballast(id)) }

// zeros is a source of zero bytes.
type zeros struct{}

// Read implements io.Reader.
func (zeros) Read(b []byte) (int, error) {
	clear(b)
	return len(b), nil
}

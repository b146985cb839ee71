// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package live

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/weftraft/weft/internal/lab"
)

// Options configure a run.
type Options struct {
	// Binaries are the etcd programs. Each start of a member takes the next program in turn.
	Binaries []string
	// Env is added to the environment of members.
	Env []string
	// Dir is for data and logs. A run first removes the contents of Dir.
	Dir string
	// Seed decides the calls of the clients. The times of the calls depend on the machine.
	Seed uint64
	// Largest is the size of the largest values, in bytes; 0 for short values.
	Largest int
	// Coded makes the run check that members have coded entries.
	Coded bool
	// Leased makes the run check that members have answered reads by roster leases.
	Leased bool
	// Stepped is the environment variable that names a file with the step of the time of day, in
	// seconds, to the binaries; empty for binaries that read no such file.
	Stepped string
	// Stuck is the environment variable that names a file to the binaries; while the file exists, their
	// syncs wait. Empty for binaries that look for no such file.
	Stuck string
	// Progress is called with a line for each event.
	Progress func(string)
}

// Report describes the coverage of a run.
type Report struct {
	// Operations were answered; the outcome of Unknown operations is not known.
	Operations, Unknown int
	// Gap is the longest time without an acknowledged write after the leader
	// was killed.
	Gap time.Duration
	// Snapshots were sent to new members.
	Snapshots int
	// Coded entries were in the logs that the run has read.
	Coded int
	// Hangs are the longest times without an acknowledged write at another member, after the disks of leaders hung.
	Hangs []time.Duration
	// Leases describes the faults of a run with leases; nil without leases.
	Leases *LeaseReport
}

// String describes the run in one line.
func (r Report) String() string {
	s := fmt.Sprintf("%d operations, %d of unknown outcome, linearizable", r.Operations, r.Unknown)
	if r.Gap > 0 {
		s += fmt.Sprintf("; writes paused %v after the kill of the leader; %d snapshots sent", r.Gap.Round(time.Millisecond), r.Snapshots)
	}
	if r.Coded > 0 {
		s += fmt.Sprintf("; %d coded entries seen in logs", r.Coded)
	}
	if len(r.Hangs) > 0 {
		s += fmt.Sprintf("; writes at other members paused %v after the disks of leaders hung", r.Hangs)
	}
	if r.Leases != nil {
		s += "; " + r.Leases.String()
	}
	return s
}

// run is a scenario in progress.
type run struct {
	cluster
	history *history
	values  values
	report  Report
	probes  int // writes of probe
}

// Run plays the faults: each is a step under load, after which the cluster must
// take writes again.
func Run(ctx context.Context, o Options) (Report, error) { return play(ctx, o, (*run).faults) }

func newRun(o Options) *run {
	return &run{cluster: cluster{Options: o, Program: lab.Etcd{}}, history: newHistory(), values: values{largest: o.Largest}}
}

func play(ctx context.Context, o Options, scenario func(*run, context.Context) error) (report Report, err error) {
	r := newRun(o)
	defer r.close()
	if err := r.boot(ctx); err != nil {
		return Report{}, err
	}
	stop, err := startLoad(ctx, &r.cluster, r.history, r.values, o.Seed)
	if err != nil {
		return Report{}, err
	}
	// In each case the clients are stopped, and their answers are checked also after a failure: a
	// cluster that stands still may also have lost writes.
	err = scenario(r, ctx)
	stop()
	return r.report, errors.Join(err, r.verify(ctx, err == nil))
}

func (r *run) say(format string, args ...any) {
	acked, _ := r.history.since()
	r.Progress(fmt.Sprintf("%5.1fs  %5d writes  ", r.history.now().Seconds(), acked) + fmt.Sprintf(format, args...))
}

func (r *run) boot(ctx context.Context) (err error) {
	if err := os.RemoveAll(r.Options.Dir); err != nil {
		return err
	}
	// Each member may be replaced once.
	r.Cluster, err = lab.StartCluster(ctx, lab.ClusterConfig{Name: "etcd", Program: r, Nodes: 3, Spare: 3, Dir: r.Options.Dir})
	if err != nil {
		return err
	}
	for _, n := range r.Nodes {
		m, err := newMember(n, r.Leased)
		if err != nil {
			return err
		}
		r.members = append(r.members, m)
	}
	r.publish()
	leader, err := r.leader(ctx)
	if err == nil {
		r.say("three members run, %s leads", leader.name)
	}
	return err
}

// serves waits until n more writes are acknowledged.
func (r *run) serves(ctx context.Context, n int) error {
	goal, _ := r.history.since()
	goal += n
	return r.Wait(ctx, "writes to be served", func(context.Context) error {
		if acked, _ := r.history.since(); acked < goal {
			return fmt.Errorf("%d of %d writes were acknowledged", acked, goal)
		}
		return nil
	})
}

func (r *run) faults(ctx context.Context) error {
	if err := r.serves(ctx, 300); err != nil {
		return err
	}
	for _, step := range []func(context.Context) error{r.killLeader, r.killMajorityThenLeader, r.moveLeader, r.replaceAll, r.killAll} {
		if err := step(ctx); err != nil {
			return err
		}
		if err := r.serves(ctx, 200); err != nil {
			return err
		}
	}
	return nil
}

func (r *run) killLeader(ctx context.Context) error {
	leader, err := r.leader(ctx)
	if err != nil {
		return err
	}
	r.history.mark()
	leader.kill()
	if r.report.Leases != nil {
		by, err := r.other(leader)
		if err != nil {
			return err
		}
		if r.report.Gap, err = r.probe(ctx, by, lostAfter); err != nil {
			return err
		}
	} else {
		if err := r.serves(ctx, 100); err != nil {
			return err
		}
		_, r.report.Gap = r.history.since()
	}
	r.say("%s, the leader, was killed; writes paused %v", leader.name, r.report.Gap.Round(time.Millisecond))
	return r.back(ctx, leader)
}

// back starts members again and waits until the members have caught up. Logs are short, and leaders that find processors busy
// send full copies; so coded entries are counted each time that members are down.
func (r *run) back(ctx context.Context, members ...*member) error {
	if err := r.countCoded(members...); err != nil {
		return err
	}
	for _, m := range members {
		if err := m.Start(); err != nil {
			return err
		}
	}
	for _, m := range members {
		if err := r.caughtUp(ctx, m); err != nil {
			return err
		}
		r.say("%s is back", m.name)
	}
	return nil
}

// killMajorityThenLeader kills the followers, then the leader, and restarts the followers without
// the leader. A write that the leader alone had acknowledged would be lost.
func (r *run) killMajorityThenLeader(ctx context.Context) error {
	leader, err := r.leader(ctx)
	if err != nil {
		return err
	}
	followers := slices.DeleteFunc(slices.Clone(r.members), func(m *member) bool { return m == leader })
	for _, m := range followers {
		m.kill()
	}
	r.callAlone(ctx, leader)
	leader.kill()
	r.say("both followers were killed, then %s, the leader", leader.name)
	if err := r.back(ctx, followers...); err != nil {
		return err
	}
	if err := r.serves(ctx, 100); err != nil {
		return err
	}
	return r.back(ctx, leader)
}

// callAlone writes each key through a leader without followers, which must not acknowledge the
// writes: an acknowledged write would be in the history, and lost.
func (r *run) callAlone(ctx context.Context, leader *member) {
	for i := range keys {
		ctx, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
		o := operation{verb: put, key: keyName(i), value: fmt.Sprintf("alone.%d", i), call: r.history.now()}
		o.answered = o.run(ctx, leader.api, r.values) == nil
		o.ret = r.history.now()
		cancel()
		r.history.add(o)
	}
}

func (r *run) moveLeader(ctx context.Context) error {
	leader, err := r.leader(ctx)
	if err != nil {
		return err
	}
	to, err := r.other(leader)
	if err != nil {
		return err
	}
	if err := r.Transfer(ctx, leader.Node, to.Node); err != nil {
		return fmt.Errorf("moving leadership from %s to %s: %w", leader.name, to.name, err)
	}
	now, err := r.leader(ctx)
	if err == nil && now != to {
		err = fmt.Errorf("leadership was moved from %s to %s, and %s leads", leader.name, to.name, now.name)
	}
	r.say("leadership moved from %s to %s", leader.name, to.name)
	return err
}

// replaceAll replaces the members one after another: the leader while the leader runs, the other
// members after a kill.
func (r *run) replaceAll(ctx context.Context) error {
	leader, err := r.leader(ctx)
	if err != nil {
		return err
	}
	for _, old := range slices.Clone(r.members) {
		if old != leader {
			old.kill()
		}
		fresh, err := r.replace(ctx, old)
		if err != nil {
			return err
		}
		if err := r.caughtUp(ctx, fresh); err != nil {
			return err
		}
		n, err := fresh.snapshotsReceived(ctx)
		if err != nil {
			return err
		}
		r.report.Snapshots += n
		r.say("%s is replaced by %s, which got %d snapshots", old.name, fresh.name, n)
	}
	if r.report.Snapshots == 0 {
		return errors.New("no new member got a snapshot: the run did not test what it should")
	}
	return nil
}

// killAll kills all members at the same time.
func (r *run) killAll(ctx context.Context) error {
	for _, m := range r.members {
		m.kill()
	}
	r.say("all members were killed")
	if err := r.back(ctx, r.members...); err != nil {
		return err
	}
	if r.Coded && r.report.Coded == 0 {
		return errNothingCoded
	}
	return nil
}

// verify checks the history and, if the scenario succeeded, that the members agree. The last
// operations are reads at each member, which must see all writes.
func (r *run) verify(ctx context.Context, complete bool) error {
	if complete {
		for _, m := range r.members {
			if err := r.readAll(ctx, m); err != nil {
				return err
			}
		}
	}
	ops := r.history.all()
	var revision int64
	for _, o := range ops {
		if o.answered {
			r.report.Operations++
			revision = max(revision, o.revision)
		} else {
			r.report.Unknown++
		}
	}
	if err := check(ops); err != nil || !complete {
		return err
	}
	r.say("the history is linearizable")
	return r.sameData(ctx, revision)
}

func (r *run) readAll(ctx context.Context, m *member) error {
	for i := range keys {
		err := r.Wait(ctx, "a read at "+m.name, func(ctx context.Context) error {
			o := operation{verb: get, key: keyName(i), call: r.history.now()}
			if err := o.run(ctx, m.api, r.values); err != nil {
				return err
			}
			o.ret, o.answered = r.history.now(), true
			r.history.add(o)
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

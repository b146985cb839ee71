// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

// Package torture kills the processes of a replicated store under load, again
// and again, and checks the store's promises:
//
//   - an acknowledged write is at all replicas, a refused write at none, and a
//     write of unknown outcome either at all replicas or at none;
//   - all replicas have the same keys and values;
//   - reads and writes of contended keys form a linearizable history.
package torture

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/weftraft/weft/cmd/internal/cluster"
	"github.com/weftraft/weft/internal/lab"
)

// Config says what to do.
type Config struct {
	Serve []string // command line of a node
	Args  []string
	Nodes int
	// Gateway is the command line of a gateway, of which there are Gateways, 0 to 9.
	Gateway  []string
	Gateways int
	Loops    int // how often processes are killed
	Seed     uint64
	// Leases says that the nodes have roster leases: then reads at any node count on them,
	// and half of the loops stop processes for longer than leases last, instead of killing.
	Leases   bool
	MaxValue int // bytes of the largest values, 8 or more
	Dir      string
	Progress io.Writer
}

// Summary is what happened.
type Summary struct {
	Loops, Kills, LeaderKills, AllKilled int
	Acknowledged, Refused, Unknown       int
	UnknownThere                         int // writes of unknown outcome that happened
	HotCalls, HotKeys                    int
	Keys                                 int // at each replica, at the end
	Recovery                             []time.Duration
	GatesKilled, GatesPaused             int
	Pauses                               int            // of processes, for longer than a lease
	Served                               map[string]int // reads of contended keys with leases, by what served them
	Elapsed                              time.Duration
}

// String returns the summary as a table.
func (s *Summary) String() string {
	slices.Sort(s.Recovery)
	var b strings.Builder
	row := func(name, format string, args ...any) {
		fmt.Fprintf(&b, "%-34s "+format+"\n", append([]any{name}, args...)...)
	}
	row("time", "%v", s.Elapsed.Round(time.Second))
	if s.Loops > 0 {
		row("loops", "%d", s.Loops)
	}
	row("processes killed", "%d (%d led; %d times all at once)", s.Kills, s.LeaderKills, s.AllKilled)
	if s.GatesKilled+s.GatesPaused > 0 {
		row("gateways killed", "%d, and %d stopped for a while", s.GatesKilled, s.GatesPaused)
	}
	row("writes acknowledged", "%d, lost: 0", s.Acknowledged)
	row("writes refused", "%d, applied: 0", s.Refused)
	row("writes of unknown outcome", "%d, of which %d happened, at all replicas", s.Unknown, s.UnknownThere)
	row("calls on contended keys", "%d on %d keys, linearizable", s.HotCalls, s.HotKeys)
	if len(s.Served) > 0 {
		row("processes stopped for a while", "%d", s.Pauses)
		row("reads of contended keys", "%d by roster leases, %d by the leader's lease, %d by asking the leader", s.Served["roster"], s.Served["lease"], s.Served["leader"])
	}
	row("replicas that differ", "0 (%d keys each)", s.Keys)
	if n := len(s.Recovery); n > 0 {
		row("from a restart to the next write", "median %v, most %v", s.Recovery[n/2].Round(time.Millisecond), s.Recovery[n-1].Round(time.Millisecond))
	}
	return b.String()
}

// run is a torture under way.
type run struct {
	progress io.Writer
	seed     uint64
	maxValue int
	leases   bool
	rng      *rand.Rand
	cluster  *cluster.Cluster
	gates    *gates // nil: none
	writers  []*writer
	hot      *hot
	sum      Summary
}

// newRun starts a cluster and a load on the cluster; stop ends both.
func newRun(ctx context.Context, cfg Config, name string, dataDir func(id int) string) (_ *run, stop func(), err error) {
	c, err := cluster.Start(ctx, cluster.Config{
		Name: name, Nodes: cfg.Nodes, Dir: filepath.Join(cfg.Dir, name), DataDir: dataDir, Responders: cfg.Leases,
		// Short timeouts and a short log, so that elections and snapshots happen.
		Serve: lab.Serve{Program: cfg.Serve, Args: append([]string{"--tick", "20ms", "--retain-bytes", "1048576", "--flush-interval", "500ms"}, cfg.Args...)},
	})
	if err != nil {
		return nil, nil, err
	}
	r := &run{progress: cfg.Progress, seed: cfg.Seed, maxValue: cfg.MaxValue, leases: cfg.Leases, rng: rand.New(rand.NewPCG(cfg.Seed, 1)), cluster: c}
	if cfg.Gateways > 0 {
		if r.gates, err = startGates(ctx, cfg, c, filepath.Join(cfg.Dir, name+"-gateways")); err != nil {
			return nil, nil, errors.Join(err, c.Close())
		}
	}
	ctx, cancel := context.WithCancel(ctx)
	wait := r.startLoad(ctx)
	return r, func() { cancel(); wait() }, nil
}

// Run kills nodes under load, as often as cfg.Loops says, and compares the replicas at
// the end. An error names the broken promise, or another failure.
func Run(ctx context.Context, cfg Config) (_ *Summary, err error) {
	begin := time.Now()
	r, stop, err := newRun(ctx, cfg, "torture", nil)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, r.gates.close(), r.cluster.Close()) }()
	for i := range cfg.Loops {
		if err = r.loop(ctx, i, cfg.Loops); err != nil {
			err = fmt.Errorf("loop %d: %w", i+1, err)
			break
		}
	}
	r.sum.Loops = cfg.Loops
	return r.end(ctx, stop, begin, err)
}

// end ends the load, and compares the replicas unless something has failed.
func (r *run) end(ctx context.Context, stop func(), begin time.Time, err error) (*Summary, error) {
	if stop(); err == nil {
		err = r.verify(ctx)
	}
	if err != nil {
		return nil, err
	}
	r.sum.Elapsed = time.Since(begin)
	return &r.sum, r.cluster.Stop()
}

func (r *run) say(format string, args ...any) { fmt.Fprintf(r.progress, format+"\n", args...) }

// victims chooses whom to kill: the leader half of the time, else one follower,
// now and then two nodes or all.
func (r *run) victims(leader *cluster.Node) []*cluster.Node {
	nodes := slices.Clone(r.cluster.Nodes)
	r.rng.Shuffle(len(nodes), func(i, j int) { nodes[i], nodes[j] = nodes[j], nodes[i] })
	switch x := r.rng.IntN(100); {
	case x < 50:
		return []*cluster.Node{leader}
	case x < 75:
		if nodes[0] == leader {
			return nodes[1:2]
		}
		return nodes[:1]
	case x < 90:
		return nodes[:2]
	}
	return nodes
}

// loop kills and restarts once, and waits until writes are acknowledged again.
func (r *run) loop(ctx context.Context, i, of int) error {
	leader, err := r.cluster.WaitLeader(ctx)
	if err != nil {
		return err
	}
	r.hot.turn(i)
	if err := r.acknowledged(ctx); err != nil {
		return err
	}
	r.pause(ctx, 1000)
	victims := r.victims(leader)
	heal, gates, err := r.strikeGates()
	if err != nil {
		return err
	}
	if r.leases && r.rng.IntN(2) == 0 {
		return errors.Join(r.pauseLoop(ctx, i, of, victims), heal())
	}
	names := ""
	for _, v := range victims {
		if err := v.Kill(); err != nil {
			return err
		}
		names += fmt.Sprintf(" %d", v.ID)
		r.sum.Kills++
		if v == leader {
			names += " (leader)"
			r.sum.LeaderKills++
		}
	}
	if len(victims) == len(r.cluster.Nodes) {
		r.sum.AllKilled++
	}
	r.pause(ctx, 1500)
	for _, v := range victims {
		if err := v.Start(); err != nil {
			return err
		}
	}
	if err := heal(); err != nil {
		return err
	}
	// One start in five is cut short.
	if r.rng.IntN(5) == 0 {
		r.pause(ctx, 200)
		names += fmt.Sprintf(", %d again", victims[0].ID)
		r.sum.Kills++
		if err := errors.Join(victims[0].Kill(), victims[0].Start()); err != nil {
			return err
		}
	}
	return r.goOn(ctx, i, of, "killed"+names+gates)
}

// goOn waits until writes are acknowledged after what was done to the nodes.
func (r *run) goOn(ctx context.Context, i, of int, done string) error {
	began := time.Now()
	if err := r.acknowledged(ctx); err != nil {
		return err
	}
	r.sum.Recovery = append(r.sum.Recovery, time.Since(began))
	t := r.tally()
	r.say("%3d/%d  %-28s  acknowledged %6d  refused %5d  unknown %4d  next write after %v",
		i+1, of, done, t.acknowledged, t.refused, t.unknown, time.Since(began).Round(time.Millisecond))
	return ctx.Err()
}

// pause waits for up to so many milliseconds.
func (r *run) pause(ctx context.Context, most int) {
	_ = lab.Sleep(ctx, time.Duration(r.rng.IntN(most))*time.Millisecond) // the loop sees the end
}

// acknowledged waits until a write that begins now may have been acknowledged:
// until two more were than before, at each writer that has work.
func (r *run) acknowledged(ctx context.Context) error {
	before := r.tally().acknowledged
	return r.cluster.Wait(ctx, "an acknowledged write", func([]*statusResponse) bool {
		return r.tally().acknowledged > before+len(r.writers)
	})
}

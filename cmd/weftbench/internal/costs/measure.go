// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package costs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/weftraft/weft/cmd/weftbench/internal/hostnode"
	"github.com/weftraft/weft/internal/lab"
	"github.com/weftraft/weft/internal/process"
)

// Config configures a measurement.
type Config struct {
	Self     string // this program
	Dir      string
	Rounds   int           // of all loads, each on clusters of its own
	Time     time.Duration // of each load
	Sizes    []int         // of commands
	Clients  []int
	Progress io.Writer
}

// Sample is the work of a process under a load, and what the process took for it.
type Sample struct {
	Load            Load
	Leader, Gateway bool
	Work            Work
	CPU             time.Duration
}

// Load is a load on three nodes.
type Load struct {
	Way     string // of clients: "host", in the process; "read", likewise; "lean" and "rpc"; "rest": none
	Size    int
	Clients int
	Spread  bool // over all nodes; or else at the leader
	Batches bool // commands share entries
	// Gateways, unless 0, is the number of gateways at which the clients are, in the place of nodes.
	Gateways int
	// Read, unless empty, has clients read by this policy.
	Read string
}

// String returns the load in words.
func (l Load) String() string {
	at, entry := "at the leader", "a command an entry"
	if l.Spread {
		at = "at all nodes"
	}
	if l.Batches {
		entry = "batches"
	}
	if l.Gateways > 0 {
		at = fmt.Sprintf("at %d gateways", l.Gateways)
	}
	what := lab.Bytes(l.Size)
	if l.Read != "" {
		what = l.Read
	}
	return fmt.Sprintf("%s, %s, %d clients %s, %s", l.Way, what, l.Clients, at, entry)
}

// samples is how many samples a run of the load gives: of the leader, of the followers, and of the gateways.
func (l Load) samples() int { return processes + l.Gateways }

const (
	processes = 3
	perConn   = 16 // clients that share a connection
	restTime  = 60 * time.Millisecond
)

// loads lists the loads of a cluster, with batches or without: the latter at nodes alone.
func (cfg *Config) loads(batches bool) (all []Load) {
	all = append(all, Load{Way: "rest", Batches: batches})
	for _, clients := range cfg.Clients {
		for _, spread := range []bool{false, true} {
			for _, size := range cfg.Sizes {
				for _, way := range []string{"host", "lean", "rpc"} {
					all = append(all, Load{Way: way, Size: size, Clients: clients, Spread: spread, Batches: batches})
				}
			}
			all = append(all, Load{Way: "read", Clients: clients, Spread: spread, Batches: batches})
		}
	}
	if batches {
		all = append(all, cfg.calls(1, MostGateways)...)
	}
	return all
}

// calls lists loads of clients that write and read at so many gateways, or at the leader.
func (cfg *Config) calls(gateways ...int) (all []Load) {
	for _, way := range []string{hostnode.Lean.String(), hostnode.RPC.String()} {
		for _, clients := range cfg.Clients {
			for _, n := range gateways {
				l := Load{Way: way, Clients: clients, Batches: true, Gateways: n}
				for _, l.Size = range cfg.Sizes {
					all = append(all, l)
				}
				l.Size = 0
				for _, l.Read = range hostnode.Policies {
					all = append(all, l)
				}
			}
		}
	}
	return all
}

// Measure runs all loads, round by round. Each round has the samples of a load together: of the leader, of the followers,
// and of the gateways at which the clients were.
func Measure(ctx context.Context, cfg Config) (samples []Sample, err error) {
	err = lab.Turns(cfg.Rounds, 2, func(round, i int) error {
		batches, gateways := i == 0, 0
		if batches {
			gateways = MostGateways
		}
		s, err := cfg.measure(ctx, round, batches, gateways, cfg.loads(batches))
		samples = append(samples, s...)
		return err
	})
	return samples, err
}

// Sum adds the rounds of each load up, and keeps the samples of a load in their order.
func Sum(samples []Sample) (sums []Sample) {
	at := map[Load]int{}
	for len(samples) > 0 {
		run := samples[:samples[0].Load.samples()]
		samples = samples[len(run):]
		first, known := at[run[0].Load]
		if !known {
			at[run[0].Load] = len(sums)
			sums = append(sums, run...)
			continue
		}
		for i, s := range run {
			sum := &sums[first+i]
			sum.CPU += s.CPU
			sum.Work.Seconds, sum.Work.Counts = sum.Work.Seconds+s.Work.Seconds, sum.Work.Plus(s.Work.Counts)
		}
	}
	return sums
}

// bench is a cluster, and connections to its nodes.
type bench struct {
	*Config
	*lab.Cluster
	leader *lab.Node
	gates  *lab.Cluster                              // nil: no gateways
	conns  map[string]map[*lab.Node][]*hostnode.Conn // by kind
}

// all returns the nodes, and then the gateways.
func (b *bench) all() []*lab.Node {
	if b.gates == nil {
		return b.Nodes
	}
	return slices.Concat(b.Nodes, b.gates.Nodes)
}

// measure runs loads on a cluster, with so many gateways.
func (cfg *Config) measure(ctx context.Context, round int, batches bool, gateways int, loads []Load) (samples []Sample, err error) {
	name, bytes := fmt.Sprint("batches-", round), "0"
	if !batches {
		name, bytes = fmt.Sprint("single-", round), "1"
	}
	b := &bench{Config: cfg, conns: map[string]map[*lab.Node][]*hostnode.Conn{}}
	b.Cluster, err = lab.StartCluster(ctx, lab.ClusterConfig{Name: name, Nodes: processes, Dir: filepath.Join(cfg.Dir, name), Program: hostnode.New(cfg.Self, "--shorten", "--batch-bytes="+bytes)})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, b.Close()) }()
	if b.leader, _, err = b.Lead(ctx); err != nil {
		return nil, err
	}
	if gateways > 0 {
		b.gates, err = lab.StartCluster(ctx, lab.ClusterConfig{Name: name + "-gateways", Nodes: gateways, Dir: filepath.Join(cfg.Dir, name+"-gateways"), Program: hostnode.NewGateways(cfg.Self, b.Cluster)})
		if err != nil {
			return nil, err
		}
	}
	if err := b.connect(ctx); err != nil {
		return nil, err
	}
	for _, l := range loads {
		s, err := b.measure(ctx, l)
		if err != nil {
			return nil, fmt.Errorf("%v: %w", l, err)
		}
		samples = append(samples, s...)
		fmt.Fprintf(cfg.Progress, "%-60v %8.0f commands and reads a second, the leader's processor: %.0f%%\n", l,
			rate(s), 100*s[0].CPU.Seconds()/s[0].Work.Seconds)
	}
	return samples, nil
}

// connect opens the connections of the largest load to each node.
func (b *bench) connect(ctx context.Context) error {
	most := 0
	for _, c := range b.Config.Clients {
		most = max(most, c)
	}
	for _, k := range []hostnode.Kind{hostnode.Lean, hostnode.RPC} {
		b.conns[k.String()] = map[*lab.Node][]*hostnode.Conn{}
		for _, n := range b.all() {
			var address string
			if err := lab.Ask(ctx, http.MethodPost, n, "/listen?kind="+k.String(), "", &address); err != nil {
				return err
			}
			var conns []*hostnode.Conn
			for range (most + perConn - 1) / perConn {
				c, err := hostnode.Dial(k, address)
				if err != nil {
					return err
				}
				conns = append(conns, c)
			}
			b.conns[k.String()][n] = conns
		}
	}
	return nil
}

// Close closes the connections, and ends the nodes.
func (b *bench) Close() (err error) {
	for _, nodes := range b.conns {
		for _, conns := range nodes {
			for _, c := range conns {
				err = errors.Join(err, c.Close())
			}
		}
	}
	if b.gates != nil {
		err = errors.Join(err, b.gates.Close())
	}
	return errors.Join(err, b.Cluster.Close())
}

// look is what a process has done and used so far.
type look struct {
	counts hostnode.Counts
	used   process.Usage
}

// look looks at all nodes. What the question takes is not in the time between two looks, of which
// the second is the later one.
func (b *bench) look(ctx context.Context, later bool) (all []look, err error) {
	nodes := b.all()
	all = make([]look, len(nodes))
	used := func() (err error) {
		for i, n := range nodes {
			var failed error
			all[i].used, failed = n.Usage()
			err = errors.Join(err, failed)
		}
		return err
	}
	if later {
		if err := used(); err != nil {
			return nil, err
		}
	}
	for i, n := range nodes {
		if err := lab.Ask(ctx, http.MethodGet, n, "/counts", "", &all[i].counts); err != nil {
			return nil, err
		}
	}
	if !later {
		err = used()
	}
	return all, err
}

// measure runs a load. The leader's sample is the first.
func (b *bench) measure(ctx context.Context, l Load) (samples []Sample, err error) {
	if err := lab.Sleep(ctx, restTime); err != nil {
		return nil, err
	}
	before, err := b.look(ctx, false)
	if err != nil {
		return nil, err
	}
	begun := time.Now()
	if err := b.run(ctx, l); err != nil {
		return nil, err
	}
	if err := lab.Sleep(ctx, restTime); err != nil { // followers end what they put off
		return nil, err
	}
	took := time.Since(begun).Seconds()
	after, err := b.look(ctx, true)
	if err != nil {
		return nil, err
	}
	if now, _, err := b.Lead(ctx); err != nil || now != b.leader {
		return nil, fmt.Errorf("node %d led, and does no longer: %w", b.leader.ID, errors.Join(err, lab.ErrDisturbed))
	}
	for i := range l.samples() {
		leads := b.all()[i] == b.leader
		s := Sample{l, leads, i >= processes, Work{took, after[i].counts.Minus(before[i].counts)}, after[i].used.CPU - before[i].used.CPU}
		if leads {
			samples = append([]Sample{s}, samples...)
		} else {
			samples = append(samples, s)
		}
	}
	return samples, nil
}

// run makes the load.
func (b *bench) run(ctx context.Context, l Load) error {
	nodes := b.Nodes
	if l.Gateways > 0 {
		nodes = b.gates.Nodes[:l.Gateways]
	} else if !l.Spread {
		nodes = []*lab.Node{b.leader}
	}
	if l.Way == "rest" {
		return lab.Sleep(ctx, b.Time)
	}
	if l.Way == "host" || l.Way == "read" {
		return b.within(ctx, l, nodes)
	}
	command := make([]byte, l.Size)
	if l.Read != "" {
		command = hostnode.ReadBy(l.Read)
	}
	load := lab.Load{Clients: l.Clients, Duration: b.Time, Timeout: 30 * time.Second, Do: func(ctx context.Context, c *lab.Call) error {
		at := nodes[c.Client%len(nodes)]
		return b.conns[l.Way][at][c.Client/len(nodes)/perConn].Call(ctx, command)
	}}
	r, err := load.Run(ctx)
	if err == nil && r.Failed > 0 {
		err = r.Err
	}
	return err
}

// within has clients in the nodes' own processes.
func (b *bench) within(ctx context.Context, l Load, nodes []*lab.Node) error {
	path := "/write?"
	if l.Way == "read" {
		path = "/read?"
	}
	ended := make(chan error, len(nodes))
	for i, n := range nodes {
		clients := l.Clients / len(nodes)
		if i < l.Clients%len(nodes) {
			clients++
		}
		go func() {
			ended <- lab.Ask(ctx, http.MethodPost, n, path+url.Values{
				"clients": {strconv.Itoa(clients)}, "for": {b.Time.String()}, "size": {strconv.Itoa(l.Size)}}.Encode(), "", new(hostnode.Done))
		}()
	}
	var err error
	for range nodes {
		err = errors.Join(err, <-ended)
	}
	return err
}

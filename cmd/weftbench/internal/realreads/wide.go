// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

// Package realreads measures linearizable reads with real processes and real sockets: clients
// near the nodes of wide networks, by policy, and what a read takes of processors.
package realreads

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"time"

	"google.golang.org/grpc"

	"github.com/weftraft/weft/cmd/internal/cluster"
	"github.com/weftraft/weft/cmd/internal/nodes"
	"github.com/weftraft/weft/cmd/kvdemo/kvpb"
	"github.com/weftraft/weft/cmd/weftbench/internal/readsbench"
	"github.com/weftraft/weft/internal/lab"
)

// Config says what to measure.
type Config struct {
	// Kvdemo and Self are programs: the nodes of the first part, and this one. Etcd is a server of
	// released etcd, and ZooKeeper the file zookeeper.jar; without them their rows are left out.
	Kvdemo, Etcd, ZooKeeper, Self, Dir string
	// Networks and Policies are the rows of the first part; nil: all.
	Networks, Policies []string
	// Everywhere has all nodes be responders, and not only those that the network names.
	Everywhere bool
	// Clients near each node make one call after the other; Writes is the share of writes.
	Clients int
	Writes  float64
	Keys    int
	Value   int
	// Rounds is how often a row is measured, in turns with the others; Time is how long, each time.
	Rounds int
	Time   time.Duration
	// Sizes are the sizes of groups for the second part, whose Readers read all the time.
	Sizes    []int
	Readers  int
	Progress io.Writer
	begun    int    // groups
	last     string // directory of the last one
}

// Row is what clients saw of a policy in a network. Reads and Writes are the sites' latencies,
// and the means those of the sites' means.
type Row struct {
	Network   string               `json:"network"`
	Policy    string               `json:"policy"`
	Rate      float64              `json:"rate"`
	Rates     lab.Rounds           `json:"rates_by_round"`
	Reads     []readsbench.Latency `json:"reads"`
	Writes    []readsbench.Latency `json:"writes"`
	ReadMean  time.Duration        `json:"read_mean_ns"`
	WriteMean time.Duration        `json:"write_mean_ns"`
	// Local is the share of reads that a node answered by its own leases.
	Local  float64 `json:"local"`
	Failed int     `json:"failed"`
}

// merge returns the medians of the rounds of a row.
func merge(rounds []Row) Row {
	row := rounds[0]
	row.Rates = lab.RoundsOf(rounds, func(r Row) float64 { return r.Rate })
	row.Rate = row.Rates.Median()
	row.ReadMean = lab.MedianTime(rounds, func(r Row) time.Duration { return r.ReadMean })
	row.WriteMean = lab.MedianTime(rounds, func(r Row) time.Duration { return r.WriteMean })
	row.Local = lab.RoundsOf(rounds, func(r Row) float64 { return r.Local }).Median()
	row.Reads, row.Writes, row.Failed = slices.Clone(row.Reads), slices.Clone(row.Writes), 0
	for site := range row.Reads {
		row.Reads[site] = medianLatency(rounds, func(r Row) readsbench.Latency { return r.Reads[site] })
		row.Writes[site] = medianLatency(rounds, func(r Row) readsbench.Latency { return r.Writes[site] })
	}
	for _, r := range rounds {
		row.Failed += r.Failed
	}
	return row
}

func medianLatency(rounds []Row, of func(Row) readsbench.Latency) readsbench.Latency {
	return readsbench.Latency{
		Mean: lab.MedianTime(rounds, func(r Row) time.Duration { return of(r).Mean }),
		P50:  lab.MedianTime(rounds, func(r Row) time.Duration { return of(r).P50 }),
		P99:  lab.MedianTime(rounds, func(r Row) time.Duration { return of(r).P99 }),
	}
}

// Results are what was measured.
type Results struct {
	Rows []Row `json:"rows"`
	CPU  []CPU `json:"cpu"`
}

// policy is a way to read, at nodes that run with the flags; or another program's.
type policy struct {
	name  string
	args  []string
	named bool
	read  *kvpb.ReadPolicy
	// start starts nodes that are not kvdemo's.
	start func(*Config, context.Context, readsbench.Network, policy) (*store, error)
}

// The policies of other programs. Reads of etcd are linearizable by default; a member that is asked for a serializable one
// answers from what it has, as every server of ZooKeeper does.
const (
	Etcd            = "etcd"
	Serializable    = "stale etcd"
	ZooKeeper       = "ZooKeeper"
	SyncedZooKeeper = "ZooKeeper, sync"
)

// weaker reports whether reads of a policy may be stale: those after a sync, too, as a leader that was replaced and does not
// know yet may answer it.
func weaker(policy string) bool {
	return policy == Serializable || policy == ZooKeeper || policy == SyncedZooKeeper
}

// Lacks returns the flag that names the program for a policy, if the flag is not set, or "".
func (cfg *Config) Lacks(policy string) string {
	switch policy {
	case Etcd, Serializable:
		if cfg.Etcd == "" {
			return "etcd"
		}
	case ZooKeeper, SyncedZooKeeper:
		if cfg.ZooKeeper == "" {
			return "zookeeper"
		}
	}
	return ""
}

func policies() []policy {
	lease, notes := []string{"--leases"}, []string{"--leases", "--lease-notes"}
	return []policy{
		{name: Etcd, start: (*Config).startEtcd},
		{name: Serializable, start: (*Config).startEtcd},
		{name: ZooKeeper, start: (*Config).startZooKeeper},
		{name: SyncedZooKeeper, start: (*Config).startZooKeeper},
		{name: "ReadIndex"},
		{name: "quorum read", read: &kvpb.ReadPolicy{Kind: kvpb.ReadPolicy_QUORUM}},
		{name: "leader lease", args: lease},
		{name: "roster", args: lease, named: true},
		{name: "roster, notes", args: notes, named: true},
	}
}

// Run measures all of it. The results before an error are there.
func Run(ctx context.Context, cfg Config) (*Results, error) {
	var r Results
	for _, n := range readsbench.Networks()[1:] { // the first is one data centre
		if !wanted(cfg.Networks, n.Name) {
			continue
		}
		list := slices.DeleteFunc(policies(), func(p policy) bool { return !wanted(cfg.Policies, p.name) || cfg.Lacks(p.name) != "" })
		byPolicy := make([][]Row, len(list))
		err := lab.Turns(cfg.Rounds, len(list), func(_, side int) error {
			p := list[side]
			row, err := lab.Again(func() (Row, error) { return cfg.row(ctx, n, p) })
			if err != nil {
				return fmt.Errorf("%s, %s: %w", n.Name, p.name, err)
			}
			byPolicy[side] = append(byPolicy[side], row)
			fmt.Fprintf(cfg.Progress, "%s, %s: %.0f ops a second, reads %v, writes %v\n", n.Name, p.name, row.Rate,
				row.ReadMean.Round(10*time.Microsecond), row.WriteMean.Round(10*time.Microsecond))
			return nil
		})
		if err != nil {
			return &r, err
		}
		for _, rounds := range byPolicy {
			r.Rows = append(r.Rows, merge(rounds))
		}
	}
	for _, size := range cfg.Sizes {
		rows, err := cfg.processors(ctx, size)
		if err != nil {
			return &r, fmt.Errorf("processor time in a group of %d: %w", size, err)
		}
		r.CPU = append(r.CPU, rows...)
	}
	return &r, nil
}

// errElection says that a group had an election, so that the measurement says nothing.
var errElection = fmt.Errorf("there was an election meanwhile: %w", lab.ErrDisturbed)

func wanted(names []string, name string) bool { return names == nil || slices.Contains(names, name) }

// PolicyNames returns the names that Config.Policies may have.
func PolicyNames() (names []string) {
	for _, p := range policies() {
		names = append(names, p.name)
	}
	return names
}

// store is a cluster whose reads are measured.
type store struct {
	nodes interface {
		Clients() []string // by site
		io.Closer
	}
	lead func(context.Context) (site int, err error) // from 1 on
	dial func(address string) (client, error)
}

// followed is store.lead of nodes that say whom they follow.
func followed(c *lab.Cluster) func(context.Context) (int, error) {
	return func(ctx context.Context) (int, error) {
		n, _, err := c.Lead(ctx)
		if err != nil {
			return 0, err
		}
		return n.ID, nil
	}
}

// client is a connection to a node. Its methods may be called at the same time.
type client interface {
	// get reads a key, and reports whether the node answered by its own leases.
	get(ctx context.Context, key string) (value []byte, local bool, err error)
	put(ctx context.Context, key string, value []byte) error
	io.Closer
}

// row starts a cluster in a network, and measures it. The data of a cluster that has done its part is removed: that of all would fill a disk.
func (cfg *Config) row(ctx context.Context, n readsbench.Network, p policy) (row Row, err error) {
	row = Row{Network: n.Name, Policy: p.name}
	start := (*Config).startKvdemo
	if p.start != nil {
		start = p.start
	}
	s, err := start(cfg, ctx, n, p)
	if err != nil {
		return row, err
	}
	defer func() {
		if err = errors.Join(err, s.nodes.Close()); err == nil {
			err = os.RemoveAll(cfg.last)
		}
	}()
	if err := cfg.fill(ctx, s, n); err != nil {
		return row, err
	}
	r, err := cfg.load(ctx, s, n)
	if err != nil {
		return row, err
	}
	leader, err := s.lead(ctx)
	if err != nil {
		return row, err
	}
	if leader != int(n.Leader) {
		return row, fmt.Errorf("node %d leads at the end, not node %d: %w", leader, n.Leader, errElection)
	}
	row.measured(r, len(n.Sites))
	return row, nil
}

type kvClient struct {
	*grpc.ClientConn
	policy *kvpb.ReadPolicy
}

func (c kvClient) put(ctx context.Context, key string, value []byte) error {
	_, err := kvpb.NewKVClient(c).Put(ctx, &kvpb.PutRequest{Key: key, Value: value})
	return err
}

func (c kvClient) get(ctx context.Context, key string) (value []byte, local bool, err error) {
	resp, err := kvpb.NewKVClient(c).Get(ctx, &kvpb.GetRequest{Key: key, Policy: c.policy})
	by := resp.GetServed().GetBy()
	return resp.GetValue(), by == "roster" || by == "lease", err
}

// startKvdemo starts a cluster, whose leader and responders are the nodes that the network names.
func (cfg *Config) startKvdemo(ctx context.Context, n readsbench.Network, p policy) (_ *store, err error) {
	c, err := cluster.Start(ctx, cluster.Config{
		Name: p.name, Nodes: len(n.Sites), Dir: cfg.dir(n.Name + " " + p.name),
		Serve: lab.Serve{Program: []string{cfg.Kvdemo, "serve"}, Args: append([]string{"--tick", n.Tick.String()}, p.args...)},
		Links: func(from, to int) time.Duration { return n.RoundTrip(uint64(from), uint64(to)) / 2 },
	})
	if err != nil {
		return nil, err
	}
	err = c.HandTo(ctx, c.Nodes[n.Leader-1].Node)
	if p.named && err == nil {
		ids := []uint64{n.Leader}
		for _, id := range n.Responders {
			ids = append(ids, uint64(id))
		}
		if cfg.Everywhere {
			ids = nil
			for i := range n.Sites {
				ids = append(ids, uint64(i+1))
			}
		}
		err = c.NameResponders(ctx, ids...)
	}
	if err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return &store{c, followed(c.Cluster), func(address string) (client, error) {
		conn, err := nodes.Dial(address)
		return kvClient{conn, p.read}, err
	}}, nil
}

// dir returns the name of a directory that no earlier try has used.
func (cfg *Config) dir(name string) string {
	cfg.begun++
	cfg.last = filepath.Join(cfg.Dir, fmt.Sprintf("%d %s", cfg.begun, name))
	return cfg.last
}

// fill writes every key once.
func (cfg *Config) fill(ctx context.Context, s *store, n readsbench.Network) error {
	conn, err := s.dial(s.nodes.Clients()[n.Leader-1])
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }() // nothing is under way
	l := lab.Load{
		Clients: 64, Calls: cfg.Keys, Timeout: time.Minute,
		Do: func(ctx context.Context, c *lab.Call) error {
			return conn.put(ctx, keyName(c.All), cfg.value(c.All, 0))
		},
	}
	r, err := l.Run(ctx)
	return errors.Join(err, r.Err)
}

func keyName(i int) string { return fmt.Sprintf("reads/%d", i) }

func (cfg *Config) value(key int, stamp uint64) []byte {
	value := make([]byte, cfg.Value)
	lab.Value(keyName(key), stamp, value)
	return value
}

// The kinds of a site's calls: reads answered by leases of the node, other reads, and writes.
const (
	remoteRead = iota
	localRead
	write
	kindsOfASite
)

// load has clients near every node read and write; the first quarter of the time does not count.
// The way from a client to its node and back is a part of each call.
func (cfg *Config) load(ctx context.Context, s *store, n readsbench.Network) (*lab.Result, error) {
	sites := len(n.Sites)
	conns := make([]client, 0, sites*cfg.Clients)
	defer func() {
		for _, c := range conns {
			_ = c.Close() // nothing is under way
		}
	}()
	var draws []*rand.Rand
	for i := range cap(conns) {
		conn, err := s.dial(s.nodes.Clients()[i%sites])
		if err != nil {
			return nil, err
		}
		conns, draws = append(conns, conn), append(draws, rand.New(rand.NewPCG(uint64(i%sites), uint64(i/sites))))
	}
	l := lab.Load{
		Clients: len(conns), Warm: cfg.Time / 4, Duration: cfg.Time, Timeout: 10 * time.Second,
		Do: func(ctx context.Context, c *lab.Call) (err error) {
			var kind int
			rng, conn := draws[c.Client], conns[c.Client]
			key := rng.IntN(cfg.Keys)
			time.Sleep(n.Client)
			if rng.Float64() < cfg.Writes {
				kind, err = write, conn.put(ctx, keyName(key), cfg.value(key, uint64(c.Client+1)<<32|uint64(c.Number)))
			} else {
				kind, err = cfg.read(ctx, conn, keyName(key))
			}
			c.Kind = c.Client%sites*kindsOfASite + kind
			return err
		},
	}
	return l.Run(ctx)
}

// read reads a key and checks the value.
func (cfg *Config) read(ctx context.Context, conn client, key string) (kind int, err error) {
	value, local, err := conn.get(ctx, key)
	if local {
		kind = localRead
	}
	if err != nil {
		return kind, err
	}
	return kind, lab.CheckValue(key, value, cfg.Value)
}

// measured puts what clients were told into a row.
func (row *Row) measured(r *lab.Result, sites int) {
	reads, local := int64(0), int64(0)
	for i := range sites {
		kind := func(kind int) *lab.Meter { return r.Kind(i*kindsOfASite + kind) }
		atNode := kind(localRead)
		all := kind(remoteRead).Latency.Clone()
		all.Merge(&atNode.Latency)
		reads, local = reads+all.Count(), local+atNode.Calls
		row.Reads, row.Writes = append(row.Reads, latencyOf(all)), append(row.Writes, latencyOf(&kind(write).Latency))
	}
	row.ReadMean, row.WriteMean = readsbench.MeanOf(row.Reads), readsbench.MeanOf(row.Writes)
	row.Rate, row.Failed = r.PerSecond(), int(r.Failed)
	row.Local = float64(local) / float64(max(reads, 1))
}

func latencyOf(h *lab.Histogram) readsbench.Latency {
	return readsbench.Latency{Mean: h.Mean(), P50: h.Quantile(0.5), P99: h.Quantile(0.99)}
}

// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package realreads

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"path/filepath"
	"strconv"
	"time"

	"github.com/weftraft/weft/cmd/weftbench/internal/hostnode"
	"github.com/weftraft/weft/internal/lab"
)

// CPU is the processor time of reads of Host, over the processes of all nodes of the group.
type CPU struct {
	Nodes   int           `json:"nodes"`
	Policy  string        `json:"policy"`
	Readers int           `json:"readers"`
	Reads   int           `json:"reads"`
	PerRead time.Duration `json:"per_read_ns"`
	Rate    float64       `json:"rate"`
	// Rounds are the microseconds a read by round, of which PerRead is the median.
	Rounds lab.Rounds `json:"us_per_read_by_round"`
}

// processors measures reads at a follower, by ReadIndex and by leases in turns, with one reader and
// with the configured number of readers.
func (cfg *Config) processors(ctx context.Context, size int) (rows []CPU, err error) {
	var groups []*group
	defer func() {
		for _, g := range groups {
			err = errors.Join(err, g.Close())
		}
	}()
	readers := []int{1, cfg.Readers}
	byRow := make([][]CPU, 2*len(readers))
	for _, leased := range []bool{false, true} {
		g, err := cfg.startGroup(ctx, size, leased)
		if err != nil {
			return nil, err
		}
		groups = append(groups, g)
	}
	for i, n := range readers {
		err := lab.Turns(cfg.Rounds, len(groups), func(_, side int) error {
			row, err := lab.Again(func() (CPU, error) { return groups[side].measure(ctx, n, cfg.Time) })
			at := side*len(readers) + i
			byRow[at] = append(byRow[at], row)
			fmt.Fprintf(cfg.Progress, "%d nodes, %s, %d readers: %v of processors a read, %.0f reads a second\n", size, row.Policy, n, row.PerRead, row.Rate)
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	for _, list := range byRow {
		row := list[0]
		row.PerRead = lab.MedianTime(list, func(c CPU) time.Duration { return c.PerRead })
		row.Rate = lab.RoundsOf(list, func(c CPU) float64 { return c.Rate }).Median()
		row.Reads = 0
		for _, c := range list {
			row.Reads += c.Reads
			row.Rounds = append(row.Rounds, float64(c.PerRead)/float64(time.Microsecond))
		}
		rows = append(rows, row)
	}
	return rows, nil
}

// group is nodes whose readers are goroutines of their own processes, so that no client protocol is measured.
type group struct {
	*lab.Cluster
	policy string
	leased bool
}

func (cfg *Config) startGroup(ctx context.Context, size int, leased bool) (g *group, err error) {
	g = &group{policy: "ReadIndex", leased: leased}
	if leased {
		g.policy = "roster"
	}
	name := fmt.Sprintf("cpu-%d-%s", size, g.policy)
	g.Cluster, err = lab.StartCluster(ctx, lab.ClusterConfig{
		Name: name, Nodes: size, Dir: filepath.Join(cfg.Dir, name),
		Program: hostnode.New(cfg.Self, "--leases="+strconv.FormatBool(leased)),
	})
	return g, err
}

// measure has a follower's readers read.
func (g *group) measure(ctx context.Context, readers int, d time.Duration) (CPU, error) {
	row := CPU{Nodes: len(g.Nodes), Policy: g.policy, Readers: readers}
	at, err := g.follower(ctx)
	if err != nil {
		return row, err
	}
	before, err := g.Usage()
	if err != nil {
		return row, err
	}
	var r hostnode.Done
	if err := lab.Ask(ctx, http.MethodPost, at, "/read?"+url.Values{"clients": {strconv.Itoa(readers)}, "size": {"0"}, "for": {d.String()}}.Encode(), "", &r); err != nil {
		return row, err
	}
	after, err := g.Usage()
	if err != nil {
		return row, err
	}
	want := map[bool]string{false: "leader", true: "roster"}[g.leased]
	if r.Calls == 0 || r.By[want] < r.Calls*99/100 {
		return row, fmt.Errorf("of %d reads %v were served, want nearly all by %s: %w", r.Calls, r.By, want, lab.ErrDisturbed)
	}
	row.Reads, row.PerRead, row.Rate = r.Calls, (after.CPU-before.CPU)/time.Duration(r.Calls), float64(r.Calls)/d.Seconds()
	return row, nil
}

// follower waits until the group is ready, and returns a follower.
func (g *group) follower(ctx context.Context) (*lab.Node, error) {
	leader, _, err := g.Lead(ctx)
	if err != nil {
		return nil, err
	}
	err = g.Wait(ctx, "all nodes to have leases", func(ctx context.Context) error {
		for _, n := range g.Nodes {
			var s hostnode.Status
			if err := lab.Ask(ctx, http.MethodGet, n, "/status", "", &s); err != nil || g.leased && !s.Stable {
				return cmp.Or(err, fmt.Errorf("node %d has none", n.ID))
			}
		}
		return nil
	})
	return g.Nodes[leader.ID%len(g.Nodes)], err // the one behind the leader
}

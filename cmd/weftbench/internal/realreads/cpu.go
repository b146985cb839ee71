// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package realreads

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"path/filepath"
	"strconv"
	"strings"
	"time"

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

// group is nodes of RunNode.
type group struct {
	*lab.Cluster
	policy string
	leased bool
}

// readNode is the program of a group.
type readNode struct{ lab.Serve }

// Status implements [lab.Program].
func (readNode) Status(ctx context.Context, n *lab.Node) (lab.Status, error) {
	var s nodeStatus
	err := order(ctx, http.MethodGet, n, "/status", &s)
	return lab.Status{ID: uint64(n.ID), Leader: s.Lead}, err
}

// Transfer implements [lab.Program].
func (readNode) Transfer(context.Context, *lab.Node, *lab.Node) error {
	return errors.New("the nodes take no order to hand over")
}

func (cfg *Config) startGroup(ctx context.Context, size int, leased bool) (g *group, err error) {
	g = &group{policy: "ReadIndex", leased: leased}
	if leased {
		g.policy = "roster"
	}
	name := fmt.Sprintf("cpu-%d-%s", size, g.policy)
	g.Cluster, err = lab.StartCluster(ctx, lab.ClusterConfig{
		Name: name, Nodes: size, Dir: filepath.Join(cfg.Dir, name),
		Program: readNode{lab.Serve{Program: []string{cfg.Self, "readnode"}, Args: []string{"--leases=" + strconv.FormatBool(leased)}}},
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
	var r nodeReads
	if err := order(ctx, http.MethodPost, at, "/read?"+url.Values{"readers": {strconv.Itoa(readers)}, "for": {d.String()}}.Encode(), &r); err != nil {
		return row, err
	}
	after, err := g.Usage()
	if err != nil {
		return row, err
	}
	want := map[bool]string{false: "leader", true: "roster"}[g.leased]
	if r.Reads == 0 || r.By[want] < r.Reads*99/100 {
		return row, fmt.Errorf("of %d reads %v were served, want nearly all by %s: %w", r.Reads, r.By, want, lab.ErrDisturbed)
	}
	row.Reads, row.PerRead, row.Rate = r.Reads, (after.CPU-before.CPU)/time.Duration(r.Reads), float64(r.Reads)/d.Seconds()
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
			var s nodeStatus
			if err := order(ctx, http.MethodGet, n, "/status", &s); err != nil || g.leased && !s.Stable {
				return cmp.Or(err, fmt.Errorf("node %d has none", n.ID))
			}
		}
		return nil
	})
	return g.Nodes[leader.ID%len(g.Nodes)], err // the one behind the leader
}

// order asks a node for something.
func order(ctx context.Context, method string, n *lab.Node, path string, answer any) error {
	req, err := http.NewRequestWithContext(ctx, method, "http://"+n.Client+path, nil)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }() // it is read
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("node %d: %s", n.ID, strings.TrimSpace(string(body)))
	}
	return json.Unmarshal(body, answer)
}

// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package realreads

import (
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
	"github.com/weftraft/weft/internal/ports"
	"github.com/weftraft/weft/internal/process"
)

// CPU is what reads of Host took of the processors, those of all nodes of the group.
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

// processors measures reads at a follower, by ReadIndex and by its leases, in turns: one reader, and
// as many as there are to be.
func (cfg *Config) processors(ctx context.Context, size int) (rows []CPU, err error) {
	var groups []*group
	defer func() {
		for _, g := range groups {
			err = errors.Join(err, g.close())
		}
	}()
	readers := []int{1, cfg.Readers}
	byRow := make([][]CPU, 2*len(readers))
	for _, leased := range []bool{false, true} {
		g, err := cfg.startGroup(size, leased)
		groups = append(groups, g)
		if err != nil {
			return nil, err
		}
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
	policy  string
	leased  bool
	nodes   []*process.Process
	clients []string // addresses for orders
}

func (cfg *Config) startGroup(size int, leased bool) (*group, error) {
	g := &group{policy: "ReadIndex", leased: leased}
	if leased {
		g.policy = "roster"
	}
	addresses, err := ports.Free(2 * size)
	if err != nil {
		return g, err
	}
	var peers []string
	for i := range size {
		peers = append(peers, fmt.Sprintf("%d=%s", i+1, addresses[i]))
	}
	g.clients = addresses[size:]
	for i := range size {
		name := fmt.Sprintf("cpu-%d-%s-%d", size, g.policy, i+1)
		p, err := process.Start([]string{
			cfg.Self, "readnode", "--id", strconv.Itoa(i + 1), "--peers", strings.Join(peers, ","), "--client-listen", g.clients[i],
			"--data", filepath.Join(cfg.Dir, name), "--leases=" + strconv.FormatBool(leased), "--exit-with-stdin",
		}, filepath.Join(cfg.Dir, name+".log"))
		if err != nil {
			return g, err
		}
		g.nodes = append(g.nodes, p)
	}
	return g, nil
}

func (g *group) close() (err error) {
	for _, p := range g.nodes {
		err = errors.Join(err, p.Kill())
	}
	return err
}

// measure has a follower's readers read.
func (g *group) measure(ctx context.Context, readers int, d time.Duration) (CPU, error) {
	row := CPU{Nodes: len(g.nodes), Policy: g.policy, Readers: readers}
	at, err := g.follower(ctx)
	if err != nil {
		return row, err
	}
	before, err := g.used()
	if err != nil {
		return row, err
	}
	var r nodeReads
	if err := g.order(ctx, http.MethodPost, at, "/read?"+url.Values{"readers": {strconv.Itoa(readers)}, "for": {d.String()}}.Encode(), &r); err != nil {
		return row, err
	}
	after, err := g.used()
	if err != nil {
		return row, err
	}
	want := map[bool]string{false: "leader", true: "roster"}[g.leased]
	if r.Reads == 0 || r.By[want] < r.Reads*99/100 {
		return row, fmt.Errorf("of %d reads %v were served, want nearly all by %s: %w", r.Reads, r.By, want, lab.ErrDisturbed)
	}
	row.Reads, row.PerRead, row.Rate = r.Reads, (after-before)/time.Duration(r.Reads), float64(r.Reads)/d.Seconds()
	return row, nil
}

// follower waits until the group is ready, and returns a follower.
func (g *group) follower(ctx context.Context) (int, error) {
	var last error
	for end := time.Now().Add(time.Minute); time.Now().Before(end); {
		lead, ready := uint64(0), true
		for i := range g.nodes {
			var s nodeStatus
			if last = g.order(ctx, http.MethodGet, i, "/status", &s); last != nil || s.Lead == 0 || lead != 0 && s.Lead != lead || g.leased && !s.Stable {
				ready = false
				break
			}
			lead = s.Lead
		}
		if ready {
			return int(lead) % len(g.nodes), nil // counted from 0: the one behind the leader
		}
		select {
		case <-ctx.Done():
			return 0, context.Cause(ctx)
		case <-time.After(30 * time.Millisecond):
		}
	}
	return 0, fmt.Errorf("the nodes have no leader, or lack leases, after a minute: %w", last)
}

func (g *group) used() (sum time.Duration, err error) {
	for _, p := range g.nodes {
		u, err := p.Usage()
		if err != nil {
			return 0, err
		}
		sum += u.CPU
	}
	return sum, nil
}

// order asks a node for something.
func (g *group) order(ctx context.Context, method string, at int, path string, answer any) error {
	req, err := http.NewRequestWithContext(ctx, method, "http://"+g.clients[at]+path, nil)
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
		return fmt.Errorf("node %d: %s", at+1, strings.TrimSpace(string(body)))
	}
	return json.Unmarshal(body, answer)
}

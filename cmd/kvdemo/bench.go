// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"

	"github.com/weftraft/weft/cmd/kvdemo/internal/client"
	"github.com/weftraft/weft/cmd/kvdemo/internal/kv"
	"github.com/weftraft/weft/cmd/kvdemo/kvpb"
	"github.com/weftraft/weft/internal/lab"
)

// benchFlags say what load bench makes.
type benchFlags struct {
	clientFlags
	clients  int
	size     int
	keys     int
	reads    int
	policies []string
	mix      []*policyReads // of policies
	duration time.Duration
	seed     uint64
}

func newBench() *cobra.Command {
	var f benchFlags
	cmd := &cobra.Command{
		Use:   "bench",
		Short: "Write and read for a while, and measure",
		Long: "bench writes random values under the keys bench/0, bench/1, ... and reads them,\n" +
			"with so many clients at once, each of which waits for one answer before it asks again.\n" +
			"--timeout bounds each of these calls.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := f.validate(); err != nil {
				return fmt.Errorf("%w; %w", err, errUsage)
			}
			r, err := f.run(cmd.Context(), cmd.ErrOrStderr())
			if err != nil {
				return err
			}
			return errors.Join(f.print(cmd, r), cmd.Context().Err())
		},
	}
	f.add(cmd)
	flags := cmd.Flags()
	flags.IntVar(&f.clients, "clients", 16, "concurrent clients, 1 to 10000")
	flags.IntVar(&f.size, "size", 1024, "bytes of a value, to 67108864")
	flags.IntVar(&f.keys, "keys", 1000, "number of keys, 1 to 1073741824")
	flags.IntVar(&f.reads, "reads", 0, "percentage of calls that are reads, 0 to 100")
	flags.StringSliceVar(&f.policies, "policy", []string{"default"}, "of reads, several make a row each: "+client.Policies)
	flags.DurationVar(&f.duration, "duration", 10*time.Second, "how long")
	flags.Uint64Var(&f.seed, "seed", 1, "of keys and values")
	return cmd
}

func (f *benchFlags) validate() error {
	var errs []error
	bad := func(flag string, value, lo, hi int) {
		if value < lo || value > hi {
			errs = append(errs, fmt.Errorf("--%s: %d, want %d to %d", flag, value, lo, hi))
		}
	}
	bad("clients", f.clients, 1, 10000)
	bad("size", f.size, 0, kv.MaxValueBytes)
	bad("keys", f.keys, 1, 1<<30)
	bad("reads", f.reads, 0, 100)
	if f.duration <= 0 {
		errs = append(errs, fmt.Errorf("--duration: %v, want more than 0", f.duration))
	}
	for _, name := range f.policies {
		p, err := client.ParsePolicy(name)
		if err != nil {
			errs = append(errs, fmt.Errorf("--%w", err))
			continue
		}
		f.mix = append(f.mix, &policyReads{name: name, policy: p, served: map[string]int64{}})
	}
	if f.timeout <= 0 {
		errs = append(errs, fmt.Errorf("--timeout: %v, want more than 0", f.timeout))
	}
	return errors.Join(errs...)
}

// benchSide is what bench measured of writes or of reads.
type benchSide struct {
	Calls   int64   `json:"calls"`
	Failed  int64   `json:"failed"`
	PerSec  float64 `json:"per_second"`
	P50     float64 `json:"p50_ms"`
	P99     float64 `json:"p99_ms"`
	Longest float64 `json:"longest_ms"`
}

type benchResult struct {
	Clients int       `json:"clients"`
	Size    int       `json:"size"`
	Seconds float64   `json:"seconds"`
	Writes  benchSide `json:"writes"`
	Reads   benchSide `json:"reads"`

	Policies []benchPolicy `json:"policies,omitempty"` // of the reads
	Error    string        `json:"error,omitempty"`    // the last failure
}

// benchPolicy is what bench measured of the reads by a policy.
type benchPolicy struct {
	Policy string `json:"policy"`
	benchSide
	Served map[string]int64 `json:"served"` // how many, by what they rest on
}

func (r benchResult) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d clients, values of %d bytes, %.1f s", r.Clients, r.Size, r.Seconds)
	side := func(name string, s benchSide) {
		if s.Calls+s.Failed > 0 {
			fmt.Fprintf(&b, "\n%-9s  %8.0f/s  p50 %6.2f ms  p99 %7.2f ms  longest %7.1f ms  %d done, %d failed",
				name, s.PerSec, s.P50, s.P99, s.Longest, s.Calls, s.Failed)
		}
	}
	side("writes", r.Writes)
	side("reads", r.Reads)
	for _, p := range r.Policies {
		side("  "+p.Policy, p.benchSide)
		for _, by := range slices.Sorted(maps.Keys(p.Served)) {
			fmt.Fprintf(&b, ", %d by %s", p.Served[by], by)
		}
	}
	if r.Error != "" {
		fmt.Fprintf(&b, "\nlast failure: %s", r.Error)
	}
	return b.String()
}

// policyReads are the reads by a policy.
type policyReads struct {
	name   string
	policy *kvpb.ReadPolicy

	mu     sync.Mutex
	served map[string]int64 // by what the answers rest on
}

func (p *policyReads) note(by string) {
	if by == "" {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.served[by]++
}

// write is the kind of writes; the kind of reads by policy i is i+1.
const write = 0

func sideOf(m *lab.Meter, seconds float64) benchSide {
	return benchSide{
		Calls: m.Calls, Failed: m.Failed, PerSec: float64(m.Calls) / seconds,
		P50: m.Latency.Millis(0.5), P99: m.Latency.Millis(0.99), Longest: m.Latency.Millis(1),
	}
}

// benchProgress counts calls as they end.
type benchProgress struct{ written, read, failed atomic.Int64 }

func (p *benchProgress) note(c *lab.Call) {
	switch {
	case c.Err != nil:
		p.failed.Add(1)
	case c.Kind == write:
		p.written.Add(1)
	default:
		p.read.Add(1)
	}
}

// report says every other second how far the calls are, until ctx ends.
func (p *benchProgress) report(ctx context.Context, out io.Writer) {
	for start := time.Now(); lab.Sleep(ctx, 2*time.Second) == nil; {
		fmt.Fprintf(out, "%6.1fs  %d written, %d read, %d failed\n", time.Since(start).Seconds(), p.written.Load(), p.read.Load(), p.failed.Load())
	}
}

// benchClient is one client.
type benchClient struct {
	*client.Client
	rng   *rand.Rand
	value []byte
}

// run makes the load. It fails only if nothing at all succeeded.
func (f *benchFlags) run(ctx context.Context, progress io.Writer) (_ benchResult, err error) {
	clients, err := f.connect()
	defer func() {
		for _, c := range clients {
			err = errors.Join(err, c.Close())
		}
	}()
	if err != nil {
		return benchResult{}, err
	}
	var p benchProgress
	stop := lab.Background(ctx, func(ctx context.Context) { p.report(ctx, progress) })
	defer stop()
	l := lab.Load{
		Clients: f.clients, Duration: f.duration, Timeout: f.timeout, Note: p.note,
		Do: func(ctx context.Context, c *lab.Call) error { return f.call(ctx, clients[c.Client], c) },
	}
	made, err := l.Run(ctx)
	seconds := made.Elapsed.Seconds()
	reads := &lab.Meter{}
	r := benchResult{Clients: f.clients, Size: f.size, Seconds: seconds, Writes: sideOf(made.Kind(write), seconds)}
	for i, m := range f.mix {
		kind := made.Kind(i + 1)
		reads.Merge(kind)
		if f.reads > 0 {
			r.Policies = append(r.Policies, benchPolicy{Policy: m.name, benchSide: sideOf(kind, seconds), Served: m.served})
		}
	}
	r.Reads = sideOf(reads, seconds)
	if made.Err != nil {
		r.Error = made.Err.Error()
	}
	return r, err
}

// connect makes the clients.
func (f *benchFlags) connect() (all []benchClient, err error) {
	cfg, err := f.config()
	if err != nil {
		return nil, err
	}
	for i := range f.clients {
		cfg.First = i
		c, err := client.New(cfg)
		if err != nil {
			return all, fmt.Errorf("--%w; %w", err, errUsage)
		}
		all = append(all, benchClient{c, rand.New(rand.NewPCG(f.seed, uint64(i))), make([]byte, f.size)})
	}
	return all, nil
}

// call writes a key, or reads one by some policy. The values of an earlier run may be there, or none.
func (f *benchFlags) call(ctx context.Context, cl benchClient, c *lab.Call) error {
	key := fmt.Sprintf("bench/%d", cl.rng.IntN(f.keys))
	if cl.rng.IntN(100) >= f.reads {
		c.Kind = write
		lab.Value(key, f.seed<<48|uint64(c.Client)<<32|uint64(c.Number), cl.value)
		_, err := cl.Put(ctx, key, cl.value)
		return err
	}
	i := cl.rng.IntN(len(f.mix))
	c.Kind = i + 1
	resp, err := cl.Get(ctx, &kvpb.GetRequest{Key: key, Policy: f.mix[i].policy})
	switch {
	case errors.Is(err, kv.ErrNotFound):
		return nil // an answer, before the key's first write
	case err == nil:
		f.mix[i].note(resp.GetServed().GetBy())
	}
	return err
}

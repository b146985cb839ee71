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
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/weftraft/weft/cmd/kvdemo/internal/client"
	"github.com/weftraft/weft/cmd/kvdemo/internal/kv"
	"github.com/weftraft/weft/cmd/kvdemo/kvpb"
)

// benchFlags say what load bench makes.
type benchFlags struct {
	clientFlags
	clients  int
	size     int
	keys     int
	reads    int
	policies []string
	mix      []*policyMeter // of policies
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
		f.mix = append(f.mix, &policyMeter{name: name, policy: p, meter: newMeter(), served: map[string]int64{}})
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

// meter takes measurements of several clients.
type meter struct {
	mu     sync.Mutex
	hist   *hdrhistogram.Histogram // microseconds
	failed int64
	err    error // the last one
}

// policyMeter takes measurements of the reads by a policy.
type policyMeter struct {
	name   string
	policy *kvpb.ReadPolicy
	*meter
	served map[string]int64
}

// noteRead notes a read, and what it rests on.
func (m *policyMeter) noteRead(d time.Duration, served *kvpb.Served, err error) {
	m.note(d, err)
	m.mu.Lock()
	defer m.mu.Unlock()
	if by := served.GetBy(); err == nil && by != "" {
		m.served[by]++
	}
}

func newMeter() *meter {
	return &meter{hist: hdrhistogram.New(1, time.Hour.Microseconds(), 3)}
}

func (m *meter) note(d time.Duration, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err != nil {
		m.failed++
		m.err = err
		return
	}
	_ = m.hist.RecordValue(min(d, time.Hour).Microseconds()) // in range
}

func (m *meter) side(seconds float64) benchSide {
	quantile := func(q float64) float64 { return float64(m.hist.ValueAtQuantile(q)) / 1e3 }
	return benchSide{
		Calls: m.hist.TotalCount(), Failed: m.failed,
		PerSec: float64(m.hist.TotalCount()) / seconds,
		P50:    quantile(50), P99: quantile(99), Longest: float64(m.hist.Max()) / 1e3,
	}
}

// count returns how many calls have ended well, and how many not.
func (m *meter) count() (done, failed int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.hist.TotalCount(), m.failed
}

// report says every other second how far the calls are, until ctx ends.
func report(ctx context.Context, out io.Writer, start time.Time, writes, reads *meter) {
	ticks := time.NewTicker(2 * time.Second)
	defer ticks.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-ticks.C:
			written, unwritten := writes.count()
			read, unread := reads.count()
			fmt.Fprintf(out, "%6.1fs  %d written, %d read, %d failed\n", now.Sub(start).Seconds(), written, read, unwritten+unread)
		}
	}
}

// run makes the load. It fails only if nothing at all succeeded.
func (f *benchFlags) run(ctx context.Context, progress io.Writer) (benchResult, error) {
	cfg, err := f.config()
	if err != nil {
		return benchResult{}, err
	}
	writes, reads := newMeter(), newMeter()
	start := time.Now()
	reporting, stop := context.WithCancel(ctx)
	reported := make(chan struct{})
	go func() {
		defer close(reported)
		report(reporting, progress, start, writes, reads)
	}()
	defer func() { stop(); <-reported }()
	var g errgroup.Group
	for i := range f.clients {
		cfg.First = i
		c, err := client.New(cfg)
		if err != nil {
			return benchResult{}, errors.Join(fmt.Errorf("--%w; %w", err, errUsage), g.Wait())
		}
		g.Go(func() error {
			f.client(ctx, i, c, start.Add(f.duration), writes, reads)
			return c.Close()
		})
	}
	err = g.Wait()
	seconds := time.Since(start).Seconds()
	r := benchResult{Clients: f.clients, Size: f.size, Seconds: seconds, Writes: writes.side(seconds), Reads: reads.side(seconds)}
	for _, m := range f.mix {
		if f.reads > 0 {
			r.Policies = append(r.Policies, benchPolicy{Policy: m.name, benchSide: m.side(seconds), Served: m.served})
		}
	}
	failure := errors.Join(writes.err, reads.err)
	if failure != nil {
		r.Error = failure.Error()
	}
	if r.Writes.Calls+r.Reads.Calls == 0 {
		return r, fmt.Errorf("no call succeeded in %v: %w", f.duration, failure)
	}
	return r, err
}

// client begins one call after the other until the time is over. The last call is not
// cut off, because its outcome would be unknown.
func (f *benchFlags) client(ctx context.Context, i int, c *client.Client, end time.Time, writes, reads *meter) {
	rng := rand.New(rand.NewPCG(f.seed, uint64(i)))
	value := make([]byte, f.size)
	for b := range value {
		value[b] = byte(rng.Uint32())
	}
	for ctx.Err() == nil && time.Now().Before(end) {
		m := writes
		key := fmt.Sprintf("bench/%d", rng.IntN(f.keys))
		callCtx, cancel := context.WithTimeout(ctx, f.timeout)
		begin := time.Now()
		var err error
		var read *policyMeter
		var resp *kvpb.GetResponse
		if rng.IntN(100) < f.reads {
			m, read = reads, f.mix[rng.IntN(len(f.mix))]
			resp, err = c.Get(callCtx, key, read.policy)
			if errors.Is(err, kv.ErrNotFound) {
				err = nil // an answer, before the key's first write
			}
		} else {
			_, err = c.Put(callCtx, key, value)
		}
		cancel()
		if ctx.Err() != nil { // we were interrupted
			return
		}
		took := time.Since(begin)
		m.note(took, err)
		if read != nil {
			read.noteRead(took, resp.GetServed(), err)
		}
	}
}

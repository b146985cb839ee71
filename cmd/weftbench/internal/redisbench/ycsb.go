// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package redisbench

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
	"github.com/redis/go-redis/v9"
)

// YCSB says how large the workloads of the Yahoo! Cloud Serving Benchmark are. They are
// A (half reads, half updates), B (95% reads), C (reads only) and F (half reads, half
// read-modify-writes, each a GET and a SET), with records that are read and written as
// wholes, drawn by Zipf's law with the exponent 0.99.
type YCSB struct {
	Records int
	Size    int // bytes of a record
	Clients int // spread over the nodes
	Time    time.Duration
	Seed    uint64
}

// workload is the share of reads, and what the other operations are.
type workload struct {
	name   string
	reads  float64
	modify bool
}

var workloads = []workload{{"A", 0.5, false}, {"B", 0.95, false}, {"C", 1, false}, {"F", 0.5, true}}

// zipf draws numbers below n by Zipf's law.
type zipf []float64

func newZipf(n int, exponent float64) zipf {
	z := make(zipf, n)
	sum := 0.0
	for i := range z {
		sum += 1 / math.Pow(float64(i+1), exponent)
		z[i] = sum
	}
	return z
}

func (z zipf) draw(r *rand.Rand) int {
	at, _ := slices.BinarySearch(z, r.Float64()*z[len(z)-1])
	return min(at, len(z)-1)
}

// key names a record. Popular records are spread over all.
func (y YCSB) key(n int) string {
	return fmt.Sprintf("user%d", (uint64(n)*0x9e3779b97f4a7c15)%1_000_000_007)
}

// run loads the records and runs the workloads.
func (y YCSB) run(ctx context.Context, addresses []string, progress func(workload string)) (rows []Row, err error) {
	clients := make([]*redis.Client, y.Clients)
	for i := range clients {
		clients[i] = redis.NewClient(&redis.Options{Addr: addresses[i%len(addresses)], PoolSize: 1, MaxRetries: -1})
	}
	defer func() {
		for _, c := range clients {
			err = errors.Join(err, c.Close())
		}
	}()
	if err := y.load(ctx, clients); err != nil {
		return nil, err
	}
	chosen := newZipf(y.Records, 0.99)
	for _, w := range workloads {
		progress(w.name)
		r, err := y.measure(ctx, clients, w, chosen)
		if err != nil {
			return rows, err
		}
		rows = append(rows, r)
	}
	return rows, nil
}

// load writes each record once.
func (y YCSB) load(ctx context.Context, clients []*redis.Client) error {
	var all sync.WaitGroup
	errs := make([]error, len(clients))
	value := make([]byte, y.Size)
	for i, c := range clients {
		all.Go(func() {
			for n := i; n < y.Records && errs[i] == nil; n += len(clients) {
				errs[i] = c.Set(ctx, y.key(n), value, 0).Err()
			}
		})
	}
	all.Wait()
	return errors.Join(errs...)
}

// measure runs one workload.
func (y YCSB) measure(ctx context.Context, clients []*redis.Client, w workload, chosen zipf) (Row, error) {
	var calls, failed atomic.Int64
	var mu sync.Mutex
	latency := hdrhistogram.New(1, 60_000_000, 3)
	var last error
	var all sync.WaitGroup
	begin := time.Now()
	for i, c := range clients {
		all.Go(func() {
			own := hdrhistogram.New(1, 60_000_000, 3)
			r := rand.New(rand.NewPCG(y.Seed, uint64(i)))
			var bad error
			for time.Since(begin) < y.Time && ctx.Err() == nil {
				at := time.Now()
				if err := y.operate(ctx, c, w, y.key(chosen.draw(r)), r); err != nil {
					failed.Add(1)
					bad = err
					continue
				}
				calls.Add(1)
				_ = own.RecordValue(time.Since(at).Microseconds()) // above a minute it is cut
			}
			mu.Lock()
			defer mu.Unlock()
			latency.Merge(own)
			if bad != nil {
				last = bad
			}
		})
	}
	all.Wait()
	if calls.Load() == 0 {
		return Row{}, fmt.Errorf("no operation of workload %s succeeded: %w", w.name, errors.Join(last, ctx.Err()))
	}
	return Row{
		Tool: "YCSB", Test: w.name, PerSecond: float64(calls.Load()) / time.Since(begin).Seconds(),
		P50: float64(latency.ValueAtQuantile(50)) / 1000, P99: float64(latency.ValueAtQuantile(99)) / 1000, Failed: failed.Load(),
	}, nil
}

// operate does one operation.
func (y YCSB) operate(ctx context.Context, c *redis.Client, w workload, key string, r *rand.Rand) error {
	reads := r.Float64() < w.reads
	if reads || w.modify {
		value, err := c.Get(ctx, key).Bytes()
		if err != nil {
			return err
		}
		if len(value) != y.Size {
			return fmt.Errorf("record %s has %d bytes, want %d", key, len(value), y.Size)
		}
	}
	if reads {
		return nil
	}
	value := make([]byte, y.Size)
	for i := range value {
		value[i] = byte(' ' + r.IntN(95))
	}
	return c.Set(ctx, key, value, 0).Err()
}

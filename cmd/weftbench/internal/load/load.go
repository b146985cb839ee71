// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

// Package load makes load on the nodes of a key-value store and measures how
// they answer.
package load

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/status"

	"github.com/weftraft/weft/cmd/kvdemo/kvpb"
	"github.com/weftraft/weft/cmd/weftbench/internal/cluster"
)

// Plan says what load to make.
type Plan struct {
	Addresses []string
	Clients   int // each with a connection of its own, spread over the nodes from node Seed on
	Size      int // bytes of a value
	Keys      int
	Reads     int // percentage of calls that are linearizable reads
	// Rate, if not 0, makes the load open-loop: so many calls a second in all
	// are due, evenly, and latency counts from when a call was due. 0 is
	// closed-loop: each client asks again when it has its answer.
	Rate float64
	// Calls ends the load after so many calls; 0 means Duration ends it.
	Calls    int
	Duration time.Duration
	Timeout  time.Duration // of one call
	Seed     uint64
	// Acks keeps the time of each answer.
	Acks bool
}

// Result is what was measured.
type Result struct {
	Calls, Failed int64
	Start         time.Time
	Elapsed       time.Duration
	Latency       *hdrhistogram.Histogram // microseconds
	Err           error                   // the last failure
	Acks          []time.Time
}

// NewHistogram returns one that histograms of Results can be added to.
func NewHistogram() *hdrhistogram.Histogram {
	return hdrhistogram.New(1, time.Hour.Microseconds(), 3)
}

// KeysFor returns a number of keys with which the values of a size fill some
// tens of megabytes.
func KeysFor(size int) int { return min(1000, max(16, (64<<20)/max(size, 1))) }

// run is a load under way.
type run struct {
	plan  Plan
	start time.Time

	mu     sync.Mutex
	result Result
	begun  int
}

// Run makes the load and returns when it is over.
func Run(ctx context.Context, plan Plan) (Result, error) {
	r := &run{plan: plan, result: Result{Latency: NewHistogram()}}
	conns := make([]*grpc.ClientConn, plan.Clients)
	defer func() {
		for _, c := range conns {
			if c != nil {
				_ = c.Close() // nothing is under way
			}
		}
	}()
	for i := range conns {
		var err error
		if conns[i], err = cluster.Dial(plan.Addresses[(i+int(plan.Seed%uint64(len(plan.Addresses))))%len(plan.Addresses)]); err != nil {
			return Result{}, err
		}
		conns[i].Connect()
	}
	connectCtx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	for _, c := range conns { // those that can be, in time
		for state := c.GetState(); state != connectivity.Ready && c.WaitForStateChange(connectCtx, state); {
			state = c.GetState()
		}
	}
	r.start = time.Now()
	var wg sync.WaitGroup
	for i := range conns {
		wg.Go(func() { r.client(ctx, i, conns) })
	}
	wg.Wait()
	r.result.Start, r.result.Elapsed = r.start, time.Since(r.start)
	if r.result.Calls == 0 {
		return r.result, fmt.Errorf("no call of %d was answered: %w", r.result.Failed, errors.Join(r.result.Err, ctx.Err()))
	}
	return r.result, nil
}

// due waits for the next call, and returns when it is due; false ends the load.
func (r *run) due(ctx context.Context) (time.Time, bool) {
	r.mu.Lock()
	n := r.begun
	r.begun++
	r.mu.Unlock()
	if r.plan.Calls > 0 && n >= r.plan.Calls || ctx.Err() != nil {
		return time.Time{}, false
	}
	at := time.Now()
	if r.plan.Rate > 0 {
		at = r.start.Add(time.Duration(float64(n) / r.plan.Rate * float64(time.Second)))
	}
	if r.plan.Calls == 0 && at.After(r.start.Add(r.plan.Duration)) {
		return at, false
	}
	if wait := time.Until(at); wait > 0 {
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return at, false
		}
	}
	return at, true
}

// client makes one call after the other. After a failure it goes on to the next
// node.
func (r *run) client(ctx context.Context, i int, conns []*grpc.ClientConn) {
	rng := rand.New(rand.NewPCG(r.plan.Seed, uint64(i)))
	value := make([]byte, r.plan.Size)
	for at := 0; at < len(value); at += 8 { // random: it does not compress
		var b [8]byte
		binary.LittleEndian.PutUint64(b[:], rng.Uint64())
		copy(value[at:], b[:])
	}
	for {
		begin, more := r.due(ctx)
		if !more {
			return
		}
		key := fmt.Sprintf("bench/%d", rng.IntN(r.plan.Keys))
		copy(value, key) // values differ
		err := r.call(ctx, kvpb.NewKVClient(conns[i%len(conns)]), rng, key, value)
		if ctx.Err() != nil {
			return
		}
		r.note(begin, err)
		if err != nil {
			i++
			time.Sleep(10 * time.Millisecond)
		}
	}
}

func (r *run) call(ctx context.Context, kv kvpb.KVClient, rng *rand.Rand, key string, value []byte) error {
	ctx, cancel := context.WithTimeout(ctx, r.plan.Timeout)
	defer cancel()
	if rng.IntN(100) < r.plan.Reads {
		_, err := kv.Get(ctx, &kvpb.GetRequest{Key: key})
		if status.Code(err) == codes.NotFound {
			return nil // an answer, before the key's first write
		}
		return err
	}
	_, err := kv.Put(ctx, &kvpb.PutRequest{Key: key, Value: value})
	return err
}

func (r *run) note(begin time.Time, err error) {
	now := time.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	if err != nil {
		r.result.Failed++
		r.result.Err = err
		return
	}
	r.result.Calls++
	_ = r.result.Latency.RecordValue(min(now.Sub(begin), time.Hour).Microseconds()) // in range
	if r.plan.Acks {
		r.result.Acks = append(r.result.Acks, now)
	}
}

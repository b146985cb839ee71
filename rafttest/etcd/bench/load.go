// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// callTimeout is above etcd's own limit on a request, so that clients get etcd's answer.
const callTimeout = 20 * time.Second

// load is the record of the clients' puts.
type load struct {
	prefix string // of all keys
	size   int
	seed   uint64

	elapsed time.Duration
	latency []time.Duration // of answered calls
	failed  int
	err     error // error of a failed call

	mu   sync.Mutex
	puts int          // begun
	acks map[put]bool // begun; true: acknowledged
}

// put is a call: the client's number, and the number of earlier calls of the client.
type put struct{ client, number int }

func (p put) key(prefix string) string {
	return fmt.Sprintf("%s/%03d/%06d", prefix, p.client, p.number)
}

// value makes the value of a put: bytes that differ at every place from the bytes of any other put.
func (l *load) value(p put, into []byte) []byte {
	rng := rand.New(rand.NewPCG(l.seed, uint64(p.client)<<32|uint64(p.number)))
	into = into[:0]
	for len(into) < l.size {
		into = binary.LittleEndian.AppendUint64(into, rng.Uint64())
	}
	return into[:l.size]
}

// run makes clients, each with a connection of its own, put values at a member for a time.
func (l *load) run(ctx context.Context, at *member, clients int, d time.Duration) error {
	l.acks = map[put]bool{}
	conns := make([]*clientv3.Client, clients)
	defer func() {
		for _, c := range conns {
			if c != nil {
				_ = c.Close() // nothing is under way
			}
		}
	}()
	for i := range conns {
		var err error
		if conns[i], err = dial(at.url); err != nil {
			return err
		}
		if _, err := conns[i].Get(ctx, l.prefix); err != nil { // connects
			return err
		}
	}
	begin := time.Now()
	var group sync.WaitGroup
	for i, api := range conns {
		group.Go(func() { l.client(ctx, api, i, begin.Add(d)) })
	}
	group.Wait()
	l.elapsed = time.Since(begin)
	return ctx.Err()
}

func (l *load) client(ctx context.Context, api *clientv3.Client, client int, end time.Time) {
	var buf []byte
	for number := 0; ctx.Err() == nil && l.more(number, end); number++ {
		p := put{client, number}
		buf = l.value(p, buf)
		callCtx, cancel := context.WithTimeout(ctx, callTimeout)
		begin := time.Now()
		_, err := api.Put(callCtx, p.key(l.prefix), string(buf))
		took := time.Since(begin)
		cancel()
		l.note(p, took, err)
	}
}

// more reports whether a client that has made this number of calls makes another call.
func (l *load) more(made int, end time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if made >= least && (time.Now().After(end) || l.puts*l.size >= maxBytes) {
		return false
	}
	l.puts++
	return true
}

func (l *load) note(p put, took time.Duration, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.acks[p] = err == nil
	if err != nil {
		l.failed++
		l.err = err
		return
	}
	l.latency = append(l.latency, took)
}

// quantile returns the latency that this percentage of the calls does not exceed.
func (l *load) quantile(percent int) time.Duration {
	if len(l.latency) == 0 {
		return 0
	}
	slices.Sort(l.latency)
	return l.latency[max((len(l.latency)*percent+99)/100, 1)-1]
}

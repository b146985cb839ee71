// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package killsbench

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/weftraft/weft/cmd/kvdemo/kvpb"
	"github.com/weftraft/weft/cmd/weftbench/internal/cluster"
)

const (
	// pace is the time between two writes at a node.
	pace = 10 * time.Millisecond
	// patience bounds a call, and what a write waits for.
	patience = 30 * time.Second
)

// writes are the calls of clients at some nodes.
type writes struct {
	cancel context.CancelFunc
	group  sync.WaitGroup

	mu   sync.Mutex
	acks []ack
	err  error // the last failure
}

// ack is a write that was acknowledged.
type ack struct{ begun, done time.Time }

// startWrites begins to write at every node but one, whose clients would have to find
// another node first.
func startWrites(ctx context.Context, c *cluster.Cluster, but *cluster.Node) *writes {
	ctx, cancel := context.WithCancel(ctx)
	w := &writes{cancel: cancel}
	for _, n := range c.Nodes {
		if n != but {
			w.group.Go(func() { w.at(ctx, n) })
		}
	}
	return w
}

func (w *writes) at(ctx context.Context, n *cluster.Node) {
	tick := time.NewTicker(pace)
	defer tick.Stop()
	for i := 0; ; i++ {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		key := fmt.Sprintf("kills/%d/%d", n.ID, i%100)
		w.group.Go(func() { w.one(ctx, n.KV(), key, strconv.Itoa(i)) })
	}
}

func (w *writes) one(ctx context.Context, kv kvpb.KVClient, key, value string) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	begun := time.Now()
	_, err := kv.Put(ctx, &kvpb.PutRequest{Key: key, Value: []byte(value)})
	w.note(begun, err)
}

// notThere returns nil for the answer that there is no value.
func notThere(err error) error {
	if status.Code(err) == codes.NotFound {
		return nil
	}
	return err
}

func (w *writes) note(begun time.Time, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err != nil {
		w.err = err
		return
	}
	w.acks = append(w.acks, ack{begun, time.Now()})
}

// stop ends the writes.
func (w *writes) stop() {
	w.cancel()
	w.group.Wait()
}

// list returns what was acknowledged so far.
func (w *writes) list() []ack {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]ack(nil), w.acks...)
}

// calm waits for a time in which writes are acknowledged.
func (w *writes) calm(ctx context.Context, d time.Duration) error {
	begun := time.Now()
	if _, err := w.next(ctx, begun); err != nil {
		return err
	}
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(d):
	}
	_, err := w.next(ctx, begun.Add(d))
	return err
}

// next waits for the acknowledgement of a write that began after an instant, and returns
// how long after the instant it came.
func (w *writes) next(ctx context.Context, at time.Time) (time.Duration, error) {
	seen := 0
	for end := time.Now().Add(patience); time.Now().Before(end); {
		all := w.list()
		for ; seen < len(all); seen++ {
			if a := all[seen]; a.begun.After(at) {
				return a.done.Sub(at), nil
			}
		}
		select {
		case <-ctx.Done():
			return 0, context.Cause(ctx)
		case <-time.After(time.Millisecond):
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return 0, fmt.Errorf("no write that began after the failure was acknowledged within %v; the last error: %w", patience, w.err)
}

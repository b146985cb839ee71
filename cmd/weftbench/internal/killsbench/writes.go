// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package killsbench

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/weftraft/weft/cmd/internal/cluster"
	"github.com/weftraft/weft/cmd/kvdemo/kvpb"
	"github.com/weftraft/weft/internal/lab"
)

const (
	// pace is the time between two writes at a node, readPace between two reads.
	pace     = 10 * time.Millisecond
	readPace = 5 * time.Millisecond
	// patience bounds a call, and what a write waits for.
	patience = 30 * time.Second
)

// calls are those of clients until stop.
type calls struct {
	lab.Acks
	stop func()
}

func startCalls(ctx context.Context, l lab.Load) *calls {
	c := &calls{}
	l.Note = c.Note
	c.stop = lab.Background(ctx, func(ctx context.Context) {
		_, _ = l.Run(ctx) // a caller that waits for an answer gets the last failure
	})
	return c
}

// startWrites begins to write at some nodes, a new call at each at every pace.
func startWrites(ctx context.Context, nodes ...*cluster.Node) *calls {
	return startCalls(ctx, lab.Load{
		Rate: float64(len(nodes)) / pace.Seconds(), Timeout: patience,
		Do: func(ctx context.Context, c *lab.Call) error {
			n := nodes[c.All%len(nodes)]
			_, err := n.KV().Put(ctx, &kvpb.PutRequest{Key: fmt.Sprintf("kills/%d/%d", n.ID, c.All%100), Value: []byte(strconv.Itoa(c.All))})
			return err
		},
	})
}

// startReads starts reads at some nodes, one after the other, of keys that nobody writes.
func startReads(ctx context.Context, nodes ...*cluster.Node) *calls {
	return startCalls(ctx, lab.Load{
		Clients: len(nodes), Rest: readPace, Retreat: readPace,
		Do: func(ctx context.Context, c *lab.Call) error {
			_, err := nodes[c.Client].KV().Get(ctx, &kvpb.GetRequest{Key: fmt.Sprintf("still/%d", c.Number%100)})
			if status.Code(err) != codes.NotFound {
				return cmp.Or(err, errors.New("a key that nobody writes has a value"))
			}
			return nil
		},
	})
}

// but returns all nodes except one: clients of that node would have to find another node first.
func but(nodes []*cluster.Node, one *cluster.Node) []*cluster.Node {
	return slices.DeleteFunc(slices.Clone(nodes), func(n *cluster.Node) bool { return n == one })
}

// calm waits for a time in which writes are acknowledged.
func (w *calls) calm(ctx context.Context, d time.Duration) error {
	begun := time.Now()
	if _, err := w.next(ctx, begun); err != nil {
		return err
	}
	if err := lab.Sleep(ctx, d); err != nil {
		return err
	}
	_, err := w.next(ctx, begun.Add(d))
	return err
}

// next waits for the acknowledgement of a write that began after an instant, and returns
// how long after the instant it came.
func (w *calls) next(ctx context.Context, at time.Time) (time.Duration, error) {
	seen := 0
	for end := time.Now().Add(patience); time.Now().Before(end); {
		all := w.List()
		for ; seen < len(all); seen++ {
			if a := all[seen]; a.Begun.After(at) {
				return a.Done.Sub(at), nil
			}
		}
		if err := lab.Sleep(ctx, time.Millisecond); err != nil {
			return 0, err
		}
	}
	return 0, fmt.Errorf("no write that began after the failure was acknowledged within %v; the last error: %w", patience, w.Err())
}

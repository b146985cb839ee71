// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package killsbench

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/weftraft/weft/cmd/internal/cluster"
	"github.com/weftraft/weft/cmd/kvdemo/kvpb"
	"github.com/weftraft/weft/internal/lab"
)

// Reads are the reads of one policy at one node that survives, which began from the kill of a
// leader until readsFor later.
type Reads struct {
	Side   string          `json:"side"`
	Policy string          `json:"policy"`
	Begun  int             `json:"begun"`
	Took   []time.Duration `json:"took_ns"` // of those that were answered within readsFor
}

const (
	// readsFor is for how long after a kill reads begin, and how long each may take.
	readsFor = 2 * time.Second
	// deadPace is the time between two reads of a policy at a node.
	deadPace = 20 * time.Millisecond
)

// policies are the linearizable ways to read.
var policies = []struct {
	name string
	kind kvpb.ReadPolicy_Kind
}{{"responder", kvpb.ReadPolicy_RESPONDER}, {"leader", kvpb.ReadPolicy_LEADER}, {"quorum", kvpb.ReadPolicy_QUORUM}}

// readsAfterKill kills the leader under writes, reads at the other nodes, and starts the node
// again.
func (s *side) readsAfterKill(ctx context.Context) ([]Reads, error) {
	leader, err := s.ready(ctx)
	if err != nil {
		return nil, err
	}
	others := but(s.c.Nodes, leader)
	w := startWrites(ctx, others...)
	defer w.stop()
	if err := w.calm(ctx, warm); err != nil {
		return nil, err
	}
	reads := make([]Reads, 0, len(others)*len(policies))
	for range others {
		for _, p := range policies {
			reads = append(reads, Reads{Side: s.name, Policy: p.name})
		}
	}
	if err := leader.Kill(); err != nil {
		return nil, err
	}
	end := time.Now().Add(readsFor)
	var readers sync.WaitGroup
	for i := range reads {
		n, p := others[i/len(policies)], policies[i%len(policies)]
		readers.Go(func() { reads[i].read(ctx, n, p.kind, end) })
	}
	readers.Wait()
	return reads, errors.Join(ctx.Err(), leader.Start())
}

// read begins a read at every pace, whatever became of the reads before, and waits for all.
func (r *Reads) read(ctx context.Context, n *cluster.Node, kind kvpb.ReadPolicy_Kind, end time.Time) {
	var (
		mu    sync.Mutex
		calls sync.WaitGroup
	)
	every := time.NewTicker(deadPace)
	defer every.Stop()
	for begun := time.Now(); begun.Before(end) && ctx.Err() == nil; begun = <-every.C {
		key := fmt.Sprintf("still/%d", r.Begun%100)
		r.Begun++
		calls.Go(func() {
			limited, cancel := context.WithTimeout(ctx, readsFor)
			defer cancel()
			_, err := n.KV().Get(limited, &kvpb.GetRequest{Key: key, Policy: &kvpb.ReadPolicy{Kind: kind}})
			if took := time.Since(begun); err == nil || status.Code(err) == codes.NotFound {
				mu.Lock()
				defer mu.Unlock()
				r.Took = append(r.Took, took)
			}
		})
	}
	calls.Wait()
}

// readRow is a row of the table.
type readRow struct {
	begun int
	worst float64
	took  []time.Duration
}

// quantile returns a quantile of the times, in milliseconds.
func (x *readRow) quantile(q float64) string {
	if n := float64(x.begun) * q; n >= float64(len(x.took)) {
		return "none"
	}
	return lab.Millis(lab.Quantile(x.took, q*float64(x.begun)/float64(len(x.took))))
}

func readsTable(all []Reads) lab.Table {
	t := lab.Table{
		Title: fmt.Sprintf("Linearizable reads at each node that survives, begun from kill -9 of the leader until %v later, of keys that nobody writes:", readsFor),
		Rows:  [][]string{{"side", "policy", "reads", "within 10 ms", "100 ms", "1 s", "answered", "worst node", "median", "99%"}},
		Notes: []string{fmt.Sprintf("*Answered*: within %v. *Worst node*: the least share at one node after one kill. A read without an answer counts as longer than all others.", readsFor)},
	}
	var order [][2]string
	rows := map[[2]string]*readRow{}
	for _, r := range all {
		key := [2]string{r.Side, r.Policy}
		x := rows[key]
		if x == nil {
			x = &readRow{worst: 1}
			rows[key], order = x, append(order, key)
		}
		x.begun += r.Begun
		x.took = append(x.took, r.Took...)
		x.worst = min(x.worst, float64(len(r.Took))/float64(max(r.Begun, 1)))
	}
	for _, key := range order {
		x := rows[key]
		share := func(d time.Duration) string {
			n := 0
			for _, took := range x.took {
				if took <= d {
					n++
				}
			}
			return percent(float64(n) / float64(max(x.begun, 1)))
		}
		t.Rows = append(t.Rows, []string{key[0], key[1], strconv.Itoa(x.begun), share(10 * time.Millisecond), share(100 * time.Millisecond), share(time.Second),
			percent(float64(len(x.took)) / float64(max(x.begun, 1))), percent(x.worst), x.quantile(0.5), x.quantile(0.99)})
	}
	return t
}

func percent(share float64) string { return fmt.Sprintf("%.2f%%", 100*share) }

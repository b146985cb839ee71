// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package torture

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/weftraft/weft/cmd/internal/cluster"
	"github.com/weftraft/weft/cmd/kvdemo/kvpb"
	"github.com/weftraft/weft/internal/lab"
)

// leaseTime is how long a lease of kvdemo lasts at most, as nodes count it.
const leaseTime = time.Second

// name names responders at the first node that takes the call.
func (r *run) name(ctx context.Context, nodes []*cluster.Node) (err error) {
	req := &kvpb.NameRespondersRequest{}
	for _, n := range nodes {
		req.Nodes = append(req.Nodes, uint64(n.ID))
	}
	for _, n := range r.cluster.Nodes {
		ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
		_, e := n.Admin().NameResponders(ctx, req)
		cancel()
		if e == nil {
			return nil
		}
		err = errors.Join(err, fmt.Errorf("name responders at node %d: %w", n.ID, e))
	}
	return err
}

// pauseLoop pauses processes, some for longer than a lease lasts and some for less. A paused
// process answers the reads that have arrived meanwhile after the pause. One time in three,
// other responders are named before the pause.
func (r *run) pauseLoop(ctx context.Context, i, of int, victims []*cluster.Node) error {
	done := "stopped"
	if r.rng.IntN(3) == 0 {
		named := r.cluster.Nodes[r.rng.IntN(len(r.cluster.Nodes)):]
		if err := r.name(ctx, named); err != nil {
			r.say("%v", err) // in an election, say
		}
	} else if err := r.name(ctx, r.cluster.Nodes); err != nil {
		r.say("%v", err)
	}
	length := time.Duration(r.rng.Int64N(int64(3 * leaseTime)))
	for _, v := range victims {
		if err := v.Pause(); err != nil {
			return err
		}
		done += fmt.Sprintf(" %d", v.ID)
		if length > leaseTime {
			r.sum.Pauses++
		}
	}
	_ = lab.Sleep(ctx, length) // paused processes go on all the same
	for _, v := range victims {
		if err := v.Resume(); err != nil {
			return err
		}
	}
	return r.goOn(ctx, i, of, fmt.Sprintf("%s for %v", done, length.Round(time.Millisecond)))
}

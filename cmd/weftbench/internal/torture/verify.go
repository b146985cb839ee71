// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package torture

import (
	"bytes"
	"context"
	"fmt"

	"github.com/weftraft/weft/cmd/internal/cluster"
)

// verify compares the replicas' keys and values with each other, and with the
// outcomes that the writers have seen.
func (r *run) verify(ctx context.Context) error {
	r.say("the load has ended; waiting for all replicas, and comparing")
	if _, err := r.cluster.WaitLeader(ctx); err != nil {
		return err
	}
	err := r.cluster.Wait(ctx, "all replicas to have applied the same", func(all []*statusResponse) bool {
		for _, s := range all {
			if s == nil || s.GetApplied() != all[0].GetApplied() || s.GetApplied() != s.GetCommit() {
				return false
			}
		}
		return true
	})
	if err != nil {
		return err
	}
	// Not before: who is loading a snapshot of large values answers no read in time.
	if r.sum.HotCalls, err = r.hot.check(ctx, r.clients()); err != nil {
		return err
	}
	r.sum.HotKeys = len(r.hot.history)
	if r.leases {
		if r.sum.Served = r.hot.served; r.sum.Served["roster"] == 0 {
			return fmt.Errorf("no read was served by roster leases: %v", r.sum.Served)
		}
	}
	var first map[string][]byte
	for i, n := range r.cluster.Nodes {
		held, err := n.Digests(ctx, nil)
		if err != nil {
			return err
		}
		if i == 0 {
			first = held
		} else if err := cluster.Compare(first, held); err != nil {
			return fmt.Errorf("node %d is not as node %d: %w", n.ID, r.cluster.Nodes[0].ID, err)
		}
	}
	r.sum.Keys = len(first)
	return r.compare(first)
}

// compare compares the digests of all replicas with the outcomes that the writers have seen.
func (r *run) compare(held map[string][]byte) error {
	var d cluster.Differences
	known := 0
	for _, w := range r.writers {
		for key, k := range w.wants {
			sum, there := held[key]
			mayBeThere, mayBeAbsent := k.allows()
			switch {
			case there && !bytes.Equal(sum, k.sum[:]):
				d.Add("%s has a value that was never written to it", key)
			case there && !mayBeThere:
				d.Add("%s is there: its write was refused, or its removal acknowledged", key)
			case !there && !mayBeAbsent:
				d.Add("%s is lost: its write was acknowledged, its removal not", key)
			}
			if there {
				known++
				if k.put == unknown {
					r.sum.UnknownThere++
				}
			}
		}
	}
	for key := range held {
		if _, ok := r.hot.history[key]; ok {
			known++
		}
	}
	if known != len(held) {
		d.Add("%d keys are there, of which nobody wrote %d", len(held), len(held)-known)
	}
	t := r.tally()
	r.sum.Acknowledged, r.sum.Refused, r.sum.Unknown = t.acknowledged, t.refused, t.unknown
	return d.Err()
}

// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package torture

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/weftraft/weft/cmd/kvdemo/kvpb"
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
		held, err := list(ctx, n.KV())
		if err != nil {
			return fmt.Errorf("list node %d: %w", n.ID, err)
		}
		if i == 0 {
			first = held
		} else if err := same(first, held); err != nil {
			return fmt.Errorf("nodes %d and %d differ: %w", r.cluster.Nodes[0].ID, n.ID, err)
		}
	}
	r.sum.Keys = len(first)
	return r.compare(first)
}

// list returns the digests of all values in the applied state of one node.
func list(ctx context.Context, node kvpb.KVClient) (map[string][]byte, error) {
	held := map[string][]byte{}
	for req := (&kvpb.ListRequest{Local: true, Digests: true}); ; {
		pageCtx, cancel := context.WithTimeout(ctx, time.Minute)
		page, err := node.List(pageCtx, req)
		cancel()
		if err != nil {
			return nil, err
		}
		for _, item := range page.GetItems() {
			held[item.GetKey()] = item.GetSha256()
		}
		if req.After = page.GetNext(); req.After == "" {
			return held, nil
		}
	}
}

// same returns nil if two replicas hold the same.
func same(a, b map[string][]byte) error {
	var d differences
	for key, sum := range a {
		if other, ok := b[key]; !ok {
			d.add("%s is at the first only", key)
		} else if !bytes.Equal(sum, other) {
			d.add("%s has other values", key)
		}
	}
	for key := range b {
		if _, ok := a[key]; !ok {
			d.add("%s is at the second only", key)
		}
	}
	return d.err()
}

// compare compares the digests of all replicas with the outcomes that the writers have seen.
func (r *run) compare(held map[string][]byte) error {
	var d differences
	known := 0
	for _, w := range r.writers {
		for key, k := range w.wants {
			sum, there := held[key]
			mayBeThere, mayBeAbsent := k.allows()
			switch {
			case there && !bytes.Equal(sum, k.sum[:]):
				d.add("%s has a value that was never written to it", key)
			case there && !mayBeThere:
				d.add("%s is there: its write was refused, or its removal acknowledged", key)
			case !there && !mayBeAbsent:
				d.add("%s is lost: its write was acknowledged, its removal not", key)
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
		d.add("%d keys are there, of which nobody wrote %d", len(held), len(held)-known)
	}
	t := r.tally()
	r.sum.Acknowledged, r.sum.Refused, r.sum.Unknown = t.acknowledged, t.refused, t.unknown
	return d.err()
}

// differences collects what is wrong.
type differences struct {
	found []string
	more  int
}

func (d *differences) add(format string, args ...any) {
	if len(d.found) < 10 {
		d.found = append(d.found, fmt.Sprintf(format, args...))
	} else {
		d.more++
	}
}

func (d *differences) err() error {
	if len(d.found) == 0 {
		return nil
	}
	return errors.New(strings.Join(d.found, "; ") + fmt.Sprintf("; and %d more", d.more))
}

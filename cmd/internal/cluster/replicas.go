// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/weftraft/weft/cmd/kvdemo/kvpb"
)

// Digests returns the digest of each value in the node's own applied state, which the node makes from its stored
// bytes. seen, unless nil, hears how many keys each page has.
func (n *Node) Digests(ctx context.Context, seen func(keys int)) (map[string][]byte, error) {
	held := map[string][]byte{}
	for req := (&kvpb.ListRequest{Local: true, Digests: true}); ; {
		call, cancel := context.WithTimeout(ctx, time.Minute)
		page, err := n.KV().List(call, req)
		cancel()
		if err != nil {
			return nil, fmt.Errorf("list node %d: %w", n.ID, err)
		}
		for _, item := range page.GetItems() {
			held[item.GetKey()] = item.GetSha256()
		}
		if seen != nil {
			seen(len(page.GetItems()))
		}
		if req.After = page.GetNext(); req.After == "" {
			return held, nil
		}
	}
}

// Compare returns an error that names keys at which the digests of a replica are not as wanted, or nil.
func Compare(want, held map[string][]byte) error {
	var d Differences
	for key, sum := range want {
		if other, ok := held[key]; !ok {
			d.Add("%s is missing", key)
		} else if !bytes.Equal(sum, other) {
			d.Add("%s has another value", key)
		}
	}
	for key := range held {
		if _, ok := want[key]; !ok {
			d.Add("%s should not be there", key)
		}
	}
	return d.Err()
}

// Differences collects what is wrong with a replica.
type Differences struct {
	found []string
	more  int
}

// mostNamed is how many differences are named.
const mostNamed = 10

// Add adds a difference.
func (d *Differences) Add(format string, args ...any) {
	if len(d.found) < mostNamed {
		d.found = append(d.found, fmt.Sprintf(format, args...))
	} else {
		d.more++
	}
}

// Err returns an error with the first differences, or nil without any.
func (d *Differences) Err() error {
	if len(d.found) == 0 {
		return nil
	}
	return errors.New(strings.Join(d.found, "; ") + fmt.Sprintf("; and %d more", d.more))
}

// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package weft

import (
	"context"
	"time"

	"github.com/weftraft/weft/internal/invalid"
	"github.com/weftraft/weft/leases"
	"github.com/weftraft/weft/rawnode"
)

// ReadOption says how fresh the state must be that a read sees, or which keys the read looks
// at. Without options a read is linearizable.
type ReadOption func(*rawnode.ReadOptions)

func policy(p rawnode.ReadPolicy) ReadOption {
	return func(o *rawnode.ReadOptions) { o.Policy = p }
}

// AtResponder is [rawnode.AtResponder]: linearizable, and answered here without a message
// if this node has a lease.
func AtResponder() ReadOption { return policy(rawnode.AtResponder{}) }

// LeaderLease is [rawnode.LeaderLease]: linearizable, and the leader vouches.
func LeaderLease() ReadOption { return policy(rawnode.LeaderLease{}) }

// Quorum is [rawnode.QuorumRead]: linearizable, without the leader.
func Quorum() ReadOption { return policy(rawnode.QuorumRead{}) }

// Stale is [rawnode.BoundedStaleness]: everything that was acknowledged up to age before the
// read.
func Stale(age time.Duration) ReadOption { return policy(rawnode.BoundedStaleness{Max: age}) }

// Local is [rawnode.Local]: what this node has applied, however old.
func Local() ReadOption { return policy(rawnode.Local{}) }

// Policy is any policy of package rawnode.
func Policy(p rawnode.ReadPolicy) ReadOption { return policy(p) }

// Keys says which keys a read looks at: see [rawnode.ReadOptions].
func Keys(spans ...leases.Span) ReadOption {
	return func(o *rawnode.ReadOptions) { o.Spans = append(o.Spans, spans...) }
}

// Read returns when the state machine of this node has applied everything that was
// acknowledged, anywhere, before the call: a read of the state machine that follows is
// linearizable. Options ask for less, or for another way to the same.
//
// An error is a [CallError] that wraps [ErrRefused]. A node that was removed gives [Local]
// reads alone, and refuses all others with [ErrRemoved].
func (g *Group) Read(ctx context.Context, options ...ReadOption) (ReadResult, error) {
	if err := g.usable(ctx); err != nil {
		return ReadResult{}, refused("read", err)
	}
	var o rawnode.ReadOptions
	for i, option := range options {
		if option == nil {
			return ReadResult{}, refused("read", invalid.Errorf("option %d of %d is nil", i+1, len(options)))
		}
		option(&o)
	}
	if _, local := o.Policy.(rawnode.Local); !local {
		if err := g.member(ctx); err != nil {
			return ReadResult{}, refused("read", err)
		}
	}
	return g.calls.ReadWith(ctx, o)
}

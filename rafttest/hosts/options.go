// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package hosts

import (
	"io"

	"github.com/weftraft/weft/rafttest/internal/seeds"
)

// kind is a kind of host.
type kind byte

// The kinds of hosts.
const (
	etcdLike kind = iota
	cockroachLike
)

// String returns the kind's name.
func (k kind) String() string { return [...]string{"etcd-like", "cockroach-like"}[k] }

// options shapes a run.
type options struct {
	Kind    kind
	Library library
	// Rolling moves the group, while it runs, to these libraries in order, each
	// a member at a time.
	Rolling []library
	// Rush has several clients propose changes of the members at once.
	Rush bool
	// Bug is broken on purpose.
	Bug bug
	// Trace receives what happens, line by line; nil for nothing.
	Trace io.Writer
}

// result is the outcome of a run.
type result struct {
	seeds.Outcome
	Reached reach
	Leases  leaseReach
}

// Counts implements seeds.Result.
func (r result) Counts() any { return r.Reached }

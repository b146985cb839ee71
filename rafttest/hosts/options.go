// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package hosts

import (
	"fmt"
	"io"
)

// kind is a kind of host.
type kind byte

// The kinds of hosts.
const (
	etcdLike kind = iota
	cockroachLike
)

// String returns the kind's name.
func (k kind) String() string {
	switch k {
	case etcdLike:
		return "etcd-like"
	case cockroachLike:
		return "cockroach-like"
	}
	return fmt.Sprintf("Kind(%d)", byte(k))
}

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
	Seed    uint64
	Err     error
	Story   string // the last lines before a failure
	Reached reach
	Leases  leaseReach
}

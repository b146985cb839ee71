// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/weftraft/weft/cmd/kvdemo/kvpb"
	"github.com/weftraft/weft/leases"
	"github.com/weftraft/weft/rawnode"
)

// maxAge bounds the age of a state that a client may ask for.
const maxAge = 24 * time.Hour

const (
	// maxOpen bounds the values that are being sent: what each has of the state stays on disk, whatever is written.
	maxOpen = 1024
	// slowReader is how long a client may take for a chunk of a value.
	slowReader = 30 * time.Second
)

// sendSoon sends a chunk, or gives the client up. Behind an error the stream may still have the chunk for a moment.
func sendSoon(stream grpc.ServerStreamingServer[kvpb.ReadChunk], c *kvpb.ReadChunk) error {
	sent := make(chan error, 1)
	go func() { sent <- stream.Send(c) }()
	late := time.NewTimer(slowReader)
	defer late.Stop()
	select {
	case err := <-sent:
		return err
	case <-late.C:
		return status.Errorf(codes.DeadlineExceeded, "the client has not taken a chunk of the value for %v: read it again, from the offset on", slowReader)
	}
}

// readRequest is what a client says of a read.
type readRequest struct {
	local  bool // by an older client: STALE
	policy *kvpb.ReadPolicy
	span   leases.Span // that it looks at; zero: every key
}

// kind returns the policy's kind.
func (q readRequest) kind() kvpb.ReadPolicy_Kind {
	if q.local {
		return kvpb.ReadPolicy_STALE
	}
	return q.policy.GetKind()
}

// options returns what the host is to do before the read, or false if that is nothing.
func (q readRequest) options() (o rawnode.ReadOptions, ask bool, err error) {
	kind, entries, age := q.kind(), q.policy.GetEntries(), q.policy.GetAgeUs()
	if age > uint64(maxAge.Microseconds()) {
		return o, false, status.Errorf(codes.InvalidArgument, "policy: age of %d microseconds, want at most %d", age, maxAge.Microseconds())
	}
	if entries+age > 0 && kind != kvpb.ReadPolicy_STALE {
		return o, false, status.Errorf(codes.InvalidArgument, "policy: %v with bounds, want %v, or no bounds", kind, kvpb.ReadPolicy_STALE)
	}
	switch kind {
	case kvpb.ReadPolicy_DEFAULT:
	case kvpb.ReadPolicy_RESPONDER:
		o.Policy = rawnode.AtResponder{}
	case kvpb.ReadPolicy_LEADER:
		o.Policy = rawnode.LeaderLease{}
	case kvpb.ReadPolicy_QUORUM:
		o.Policy = rawnode.QuorumRead{}
	case kvpb.ReadPolicy_STALE:
		o.Policy = rawnode.BoundedStaleness{Max: time.Duration(age) * time.Microsecond, MaxEntries: entries}
		return o, entries+age > 0, nil
	default:
		return o, false, status.Errorf(codes.InvalidArgument, "policy: %d, want 0 to %d", kind, len(kvpb.ReadPolicy_Kind_name)-1)
	}
	if q.span != (leases.Span{}) && kind != kvpb.ReadPolicy_LEADER { // one question to the leader is for many keys
		o.Spans = []leases.Span{q.span}
	}
	return o, true, nil
}

// barrier returns when the groups' states are what the read is to see, and says what it
// rests on. Of several groups that is the one with the highest number in rawnode.ServedBy.
func (s *service) barrier(ctx context.Context, q readRequest, groups ...replicated) (*kvpb.Served, error) {
	o, ask, err := q.options()
	if err != nil {
		return nil, err
	}
	results := make([]rawnode.ReadResult, len(groups))
	if !ask {
		results[0] = rawnode.ReadResult{By: rawnode.ServedStale, Age: -1}
		return s.served(q, results), nil
	}
	ctx, cancel := withMargin(ctx)
	defer cancel()
	if err := s.await(ctx); err != nil {
		return nil, err
	}
	var all errgroup.Group
	for i, g := range groups[1:] {
		all.Go(func() (err error) {
			results[i+1], err = g.read(ctx, o)
			return err
		})
	}
	results[0], err = groups[0].read(ctx, o) // a group alone needs no goroutine
	if other := all.Wait(); err == nil {
		err = other
	}
	if err != nil {
		return nil, toStatus(err)
	}
	return s.served(q, results), nil
}

// served says and counts what a read rests on.
func (s *service) served(q readRequest, results []rawnode.ReadResult) *kvpb.Served {
	worst, age := results[0], results[0].Age.Microseconds()
	for _, r := range results {
		worst.By, worst.Lag, age = max(worst.By, r.By), max(worst.Lag, r.Lag), max(age, r.Age.Microseconds())
		worst.Age = min(worst.Age, r.Age)
	}
	if worst.Age < 0 {
		age = -1 // not known of one
	}
	s.reads[q.kind()][worst.By].Add(1)
	return &kvpb.Served{By: worst.By.String(), Node: s.id, Lag: worst.Lag, AgeUs: age}
}

// keySpan is the span of a key; every key, if leases cannot name this one.
func keySpan(key string) leases.Span {
	if len(key) >= leases.MaxKey {
		return leases.Span{}
	}
	return leases.KeySpan(key)
}

// prefixSpan is the keys that begin with a prefix, or more.
func prefixSpan(prefix string) leases.Span {
	start := prefix[:min(len(prefix), leases.MaxKey)]
	end := []byte(start)
	for len(end) > 0 && end[len(end)-1] == 0xff {
		end = end[:len(end)-1]
	}
	if len(end) > 0 {
		end[len(end)-1]++
	}
	return leases.Span{Start: start, End: string(end)}
}

// readCounts counts reads by their policy and what served them.
type readCounts [kvpb.ReadPolicy_STALE + 1][rawnode.ServedStale + 1]atomic.Uint64

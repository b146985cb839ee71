// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/weftraft/weft/cmd/kvdemo/internal/kv"
	"github.com/weftraft/weft/cmd/kvdemo/kvpb"
	"github.com/weftraft/weft/rawnode"
)

// oneNode applies what is proposed at once, or fails.
type oneNode struct {
	store    *kv.Store
	index    uint64
	fail     error
	deadline time.Time // of the last call
	options  rawnode.ReadOptions
}

func (o *oneNode) propose(ctx context.Context, c kv.Command) (uint64, kv.Result, error) {
	o.deadline, _ = ctx.Deadline()
	if err := errors.Join(o.fail, c.Check()); err != nil {
		return 0, kv.Result{}, err
	}
	o.index++
	values, err := o.store.Apply(rawnode.Batch{Index: o.index, Commands: [][]byte{c.Encode()}})
	if err != nil {
		return 0, kv.Result{}, err
	}
	r, ok := values[0].(kv.Result)
	if !ok {
		return 0, r, errors.New("not a result")
	}
	return o.index, r, r.Err
}

func (o *oneNode) read(ctx context.Context, options rawnode.ReadOptions) (rawnode.ReadResult, error) {
	o.deadline, _ = ctx.Deadline()
	o.options = options
	return rawnode.ReadResult{By: rawnode.ServedByRoster}, o.fail
}

func (o *oneNode) state() *kv.Store { return o.store }

func testService(t *testing.T) (*service, *oneNode) {
	t.Helper()
	db, err := kv.Open("state", kv.Identity{Cluster: 1, Node: 1}, kv.Options{FS: vfs.NewMem()})
	require.NoError(t, err)
	t.Cleanup(func() { _ = db.Close() })
	store, err := db.Group(1)
	require.NoError(t, err)
	host := &oneNode{store: store}
	return &service{writes: writes{proposers: []proposer{host}, await: func(context.Context) error { return nil }, enable: func(context.Context, uint64, int) error { return nil }},
		groups: []replicated{host}, watches: newWatches(), reads: &readCounts{}}, host
}

func TestService(t *testing.T) {
	s, _ := testService(t)
	ctx := t.Context()
	for i, key := range []string{"a", "b", "c"} {
		put, err := s.Put(ctx, &kvpb.PutRequest{Key: key, Value: []byte(key + key)})
		require.NoError(t, err)
		require.EqualValues(t, i+1, put.GetIndex())
	}
	got, err := s.Get(ctx, &kvpb.GetRequest{Key: "b"})
	require.NoError(t, err)
	require.Equal(t, "bb", string(got.GetValue()))
	require.EqualValues(t, 3, got.GetApplied())
	del, err := s.Delete(ctx, &kvpb.DeleteRequest{Key: "b"})
	require.NoError(t, err)
	require.True(t, del.GetExisted())
	list, err := s.List(ctx, &kvpb.ListRequest{Limit: 1, Digests: true})
	require.NoError(t, err)
	require.Equal(t, "a", list.GetNext())
	require.Len(t, list.GetItems()[0].GetSha256(), 32)
}

// What a client sends wrong does not enter the log.
func TestServiceRefusesInput(t *testing.T) {
	s, host := testService(t)
	ctx := t.Context()
	_, err1 := s.Put(ctx, &kvpb.PutRequest{Value: []byte("v")})
	_, err2 := s.Put(ctx, &kvpb.PutRequest{Key: "k", Value: make([]byte, kv.MaxInlineBytes+1)})
	_, err3 := s.Delete(ctx, &kvpb.DeleteRequest{})
	_, err4 := s.Get(ctx, &kvpb.GetRequest{})
	_, err5 := s.List(ctx, &kvpb.ListRequest{Limit: kv.MaxPage + 1})
	for _, err := range []error{err1, err2, err3, err4, err5} {
		require.Equal(t, codes.InvalidArgument, status.Code(err), err)
	}
	require.Zero(t, host.index)
	_, err := s.Get(ctx, &kvpb.GetRequest{Key: "k"})
	require.Equal(t, codes.NotFound, status.Code(err))
}

// Each verdict of the host reaches the client, with the leader.
func TestVerdicts(t *testing.T) {
	s, host := testService(t)
	for _, c := range []struct {
		verdict, cause error
		code           codes.Code
		want           kvpb.Outcome_Verdict
	}{
		{rawnode.ErrRefused, rawnode.ErrNoLeader, codes.Unavailable, kvpb.Outcome_REFUSED},
		{rawnode.ErrRefused, rawnode.ErrTimeout, codes.DeadlineExceeded, kvpb.Outcome_REFUSED},
		{rawnode.ErrRefused, rawnode.ErrOverloaded, codes.ResourceExhausted, kvpb.Outcome_REFUSED},
		{rawnode.ErrRefused, rawnode.ErrTooLarge, codes.InvalidArgument, kvpb.Outcome_REFUSED},
		{rawnode.ErrRefused, rawnode.ErrStopped, codes.Unavailable, kvpb.Outcome_REFUSED},
		{rawnode.ErrUnknown, rawnode.ErrTimeout, codes.DeadlineExceeded, kvpb.Outcome_UNKNOWN},
		{rawnode.ErrUnknown, rawnode.ErrStopped, codes.Unavailable, kvpb.Outcome_UNKNOWN},
	} {
		host.fail = &rawnode.CallError{Op: "propose", Verdict: c.verdict, Cause: c.cause, Leader: 4}
		_, err := s.Put(t.Context(), &kvpb.PutRequest{Key: "k"})
		require.Equal(t, c.code, status.Code(err))
		require.ErrorContains(t, err, c.cause.Error())
		require.Len(t, status.Convert(err).Details(), 1)
		outcome, ok := status.Convert(err).Details()[0].(*kvpb.Outcome)
		require.True(t, ok)
		require.Equal(t, c.want, outcome.GetVerdict())
		require.EqualValues(t, 4, outcome.GetLeader())
	}
	for err, code := range map[error]codes.Code{
		kv.ErrDamaged: codes.DataLoss, kv.ErrClosed: codes.Unavailable, errors.New("other"): codes.Internal,
	} {
		require.Equal(t, code, status.Code(toStatus(err)))
	}
}

// A status that something wraps keeps its code and its verdict, and the text has no words of gRPC.
func TestWrappedStatusIsInPlainWords(t *testing.T) {
	err := toStatus(fmt.Errorf("group 2: %w", refusal(codes.Unavailable, "no leader")))
	s, ok := status.FromError(err)
	require.True(t, ok)
	require.Equal(t, "group 2: no leader", s.Message())
	require.Equal(t, codes.Unavailable, s.Code())
	require.Len(t, s.Details(), 1)
}

// Opening a session, and bringing a part of a value, change nothing that anybody sees:
// whatever became of the call, its error does not speak of an unknown outcome.
func TestCallsThatNobodySeesHaveNoUnknownOutcome(t *testing.T) {
	s, host := testService(t)
	host.fail = &rawnode.CallError{Op: "propose", Verdict: rawnode.ErrUnknown, Cause: rawnode.ErrTimeout, Waiting: "a majority", Leader: 4}
	_, err1 := s.OpenSession(t.Context(), &kvpb.OpenSessionRequest{Key: "k"})
	_, err2 := s.PutPart(t.Context(), &kvpb.PutPartRequest{Key: "k", Upload: make([]byte, len(kv.UploadID{})), Size: 1, Data: []byte("x")})
	for err, op := range map[error]string{err1: "open a session", err2: "bring a part"} {
		require.Equal(t, codes.DeadlineExceeded, status.Code(err))
		require.NotContains(t, err.Error(), "unknown")
		require.ErrorContains(t, err, op+": refused, it has no effect: the deadline passed, while waiting for a majority (leader: node 4)")
		outcome, ok := status.Convert(err).Details()[0].(*kvpb.Outcome)
		require.True(t, ok)
		require.Equal(t, kvpb.Outcome_REFUSED, outcome.GetVerdict())
	}
}

// A call ends a little before its client gives up.
func TestDeadlines(t *testing.T) { synctest.Test(t, callsEndBeforeTheirClients) }

func callsEndBeforeTheirClients(t *testing.T) {
	s, host := testService(t)
	for _, c := range []struct{ timeout, margin time.Duration }{
		{10 * time.Second, maxMargin},
		{500 * time.Millisecond, 50 * time.Millisecond},
	} {
		ctx, cancel := context.WithTimeout(t.Context(), c.timeout)
		_, err := s.Put(ctx, &kvpb.PutRequest{Key: "k"})
		require.NoError(t, err)
		deadline, _ := ctx.Deadline()
		require.Equal(t, c.margin, deadline.Sub(host.deadline))
		cancel()
	}
	_, err := s.Get(t.Context(), &kvpb.GetRequest{Key: "k"})
	require.NoError(t, err)
	require.False(t, host.deadline.IsZero(), "a call without a deadline gets one")
	_, err = s.Get(t.Context(), &kvpb.GetRequest{Key: "k", Local: true})
	require.NoError(t, err)
}

// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"errors"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/weftraft/weft/cmd/kvdemo/internal/kv"
	"github.com/weftraft/weft/cmd/kvdemo/kvpb"
	"github.com/weftraft/weft/rawnode"
)

const (
	// defaultDeadline bounds a call whose client named none.
	defaultDeadline = 10 * time.Second
	// A call ends here a little before the client's own deadline, so that the
	// client learns the verdict instead of guessing: by a tenth of what is left,
	// at most so much.
	maxMargin = 100 * time.Millisecond
)

// replicated is what the service needs of a host.
type replicated interface {
	// Propose replicates a command and returns where it stands in the log and
	// the state machine's result.
	Propose(ctx context.Context, data []byte) (index uint64, result any, err error)
	// Read returns when this node has applied all that was committed anywhere
	// when Read was called.
	Read(ctx context.Context) error
}

// service answers clients.
type service struct {
	kvpb.UnimplementedKVServer
	host   replicated
	store  *kv.Store
	status func() *kvpb.StatusResponse
}

func (s *service) Put(ctx context.Context, req *kvpb.PutRequest) (*kvpb.PutResponse, error) {
	index, _, err := s.write(ctx, kv.Command{Op: kv.OpPut, Key: req.GetKey(), Value: req.GetValue()})
	if err != nil {
		return nil, err
	}
	return &kvpb.PutResponse{Index: index}, nil
}

func (s *service) Delete(ctx context.Context, req *kvpb.DeleteRequest) (*kvpb.DeleteResponse, error) {
	index, r, err := s.write(ctx, kv.Command{Op: kv.OpDelete, Key: req.GetKey()})
	if err != nil {
		return nil, err
	}
	return &kvpb.DeleteResponse{Index: index, Existed: r.Existed}, nil
}

// write replicates a command. What is wrong with the command is found before it
// enters the log.
func (s *service) write(ctx context.Context, c kv.Command) (uint64, kv.Result, error) {
	if err := c.Check(); err != nil {
		return 0, kv.Result{}, toStatus(err)
	}
	ctx, cancel := withMargin(ctx)
	defer cancel()
	index, result, err := s.host.Propose(ctx, c.Encode())
	if err != nil {
		return 0, kv.Result{}, toStatus(err)
	}
	r, ok := result.(kv.Result)
	if !ok {
		return 0, kv.Result{}, status.Errorf(codes.Internal, "the state machine answered with a %T, want a kv.Result", result)
	}
	return index, r, toStatus(r.Err)
}

func (s *service) Get(ctx context.Context, req *kvpb.GetRequest) (*kvpb.GetResponse, error) {
	if err := s.barrier(ctx, req.GetLocal()); err != nil {
		return nil, err
	}
	value, applied, err := s.store.Get(req.GetKey())
	if err != nil {
		return nil, toStatus(err)
	}
	return &kvpb.GetResponse{Value: value, Applied: applied}, nil
}

func (s *service) List(ctx context.Context, req *kvpb.ListRequest) (*kvpb.ListResponse, error) {
	if err := s.barrier(ctx, req.GetLocal()); err != nil {
		return nil, err
	}
	page, err := s.store.List(kv.Query{
		Prefix:  req.GetPrefix(),
		After:   req.GetAfter(),
		Limit:   int(req.GetLimit()),
		Digests: req.GetDigests(),
	})
	if err != nil {
		return nil, toStatus(err)
	}
	resp := &kvpb.ListResponse{Next: page.Next, Applied: page.Applied}
	for _, item := range page.Items {
		resp.Items = append(resp.Items, &kvpb.ListResponse_Item{Key: item.Key, Size: uint64(item.Size), Sha256: item.SHA256})
	}
	return resp, nil
}

func (s *service) Status(context.Context, *kvpb.StatusRequest) (*kvpb.StatusResponse, error) {
	return s.status(), nil
}

// barrier makes a read that follows it linearizable, unless it is to be local.
func (s *service) barrier(ctx context.Context, local bool) error {
	if local {
		return nil
	}
	ctx, cancel := withMargin(ctx)
	defer cancel()
	return toStatus(s.host.Read(ctx))
}

func withMargin(ctx context.Context) (context.Context, context.CancelFunc) {
	deadline, ok := ctx.Deadline()
	if !ok {
		return context.WithTimeout(ctx, defaultDeadline)
	}
	return context.WithDeadline(ctx, deadline.Add(-min(maxMargin, time.Until(deadline)/10)))
}

// toStatus turns an error into a gRPC status, with an Outcome where the host
// gave a verdict.
func toStatus(err error) error {
	var call *rawnode.CallError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &call):
		return verdict(call)
	case errors.Is(err, kv.ErrNotFound):
		return status.Error(codes.NotFound, err.Error())
	case errors.Is(err, kv.ErrInvalid):
		return status.Error(codes.InvalidArgument, err.Error())
	case errors.Is(err, kv.ErrDamaged):
		return status.Error(codes.DataLoss, err.Error())
	case errors.Is(err, kv.ErrClosed):
		return status.Error(codes.Unavailable, "the node is stopping")
	}
	return status.Error(codes.Internal, err.Error())
}

func verdict(call *rawnode.CallError) error {
	code, outcome := codes.Unavailable, kvpb.Outcome_REFUSED
	switch {
	case errors.Is(call, rawnode.ErrTooLarge):
		code = codes.InvalidArgument
	case errors.Is(call, rawnode.ErrOverloaded):
		code = codes.ResourceExhausted
	case errors.Is(call, rawnode.ErrTimeout):
		code = codes.DeadlineExceeded
	}
	if !errors.Is(call, rawnode.ErrRefused) {
		outcome = kvpb.Outcome_UNKNOWN
	}
	s, err := status.New(code, call.Error()).WithDetails(&kvpb.Outcome{Verdict: outcome, Leader: call.Leader})
	if err != nil { // a message of ours always marshals
		return status.Error(code, call.Error())
	}
	return s.Err()
}

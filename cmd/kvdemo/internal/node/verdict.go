// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"errors"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/weftraft/weft"
	"github.com/weftraft/weft/cmd/kvdemo/internal/kv"
	"github.com/weftraft/weft/cmd/kvdemo/kvpb"
	"github.com/weftraft/weft/rawnode"
)

// toStatus turns an error into a gRPC status, with an Outcome where there is a
// verdict on a write.
func toStatus(err error) error {
	if err == nil {
		return nil
	}
	if s, ok := kvpb.StatusIn(err); ok {
		return s.Err()
	}
	var call *rawnode.CallError
	if errors.As(err, &call) {
		return verdict(err, call)
	}
	for _, c := range []struct {
		err     error
		code    codes.Code
		verdict kvpb.Outcome_Verdict
	}{
		{kv.ErrNotFound, codes.NotFound, 0},
		{kv.ErrInvalid, codes.InvalidArgument, 0},
		{kv.ErrLarge, codes.OutOfRange, 0},
		{kv.ErrType, codes.FailedPrecondition, 0},
		{kv.ErrCompacted, codes.OutOfRange, 0},
		{kv.ErrFrozen, codes.Unavailable, kvpb.Outcome_REFUSED},
		{kv.ErrParts, codes.FailedPrecondition, kvpb.Outcome_REFUSED},
		{kv.ErrNoUpload, codes.FailedPrecondition, kvpb.Outcome_REFUSED},
		{kv.ErrUploads, codes.ResourceExhausted, kvpb.Outcome_REFUSED},
		{kv.ErrOvertaken, codes.Aborted, kvpb.Outcome_REFUSED},
		{kv.ErrForgotten, codes.Aborted, kvpb.Outcome_NO_SESSION},
		{kv.ErrExpired, codes.Aborted, kvpb.Outcome_NO_SESSION},
		{kv.ErrDamaged, codes.DataLoss, 0},
		{kv.ErrClosed, codes.Unavailable, 0},
		{context.DeadlineExceeded, codes.DeadlineExceeded, 0},
		{context.Canceled, codes.Canceled, 0},
	} {
		if errors.Is(err, c.err) {
			return withOutcome(c.code, err.Error(), &kvpb.Outcome{Verdict: c.verdict})
		}
	}
	return status.Error(codes.Internal, err.Error())
}

// unseen returns the error of a call that changes nothing that anybody sees. If its
// outcome is unknown, that is the same as none.
func unseen(op string, err error) error {
	var call *rawnode.CallError
	if !errors.As(err, &call) {
		return err
	}
	c := *call
	c.Op, c.Verdict = op, rawnode.ErrRefused
	return &c
}

// verdict returns the status for what a host said. The message is all of err.
func verdict(err error, call *rawnode.CallError) error {
	code, outcome := codes.Unavailable, kvpb.Outcome_REFUSED
	switch {
	case errors.Is(call, rawnode.ErrTooLarge):
		code = codes.InvalidArgument
	case errors.Is(call, rawnode.ErrOverloaded):
		code = codes.ResourceExhausted
	case errors.Is(call, rawnode.ErrUnsafeChange), errors.Is(call, rawnode.ErrNotMember), errors.Is(call, rawnode.ErrConfChange),
		errors.Is(call, weft.ErrAddress):
		code = codes.FailedPrecondition
	case errors.Is(call, rawnode.ErrTimeout):
		code = codes.DeadlineExceeded
	}
	if !errors.Is(call, rawnode.ErrRefused) {
		outcome = kvpb.Outcome_UNKNOWN
	}
	return withOutcome(code, err.Error(), &kvpb.Outcome{Verdict: outcome, Leader: call.Leader})
}

// refusal is the status of a call that this node did not let in.
func refusal(code codes.Code, message string) error {
	return withOutcome(code, message, &kvpb.Outcome{Verdict: kvpb.Outcome_REFUSED})
}

func withOutcome(code codes.Code, message string, o *kvpb.Outcome) error {
	s := status.New(code, message)
	if o.GetVerdict() == 0 {
		return s.Err()
	}
	with, err := s.WithDetails(o)
	if err != nil { // a message of ours always marshals
		return s.Err()
	}
	return with.Err()
}

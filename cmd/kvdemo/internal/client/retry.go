// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/weftraft/weft/cmd/kvdemo/internal/kv"
	"github.com/weftraft/weft/cmd/kvdemo/internal/secure"
	"github.com/weftraft/weft/cmd/kvdemo/kvpb"
)

var (
	// errUnavailable says that no node took the call before its deadline, or that no
	// node is at the endpoints. A write is not applied, now or later.
	errUnavailable = errors.New("no node could take the request in time")

	// ErrUnknown says that a write may or may not have been applied, or may yet
	// be: its deadline passed while an answer was missing.
	ErrUnknown = errors.New("the outcome of the write is unknown")

	errUnreachable = errors.New("cannot connect")
	errNoSession   = errors.New("the session has expired")
)

// verdict is the consequence of a failed attempt for the call.
type verdict int

const (
	final   verdict = iota // the answer to the call
	again                  // nothing happened: ask the next node
	unknown                // a write that may have happened
)

// do makes a call at one node after the other, until the call succeeds, fails for
// good, or the deadline passes. A call that writes must do no harm when made several
// times.
func (c *Client) do(ctx context.Context, write bool, call func(context.Context, kvpb.KVClient) error) error {
	return c.doAt(ctx, write, func(ctx context.Context, conn *grpc.ClientConn) error {
		return call(ctx, kvpb.NewKVClient(conn))
	})
}

// ask makes a call that is no write, and returns the answer.
func ask[Request, Response any](ctx context.Context, c *Client, call func(kvpb.KVClient, context.Context, Request, ...grpc.CallOption) (Response, error), req Request) (resp Response, err error) {
	err = c.do(ctx, false, func(ctx context.Context, kv kvpb.KVClient) (err error) {
		resp, err = call(kv, ctx, req)
		return err
	})
	return resp, err
}

// doAt is do for any service.
func (c *Client) doAt(ctx context.Context, write bool, call func(context.Context, *grpc.ClientConn) error) error {
	ctx, cancel := c.deadline(ctx)
	defer cancel()
	var doubt error                         // why a write may have happened all the same
	refusals := make([]error, len(c.conns)) // what each endpoint said last
	for {
		hopeless := 0 // endpoints of this round that no patience helps
		for range c.conns {
			i := int(c.next.Load())
			err := c.attempt(ctx, i, call)
			if err == nil {
				return nil
			}
			err = c.describe(i, err)
			switch v := judge(err, write); {
			case v == final && doubt != nil:
				return inDoubt(err)
			case v == final:
				return err
			case v == unknown:
				doubt = err
			}
			if refusals[i] == nil || informative(err) {
				refusals[i] = err
			}
			if isHopeless(err) {
				hopeless++
			}
			c.next.CompareAndSwap(int64(i), int64((i+1)%len(c.conns)))
			if ctx.Err() != nil || hopeless == len(c.conns) {
				return c.expired(ctx, doubt, refusals)
			}
		}
		select {
		case <-ctx.Done():
			return c.expired(ctx, doubt, refusals)
		case <-time.After(pause):
		}
	}
}

// older reports whether a node does not know the call.
func older(err error) bool {
	var e *callError
	return errors.As(err, &e) && e.Code == codes.Unimplemented
}

// isHopeless reports whether no patience helps: something else listens there, the node is
// of an older version, or the certificates do not fit.
func isHopeless(err error) bool {
	return older(err) || errors.Is(err, errNotOurs) && !errors.Is(err, errHungUp) || errors.Is(err, secure.ErrInvalid)
}

func inDoubt(cause error) error {
	return fmt.Errorf("%w: %w; read before you write again", ErrUnknown, cause)
}

// informative reports whether an error says more than that the time was up: a node's
// own words, or that no node is there.
func informative(err error) bool {
	var e *callError
	return errors.Is(err, errNotOurs) || errors.Is(err, secure.ErrInvalid) || errors.As(err, &e) && (e.Verdict != 0 || e.Code != codes.DeadlineExceeded)
}

// expired is the error of a call whose deadline has passed, that was cancelled,
// or that no node will ever take.
func (c *Client) expired(ctx context.Context, doubt error, refusals []error) error {
	if doubt != nil {
		return inDoubt(doubt)
	}
	var reasons []string
	connected := false
	for _, err := range refusals {
		if err != nil {
			connected = connected || !errors.Is(err, errUnreachable)
			reasons = append(reasons, err.Error())
		}
	}
	said := strings.Join(reasons, "; ")
	switch {
	case errors.Is(ctx.Err(), context.Canceled):
		return fmt.Errorf("%w (%s)", ctx.Err(), said)
	case ctx.Err() == nil:
		return fmt.Errorf("%w (%s): check the endpoints and the certificates", errUnavailable, said)
	case !connected && len(reasons) == len(refusals):
		return fmt.Errorf("%w (%s): check that nodes run there, as after kvdemo demo --serve, or name others with --endpoints", errUnavailable, said)
	}
	return fmt.Errorf("%w (%s): check that a majority of the nodes is up, name more of them with --endpoints, or allow more time", errUnavailable, said)
}

// attempt makes the call at endpoint i, leaving time for the endpoints behind
// it.
func (c *Client) attempt(ctx context.Context, i int, call func(context.Context, *grpc.ClientConn) error) error {
	if err := c.connect(ctx, i); err != nil {
		return err
	}
	if deadline, ok := ctx.Deadline(); ok && len(c.conns) > 1 && ctx.Value(wholeTime{}) == nil {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, min(max(minAttempt, time.Until(deadline)/2), maxAttempt))
		defer cancel()
	}
	return call(ctx, c.conns[i])
}

// wholeTime marks the context of a call that notices a silent node by itself: each
// attempt may then take the whole time until the deadline.
type wholeTime struct{}

// describe adds the endpoint to an error, and turns codes into this module's sentinel
// errors where there is one.
func (c *Client) describe(i int, err error) error {
	s, ok := kvpb.StatusIn(err)
	if !ok {
		return fmt.Errorf("%s: %w", c.cfg.Endpoints[i], err)
	}
	if s.Code() == codes.Unimplemented && !strings.HasPrefix(s.Message(), "unknown method") { // else it is an older kvdemo
		return fmt.Errorf("%s: %w (%s)", c.cfg.Endpoints[i], errNotOurs, s.Message())
	}
	return &callError{Endpoint: c.cfg.Endpoints[i], Code: s.Code(), Message: s.Message(), Verdict: verdictIn(s)}
}

// verdictIn returns a node's verdict on a write, if the node's answer has a verdict.
func verdictIn(s *status.Status) (v kvpb.Outcome_Verdict) {
	for _, d := range s.Details() {
		if o, ok := d.(*kvpb.Outcome); ok {
			v = o.GetVerdict()
		}
	}
	return v
}

// callError is a node's answer that something failed.
type callError struct {
	Endpoint string
	Code     codes.Code
	Message  string
	Verdict  kvpb.Outcome_Verdict // of a write, if the node gave one
}

// callError implements error.
func (e *callError) Error() string { return e.Endpoint + ": " + e.Message }

// Is lets errors.Is find the sentinel that the code stands for.
func (e *callError) Is(target error) bool {
	switch e.Code {
	case codes.NotFound:
		return target == kv.ErrNotFound
	case codes.InvalidArgument:
		return target == kv.ErrInvalid
	case codes.DataLoss:
		return target == kv.ErrDamaged
	case codes.OutOfRange:
		return target == kv.ErrLarge
	case codes.Aborted:
		return target == errNoSession && e.Verdict == kvpb.Outcome_NO_SESSION
	case codes.DeadlineExceeded:
		return target == context.DeadlineExceeded
	}
	return false
}

// judge decides whether a call that failed may be made again.
func judge(err error, write bool) verdict {
	if errors.Is(err, errUnreachable) || errors.Is(err, errNotOurs) {
		return again
	}
	var e *callError
	if !errors.As(err, &e) {
		return final
	}
	switch e.Code {
	case codes.Unimplemented: // an older kvdemo, while nodes are upgraded one by one
		return again
	case codes.ResourceExhausted, codes.Unavailable, codes.DeadlineExceeded, codes.Canceled, codes.Unknown, codes.Internal:
		if !write || e.Verdict == kvpb.Outcome_REFUSED {
			return again
		}
		return unknown
	}
	return final
}

// Unreachable reports whether an error says that a node, or a majority of its
// cluster, was not reached in time, or that another program listens at the endpoint.
func Unreachable(err error) bool {
	if errors.Is(err, errUnavailable) || errors.Is(err, errUnreachable) || errors.Is(err, errNotOurs) {
		return true
	}
	var e *callError
	return errors.As(err, &e) && (e.Code == codes.Unavailable || e.Code == codes.DeadlineExceeded)
}

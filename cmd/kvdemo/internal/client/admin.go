// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"errors"
	"fmt"

	"google.golang.org/grpc"
	"google.golang.org/grpc/status"

	"github.com/weftraft/weft/cmd/kvdemo/kvpb"
)

// Admin makes an operator's call at a node and, if that node cannot answer, at the
// next node, so a call may be made several times. If a change was begun and no node
// knows its outcome by the deadline, the error is ErrUnknown.
func Admin[Request, Response any](ctx context.Context, c *Client, call func(kvpb.AdminClient, context.Context, Request, ...grpc.CallOption) (Response, error), req Request) (resp Response, err error) {
	ctx, cancel := c.deadline(ctx)
	defer cancel()
	var begun error
	err = c.doAt(ctx, false, func(ctx context.Context, conn *grpc.ClientConn) (err error) {
		resp, err = call(kvpb.NewAdminClient(conn), ctx, req)
		if s, _ := status.FromError(err); verdictIn(s) == kvpb.Outcome_UNKNOWN {
			begun = errors.New(s.Message())
		}
		return err
	})
	if begun != nil && errors.Is(err, errUnavailable) {
		err = fmt.Errorf("%w: %w; ask for it again to complete it", ErrUnknown, begun)
	}
	return resp, err
}

// AdminAt makes a call of an operator at each of the endpoints.
func AdminAt[Request, Response any](ctx context.Context, c *Client, call func(kvpb.AdminClient, context.Context, Request, ...grpc.CallOption) (Response, error), req Request) []Answer[Response] {
	return everywhere(ctx, c, func(ctx context.Context, conn *grpc.ClientConn) (Response, error) {
		return call(kvpb.NewAdminClient(conn), ctx, req)
	})
}

// Answer is the answer of one endpoint, or the reason why there is none.
type Answer[Response any] struct {
	Endpoint string
	Response Response // zero if Err is not nil
	Err      error
}

// everywhere asks every endpoint at once.
func everywhere[Response any](ctx context.Context, c *Client, call func(context.Context, *grpc.ClientConn) (Response, error)) []Answer[Response] {
	ctx, cancel := c.deadline(ctx)
	defer cancel()
	all := make([]Answer[Response], len(c.conns))
	done := make(chan struct{})
	for i := range c.conns {
		go func() {
			a := &all[i]
			a.Endpoint = c.cfg.Endpoints[i]
			if a.Err = c.connect(ctx, i); a.Err == nil {
				a.Response, a.Err = call(ctx, c.conns[i])
			}
			if a.Err != nil {
				a.Err = c.describe(i, a.Err)
			}
			done <- struct{}{}
		}()
	}
	for range c.conns {
		<-done
	}
	return all
}

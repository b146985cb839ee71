// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package state

import (
	"context"
	"fmt"

	"github.com/weftraft/weft/rawnode"
	"github.com/weftraft/weft/rawnode/state/internal/envelope"
)

// Querier is an optional interface of a [Machine] that answers queries: see Group.Query of package weft.
type Querier interface {
	// Query answers a request from the state, which it must not change. Query is called like the
	// functions of [Memory.View]. The answer is no part of the state.
	Query(request []byte) (answer []byte, err error)
}

var (
	_ rawnode.Querier       = (*Memory[Machine])(nil)
	_ rawnode.ResultEncoder = (*Memory[Machine])(nil)
)

// Query implements rawnode.Querier, if the machine is a [Querier].
func (m *Memory[M]) Query(ctx context.Context, request []byte) (answer []byte, err error) {
	late := m.ViewContext(ctx, func(machine M) {
		q, ok := any(machine).(Querier)
		if !ok {
			err = rawnode.ErrNoQueries
			return
		}
		answer, err = q.Query(request)
	})
	if late != nil {
		return nil, fmt.Errorf("the state machine is busy, in Apply or with a checkpoint: %w", late)
	}
	return answer, err
}

// EncodeResult implements rawnode.ResultEncoder, for the results that a session keeps (nil, bool, int, int64,
// uint64, []byte and string), errors by their texts, and those of commands of sessions. [DecodeResult] is the inverse.
func (m *Memory[M]) EncodeResult(result any) ([]byte, error) { return envelope.EncodeResult(result) }

// DecodeResult returns the result of a command that was proposed at a gateway, from the bytes that the gateway
// has returned.
func DecodeResult(b []byte) (result any, err error) { return envelope.DecodeResult(b) }

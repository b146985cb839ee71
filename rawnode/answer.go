// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package rawnode

import (
	"context"
	"errors"

	"github.com/weftraft/weft/internal/replica"
	"github.com/weftraft/weft/internal/wire"
)

// answer has the state machine answer a query of a gateway, whose read barrier is passed. The replica
// bounds the number of queries.
func (h *Host) answer(q replica.Query) {
	ctx, cancel := context.WithTimeout(h.context, q.Patience)
	defer cancel()
	h.queries.Add(1)
	defer h.queries.Add(-1)
	reply := wire.Reply{Code: wire.NoQueries}
	if sm, ok := h.cfg.StateMachine.(Querier); ok {
		data, err := sm.Query(ctx, q.Request)
		switch {
		case err == nil:
			reply = wire.Reply{Code: wire.Answered, Data: data}
		case h.context.Err() != nil:
			reply = wire.Reply{Code: wire.AskAgain, Reason: h.gone().Error()}
		case !errors.Is(err, ErrNoQueries):
			reply = wire.Reply{Code: wire.QueryFails, Reason: err.Error()}
		}
	}
	h.inbox.post(func(r *replica.Replica) { r.Answered(q, reply) })
}

// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package nodes

import (
	"github.com/weftraft/weft/rafttest/internal/register"
	"github.com/weftraft/weft/rawnode/session"
)

// history is the clients' operations and results.
type history struct {
	ops        []*operation
	operations uint32
	attempts   uint32
	stamps     int64
}

// stamp returns the next number in the order of calls and returns.
func (h *history) stamp() int64 {
	h.stamps++
	return h.stamps
}

// try returns the command of a further try of an operation.
func (h *history) try(op *operation) command {
	h.attempts++
	return command{verb: op.verb, key: op.key, session: op.session, seq: op.seq, value: op.value, old: op.old,
		acked: op.acked, op: op.id, attempt: h.attempts, padding: op.padding}
}

// access is the operation on its key, as the client saw it.
func (op *operation) access() register.Access {
	a := register.Access{Client: op.client, Kind: register.Swap, Call: op.call, Return: op.ret,
		Value: op.value, Old: op.old, Swapped: op.result.done, Known: op.finished}
	switch op.verb {
	case verbGet:
		a.Kind, a.Value = register.Read, op.result.value
	case verbPut:
		a.Kind = register.Write
	}
	return a
}

// operation is one call of a client, with all its tries. Calls and returns are
// numbered in order, so that no two happen at once.
type operation struct {
	id        uint32
	verb      verb
	key       uint8
	value     uint32
	old       uint32
	seq       uint64
	acked     uint64
	session   session.ID
	padding   int
	client    int
	group     uint64
	call, ret int64
	result    answer
	finished  bool // the client has the result
	abandoned bool // the operation may happen later, or never
	tries     int
	waiting   bool // a try is under way
}

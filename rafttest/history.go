// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package rafttest

import (
	"github.com/weftraft/weft/rafttest/internal/register"
)

// history is the clients' record.
type history struct {
	ops      []*operation
	sessions uint32 // given out so far
	values   uint32 // written so far
	attempts uint32 // sendings of commands so far
}

// operation is one call of a client. Calls and returns are numbered in order,
// so that no two happen at once.
type operation struct {
	command
	call, ret int64
	result    result
	finished  bool // the client has the result
	abandoned bool // the client has given up: it may happen later, or never
}

// access is the operation on its key, as the client saw it.
func (op *operation) access() register.Access {
	a := register.Access{Client: int(op.command.id.client), Kind: register.Swap, Call: op.call, Return: op.ret,
		Value: op.value, Old: op.old, Swapped: op.result.done, Known: op.finished}
	switch op.verb {
	case verbGet:
		a.Kind, a.Value = register.Read, op.result.value
	case verbPut:
		a.Kind = register.Write
	}
	return a
}

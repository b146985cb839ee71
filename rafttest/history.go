// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package rafttest

import (
	"fmt"
	"strings"

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

func describe(ops []*operation) string {
	var b strings.Builder
	for _, op := range ops {
		client := op.command.id.client
		switch {
		case op.verb == verbGet:
			fmt.Fprintf(&b, "  [%5d %5d] client %d reads %d\n", op.call, op.ret, client, op.result.value)
		case !op.finished:
			fmt.Fprintf(&b, "  [%5d   ...] client %d verb %d old %d new %d\n", op.call, client, op.verb, op.old, op.value)
		case op.verb == verbPut:
			fmt.Fprintf(&b, "  [%5d %5d] client %d puts %d\n", op.call, op.ret, client, op.value)
		default:
			fmt.Fprintf(&b, "  [%5d %5d] client %d swaps %d for %d: %v\n", op.call, op.ret, client, op.old, op.value, op.result.done)
		}
	}
	return b.String()
}

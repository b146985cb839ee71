// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package rafttest

import (
	"fmt"
	"math"
	"strings"

	"github.com/anishathalye/porcupine"
)

// history is what clients saw.
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
	client    *client
	call, ret int64
	result    result
	finished  bool // the client has the result
	abandoned bool // the client has given up: it may happen later, or never
}

// checkHistory checks that the history is linearizable: that there is an order
// of the operations, each between its call and its return, in which each has
// the result it had.
func (s *sim) checkHistory() {
	if s.failure != nil {
		return
	}
	byKey := make([][]porcupine.Operation, storeKeys)
	for _, op := range s.history.ops {
		ret := op.ret
		if !op.finished {
			if op.verb == verbGet {
				continue // nobody saw what it read
			}
			ret = math.MaxInt64 // it may happen at any time from its call on
		}
		byKey[op.key] = append(byKey[op.key], porcupine.Operation{
			ClientId: int(op.command.id.client), Input: op, Call: op.call, Output: op, Return: ret})
	}
	for key, ops := range byKey {
		if len(ops) == 0 {
			continue
		}
		s.reach.Histories++
		if !porcupine.CheckOperations(registerModel, ops) {
			s.fail(Linearizability, "key %d:\n%s", key, describe(ops))
			return
		}
	}
}

// registerModel is one key.
var registerModel = porcupine.Model{
	Init: func() any { return uint32(0) },
	Step: func(state, in, _ any) (bool, any) {
		value, op := state.(uint32), in.(*operation)
		switch op.verb {
		case verbGet:
			return op.result.value == value, value
		case verbPut:
			return true, op.value
		}
		hit := value == op.old
		if op.finished && op.result.done != hit {
			return false, value
		}
		if hit {
			return true, op.value
		}
		return true, value
	},
}

func describe(ops []porcupine.Operation) string {
	var b strings.Builder
	for _, o := range ops {
		op := o.Input.(*operation)
		switch {
		case op.verb == verbGet:
			fmt.Fprintf(&b, "  [%5d %5d] client %d reads %d\n", o.Call, op.ret, o.ClientId, op.result.value)
		case !op.finished:
			fmt.Fprintf(&b, "  [%5d   ...] client %d verb %d old %d new %d\n", o.Call, o.ClientId, op.verb, op.old, op.value)
		case op.verb == verbPut:
			fmt.Fprintf(&b, "  [%5d %5d] client %d puts %d\n", o.Call, op.ret, o.ClientId, op.value)
		default:
			fmt.Fprintf(&b, "  [%5d %5d] client %d swaps %d for %d: %v\n", o.Call, op.ret, o.ClientId, op.old, op.value, op.result.done)
		}
	}
	return b.String()
}

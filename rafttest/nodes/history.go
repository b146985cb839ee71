// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package nodes

import (
	"fmt"
	"strings"

	"github.com/anishathalye/porcupine"
)

// history is what clients did and saw.
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

// checkHistory looks for an order of the operations, each between its call and
// its return, in which every one has the result that it had.
func (w *world) checkHistory() {
	if w.failure != nil {
		return
	}
	type register struct {
		group uint64
		key   uint8
	}
	by := map[register][]porcupine.Operation{}
	for _, op := range w.history.ops {
		ret := op.ret
		if !op.finished {
			if op.verb == verbGet || !op.client.g.effects[op.id] {
				continue // nobody saw it, or it never took effect
			}
			ret = forever
		}
		at := register{op.client.g.id, op.key}
		by[at] = append(by[at], porcupine.Operation{ClientId: op.client.id, Input: op, Call: op.call, Output: op, Return: ret})
	}
	for _, g := range w.groups {
		for key := range uint8(storeKeys) {
			ops := by[register{g.id, key}]
			if len(ops) > 0 && !porcupine.CheckOperations(registerModel, ops) {
				w.fail(Linearizability, "group %d, key %d:\n%s", g.id, key, describe(ops))
				return
			}
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
		ret := fmt.Sprint(op.ret)
		if !op.finished {
			ret = "..."
		}
		fmt.Fprintf(&b, "  [%d %s] client %d: %v old %d new %d: %v %d\n", o.Call, ret, o.ClientId, op.verb, op.old, op.value, op.result.done, op.result.value)
	}
	return b.String()
}

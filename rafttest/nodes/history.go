// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package nodes

import (
	"github.com/weftraft/weft/rafttest/internal/register"
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

// checkHistory looks for an order of the operations, each between its call and
// its return, with the recorded results.
func (w *sim) checkHistory() {
	if w.failure != nil {
		return
	}
	type place struct {
		group uint64
		key   uint8
	}
	by := map[place][]*operation{}
	for _, op := range w.history.ops {
		if !op.finished && (op.verb == verbGet || !op.client.g.effects[op.id]) {
			continue // the result was not seen, or the operation never took effect
		}
		at := place{op.client.g.id, op.key}
		by[at] = append(by[at], op)
	}
	for _, g := range w.groups {
		for key := range uint8(storeKeys) {
			ops := by[place{g.id, key}]
			if err := register.Check(ops, (*operation).access); err != nil {
				w.fail(linearizability, "group %d, key %d:\n%v", g.id, key, err)
				return
			}
		}
	}
}

// access is the operation on its key, as the client saw it.
func (op *operation) access() register.Access {
	a := register.Access{Client: op.client.id, Kind: register.Swap, Call: op.call, Return: op.ret,
		Value: op.value, Old: op.old, Swapped: op.result.done, Known: op.finished}
	switch op.verb {
	case verbGet:
		a.Kind, a.Value = register.Read, op.result.value
	case verbPut:
		a.Kind = register.Write
	}
	return a
}

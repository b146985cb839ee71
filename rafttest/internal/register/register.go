// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package register

import (
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/anishathalye/porcupine"
)

// Access is one operation of a client on a register: a number, 0 at first.
type Access struct {
	Client int
	Kind   Kind
	// Call and Return order what clients do and see. Nobody looks at Return if
	// the result is not known.
	Call, Return int64
	// Value is what was read, or is to be written.
	Value uint32
	// A swap replaces the value Old, if the register has that value; Swapped says
	// that the register had it.
	Old     uint32
	Swapped bool
	// Known says that the client has the result. An operation with an unknown result
	// may happen at any time from its call on, or never.
	Known bool
}

// Kind is what an access does.
type Kind byte

// The kinds of accesses.
const (
	Read Kind = iota
	Write
	Swap // compare and swap
)

// Check returns an error that lists the operations on a register if they cannot be ordered
// so that each stands between its call and its return, and has the result that its client
// saw.
func Check[O any](ops []O, access func(O) Access) error {
	var history []porcupine.Operation
	for _, op := range ops {
		a := access(op)
		if !a.Known {
			a.Return = math.MaxInt64
		}
		history = append(history, porcupine.Operation{ClientId: a.Client, Input: a, Call: a.Call, Return: a.Return})
	}
	if porcupine.CheckOperations(model, history) {
		return nil
	}
	var list strings.Builder
	for _, op := range ops {
		fmt.Fprintf(&list, "  %v\n", access(op))
	}
	return errors.New(list.String())
}

// String names what the client did, and the result.
func (a Access) String() string {
	end := "..."
	if a.Known {
		end = fmt.Sprint(a.Return)
	}
	text := fmt.Sprintf("[%5d %5s] client %d ", a.Call, end, a.Client)
	switch a.Kind {
	case Read:
		return text + fmt.Sprintf("reads %d", a.Value)
	case Write:
		return text + fmt.Sprintf("writes %d", a.Value)
	}
	return text + fmt.Sprintf("swaps %d for %d: %v", a.Old, a.Value, a.Swapped)
}

// model is the register: what each access finds, and leaves behind.
var model = porcupine.Model{
	Init: func() any { return uint32(0) },
	Step: func(state, in, _ any) (bool, any) {
		value, a := state.(uint32), in.(Access)
		switch a.Kind {
		case Read:
			return !a.Known || a.Value == value, value
		case Write:
			return true, a.Value
		}
		hit := value == a.Old
		if a.Known && a.Swapped != hit {
			return false, value
		}
		if hit {
			return true, a.Value
		}
		return true, value
	},
}

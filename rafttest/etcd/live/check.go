// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package live

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/anishathalye/porcupine"
)

// ErrUnsafe is wrapped by the errors of Run for answers that a safe cluster never gives, and for
// members whose data differ.
var ErrUnsafe = errors.New("unsafe")

var (
	errNotLinearizable = fmt.Errorf("%w: the history is not linearizable", ErrUnsafe)
	errRevision        = fmt.Errorf("%w: a revision went back", ErrUnsafe)
	errOtherData       = fmt.Errorf("%w: members hold different data", ErrUnsafe)
)

// checkTimeout bounds the search for a linearization. With unique values and a register for each
// key, a search takes far less than a second.
const checkTimeout = time.Minute

// check looks for a linearization of the history, key by key, and checks that revisions rise in
// real time over all keys.
func check(ops []operation) error {
	if err := checkRevisions(ops); err != nil {
		return err
	}
	byKey := map[string][]porcupine.Operation{}
	seen := observed(ops)
	for i := range ops {
		o := &ops[i]
		if !o.answered && (o.verb == get || !seen[o.value]) {
			// A read without an answer gives no information. A write without an answer whose value
			// no answer shows can be left out: the other answers fit with this write if and only if
			// they fit without.
			continue
		}
		end := int64(o.ret)
		if !o.answered {
			end = math.MaxInt64 // may still be on its way
		}
		byKey[o.key] = append(byKey[o.key], porcupine.Operation{Input: o, Call: int64(o.call), Return: end})
	}
	for key, history := range byKey {
		switch porcupine.CheckOperationsTimeout(register, history, checkTimeout) {
		case porcupine.Illegal:
			return fmt.Errorf("%w: key %q, %d operations", errNotLinearizable, key, len(history))
		case porcupine.Unknown:
			return fmt.Errorf("no verdict on the %d operations on key %q within %v", len(history), key, checkTimeout)
		}
	}
	return nil
}

// register is the model of a key, which holds a value.
var register = porcupine.Model{
	Init: func() any { return "" },
	Step: func(state, input, _ any) (bool, any) {
		value, o := state.(string), input.(*operation)
		switch {
		case o.verb == get:
			return o.read == value, value
		case o.verb == put:
			return true, o.value
		case !o.answered: // a swap that may have matched or not
			if value == o.old {
				return true, o.value
			}
			return true, value
		case o.swapped:
			return o.old == value, o.value
		default:
			return o.old != value && o.read == value, value
		}
	},
}

// observed returns the values that answers show. Values are unique, so each value stands for one
// write.
func observed(ops []operation) map[string]bool {
	seen := map[string]bool{}
	for _, o := range ops {
		switch {
		case !o.answered || o.verb == put:
		case o.swapped:
			seen[o.old] = true
		default:
			seen[o.read] = true
		}
	}
	return seen
}

// checkRevisions checks the revisions of operations that began after another operation had ended:
// the revision is not lower, and for a write it is higher. No two writes have the same revision.
func checkRevisions(ops []operation) error {
	writer := map[int64]*operation{}
	var begins, ends []*operation
	for i := range ops {
		o := &ops[i]
		if !o.answered {
			continue
		}
		begins, ends = append(begins, o), append(ends, o)
		if !o.wrote() {
			continue
		}
		if w := writer[o.revision]; w != nil {
			return fmt.Errorf("%w: %d is that of the writes of %q and %q", errRevision, o.revision, w.value, o.value)
		}
		writer[o.revision] = o
	}
	slices.SortFunc(begins, func(a, b *operation) int { return cmp.Compare(a.call, b.call) })
	slices.SortFunc(ends, func(a, b *operation) int { return cmp.Compare(a.ret, b.ret) })
	var known int64 // the highest revision of the operations that ended before o began
	for _, o := range begins {
		for len(ends) > 0 && ends[0].ret < o.call {
			known, ends = max(known, ends[0].revision), ends[1:]
		}
		if o.revision < known || o.revision == known && o.wrote() {
			return fmt.Errorf("%w: an operation on key %q that began at %v has %d, and %d had been seen before it began",
				errRevision, o.key, o.call, o.revision, known)
		}
	}
	return nil
}

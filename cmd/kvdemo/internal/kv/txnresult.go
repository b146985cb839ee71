// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package kv

import (
	"encoding/binary"
	"fmt"
)

// TxnCode says what became of one action. The numbers are part of the data format.
type TxnCode byte

// The codes. With all but TxnDone the action changed nothing; the others of the
// transaction were done all the same.
const (
	TxnDone      TxnCode = 0 // it was done; a get of no value, too
	TxnSkipped   TxnCode = 1 // the put's own condition did not hold
	TxnNoNumber  TxnCode = 2 // the value is no decimal number of 64 bits
	TxnOverflow  TxnCode = 3 // the sum is no number of 64 bits
	TxnLarge     TxnCode = 4 // the value came in parts: read it with Store.Value
	TxnReplyFull TxnCode = 5 // the values returned are more than MaxTxnReplyBytes
	TxnWrongType TxnCode = 6 // the key holds a value of another type
	TxnFull      TxnCode = 7 // the hash or sorted set would be larger than its bound
)

// ActionResult is what came of one action of a transaction.
type ActionResult struct {
	Code TxnCode
	// Existed says whether the key had a value before the action.
	Existed bool
	// Number is the sum of ActAdd, the deadline that ActTTL returns, the type, or how many
	// fields or members there are or were changed.
	Number int64
	// Value is that of ActGet, or with ReturnOld that of before, or the list that an action
	// returns; it is not to be changed.
	Value []byte
}

// TxnResult is what came of a transaction.
type TxnResult struct {
	// Succeeded says whether all comparisons held, so that Then was done.
	Succeeded bool
	// Actions has a result for each action of the list that was done.
	Actions []ActionResult
	// Forgotten says that the results of a transaction, which was applied before, were
	// too large for the session to keep: Actions is empty.
	Forgotten bool
}

// What precedes the results that a session keeps.
const (
	keptSucceeded byte = 1 << iota
	keptForgotten
)

// keep encodes the result for a session.
func (r *TxnResult) keep() []byte {
	size := 0
	for _, a := range r.Actions {
		size += 16 + len(a.Value)
	}
	kept := *r
	if size > maxKeptTxnBytes {
		kept.Actions, kept.Forgotten = nil, true
	}
	return kept.append([]byte{keptTxn})
}

// append encodes the result. A forgotten one has no actions.
func (r *TxnResult) append(b []byte) []byte {
	flags := byte(0)
	if r.Succeeded {
		flags |= keptSucceeded
	}
	if r.Forgotten {
		return append(b, flags|keptForgotten)
	}
	b = binary.AppendUvarint(append(b, flags), uint64(len(r.Actions)))
	for _, a := range r.Actions {
		existed := byte(0)
		if a.Existed {
			existed = 1
		}
		b = append(b, byte(a.Code), existed)
		b = binary.AppendVarint(b, a.Number)
		b = appendBytes(b, a.Value)
	}
	return b
}

// keptTxnResult is the inverse of keep, without the first byte.
func keptTxnResult(b []byte) (*TxnResult, error) {
	in := input{b: b}
	r := in.txnResult()
	if in.what != "" {
		return nil, fmt.Errorf("%w; the session's record of a transaction is cut off at %q", ErrInvalid, in.what)
	}
	return r, nil
}

// txnResult is the inverse of TxnResult.append.
func (in *input) txnResult() *TxnResult {
	flags := in.byte("flags")
	r := &TxnResult{Succeeded: flags&keptSucceeded != 0, Forgotten: flags&keptForgotten != 0}
	if r.Forgotten {
		return r
	}
	items := 0
	for range in.count("actions", &items) {
		a := ActionResult{Code: TxnCode(in.byte("code")), Existed: in.byte("existed") != 0, Number: in.varint("number")}
		if value := in.take("value", in.uvarint("value")); len(value) > 0 {
			a.Value = value
		}
		r.Actions = append(r.Actions, a)
	}
	return r
}

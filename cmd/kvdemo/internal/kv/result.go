// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package kv

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"

	"github.com/weftraft/weft/rawnode/session"
)

// Result is the outcome of one command, the same at every replica.
type Result struct {
	// Err says why the command was refused and changed nothing: ErrInvalid,
	// ErrParts, ErrNoUpload, ErrUploads, or ErrOvertaken, ErrForgotten and
	// ErrExpired of a session.
	Err error
	// Existed says whether a deleted key had a value, or whether there was
	// such a session or upload to end.
	Existed bool
	// Repeated says that the command was applied before, and this is what
	// came of it then.
	Repeated bool
	// Session is the session that was opened.
	Session session.ID
	// Missing are the parts that Err's ErrParts is about.
	Missing []int
	// Swapped says whether a system key was as wanted, and Value what it has
	// now. Value is not to be changed.
	Swapped bool
	Value   []byte
	// Txn is what came of a transaction.
	Txn *TxnResult
	// Expired is how many keys an OpExpire removed.
	Expired int64
	// Revision is that of a put, delete, finish or transaction; see Event. With Repeated it is 0.
	Revision uint64
}

// Results that need no memory of their own.
var (
	resultOK      any = Result{}
	resultExisted any = Result{Existed: true}
)

// How a session keeps a result: a byte for its kind, then the text of
// ErrInvalid, or the set of missing parts. Part of the data format.
const (
	keptOK byte = iota
	keptExisted
	keptInvalid
	keptParts
	keptNoUpload
	keptTxn // and what TxnResult.keep adds
)

// maxKeptText bounds the text of an error that a session keeps.
const maxKeptText = 200

var (
	keptOKBytes      = []byte{keptOK}
	keptExistedBytes = []byte{keptExisted}
)

// keep encodes the result of a put, delete, finish or transaction.
func (r *Result) keep() []byte {
	switch {
	case r.Err == nil && r.Txn != nil:
		return r.Txn.keep()
	case r.Err == nil && !r.Existed:
		return keptOKBytes
	case r.Err == nil:
		return keptExistedBytes
	case errors.Is(r.Err, ErrParts):
		return binary.BigEndian.AppendUint64([]byte{keptParts}, setOf(r.Missing))
	case errors.Is(r.Err, ErrNoUpload):
		return []byte{keptNoUpload}
	}
	text := r.Err.Error()
	return append([]byte{keptInvalid}, text[:min(len(text), maxKeptText)]...)
}

// kept is the inverse of keep.
func kept(b []byte) Result {
	r := Result{Repeated: true}
	switch {
	case len(b) == 1 && b[0] == keptOK:
	case len(b) == 1 && b[0] == keptExisted:
		r.Existed = true
	case len(b) == 1 && b[0] == keptNoUpload:
		r.Err = ErrNoUpload
	case len(b) == 9 && b[0] == keptParts:
		r.Missing = members(binary.BigEndian.Uint64(b[1:]))
		r.Err = missing(r.Missing)
	case len(b) > 1 && b[0] == keptTxn:
		r.Txn, r.Err = keptTxnResult(b[1:])
	case len(b) > 0 && b[0] == keptInvalid:
		r.Err = fmt.Errorf("%w; the first time: %s", ErrInvalid, b[1:])
	default:
		r.Err = fmt.Errorf("%w; the session's record of its result is %x", ErrInvalid, b)
	}
	return r
}

// setOf is the inverse of members.
func setOf(numbers []int) (set uint64) {
	for _, i := range numbers {
		set |= 1 << i
	}
	return set
}

// members are the numbers of the bits in a set, ascending.
func members(set uint64) []int {
	var m []int
	for ; set != 0; set &= set - 1 {
		m = append(m, bits.TrailingZeros64(set))
	}
	return m
}

func missing(parts []int) error { return fmt.Errorf("%w: %v", ErrParts, parts) }

// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package kv

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/weftraft/weft/rawnode/session"
)

// A result on its way from a node to a gateway:
//
//	flags      a byte
//	session, expired, revision    uvarints
//	error      if flagged: the number of its kind, a uvarint, and its text with a length in front
//	missing    if flagged: a set of parts, 8 bytes
//	value      if flagged: with its length in front
//	txn        if flagged: see TxnResult.append
const (
	resultExists byte = 1 << iota
	resultRepeated
	resultSwapped
	resultErr
	resultMissing
	resultValue
	resultTxn
)

// errorKinds are the errors of results by their numbers, from 1. A number is never given another
// meaning.
var errorKinds = []error{ErrInvalid, ErrParts, ErrNoUpload, ErrUploads, ErrOvertaken, ErrForgotten, ErrExpired, ErrFrozen}

// kindError is an error that came from another process: a text, and what it wraps.
type kindError struct {
	text string
	kind error // or nil
}

func (e kindError) Error() string { return e.text }

func (e kindError) Unwrap() error { return e.kind }

// EncodeResult implements [weft.ResultEncoder], for clients at gateways.
func (s *Store) EncodeResult(result any) ([]byte, error) {
	r, ok := result.(Result)
	if !ok {
		return nil, fmt.Errorf("the result is a %T, want a Result", result)
	}
	return r.encode(), nil
}

func (r Result) encode() []byte {
	var flags byte
	for _, f := range []struct {
		bit byte
		set bool
	}{
		{resultExists, r.Existed}, {resultRepeated, r.Repeated}, {resultSwapped, r.Swapped}, {resultErr, r.Err != nil},
		{resultMissing, len(r.Missing) > 0}, {resultValue, len(r.Value) > 0}, {resultTxn, r.Txn != nil},
	} {
		if f.set {
			flags |= f.bit
		}
	}
	b := binary.AppendUvarint([]byte{flags}, uint64(r.Session))
	b = binary.AppendUvarint(b, uint64(r.Expired))
	b = binary.AppendUvarint(b, r.Revision)
	if r.Err != nil {
		kind := slices.IndexFunc(errorKinds, func(kind error) bool { return errors.Is(r.Err, kind) })
		b = appendBytes(binary.AppendUvarint(b, uint64(kind+1)), []byte(r.Err.Error()))
	}
	if len(r.Missing) > 0 {
		var set uint64
		for _, i := range r.Missing {
			set |= 1 << i
		}
		b = binary.BigEndian.AppendUint64(b, set)
	}
	if len(r.Value) > 0 {
		b = appendBytes(b, r.Value)
	}
	if r.Txn != nil {
		b = r.Txn.append(b)
	}
	return b
}

// DecodeResult is the inverse of [Store.EncodeResult]. The result shares the bytes.
func DecodeResult(b []byte) (Result, error) {
	in := input{b: b}
	flags := in.byte("flags")
	r := Result{Existed: flags&resultExists != 0, Repeated: flags&resultRepeated != 0, Swapped: flags&resultSwapped != 0}
	r.Session, r.Expired, r.Revision = session.ID(in.uvarint("session")), int64(in.uvarint("expired")), in.uvarint("revision")
	if flags&resultErr != 0 {
		kind := in.uvarint("kind of error")
		e := kindError{text: string(in.take("error", in.uvarint("error")))}
		if kind > 0 && kind <= uint64(len(errorKinds)) {
			e.kind = errorKinds[kind-1]
		}
		r.Err = e
	}
	if flags&resultMissing != 0 {
		if set := in.take("missing parts", 8); set != nil {
			r.Missing = members(binary.BigEndian.Uint64(set))
		}
	}
	if flags&resultValue != 0 {
		r.Value = in.take("value", in.uvarint("value"))
	}
	if flags&resultTxn != 0 {
		r.Txn = in.txnResult()
	}
	if in.what != "" || len(in.b) > 0 {
		return Result{}, fmt.Errorf("%w result of %d bytes: cut off at %q, %d bytes behind its end", ErrInvalid, len(b), in.what, len(in.b))
	}
	return r, nil
}

// EncodeLook encodes actions that only read, for [Store.AnswerLook].
func EncodeLook(actions []Action) ([]byte, error) {
	c := Command{Op: OpTxn, Txn: &Txn{Then: actions}}
	return c.Checked()
}

// LookedAt returns the group, of so many, of the keys of encoded actions, which must be of one.
func LookedAt(b []byte, groups int) (group uint64, err error) {
	p, err := parse(b)
	if err != nil {
		return 0, err
	}
	if p.op != OpTxn || len(p.txn.lists[0]) == 0 {
		return 0, fmt.Errorf("%w: a %v, want actions that read", ErrInvalid, p.op)
	}
	group = GroupOf(string(p.txn.lists[0][0].key), groups)
	for _, a := range p.txn.lists[0] {
		if other := GroupOf(string(a.key), groups); other != group {
			return 0, fmt.Errorf("%w: keys of groups %d and %d, want keys of one", ErrInvalid, group, other)
		}
	}
	return group, nil
}

// AnswerLook is Look for encoded actions, with the results encoded for [DecodeLook].
func (s *Store) AnswerLook(b []byte) ([]byte, error) {
	p, err := parse(b)
	if err != nil {
		return nil, err
	}
	if p.op != OpTxn || len(p.txn.compares)+len(p.txn.lists[1]) > 0 {
		return nil, fmt.Errorf("%w: a %v, want actions that read", ErrInvalid, p.op)
	}
	actions := make([]Action, len(p.txn.lists[0]))
	for i, a := range p.txn.lists[0] {
		actions[i] = Action{Kind: a.kind, Key: string(a.key), Value: a.value}
	}
	results, err := s.Look(actions)
	if err != nil {
		return nil, err
	}
	return (&TxnResult{Actions: results}).append(nil), nil
}

// DecodeLook decodes the results of so many actions. They share the bytes.
func DecodeLook(b []byte, actions int) ([]ActionResult, error) {
	in := input{b: b}
	r := in.txnResult()
	if in.what != "" || len(in.b) > 0 || len(r.Actions) != actions {
		return nil, fmt.Errorf("%w: %d results in %d bytes, want %d", ErrInvalid, len(r.Actions), len(b), actions)
	}
	return r.Actions, nil
}

// EncodeEvents encodes events for [DecodeEvents].
func EncodeEvents(events []Event) (b []byte) {
	for _, e := range events {
		b = binary.AppendUvarint(append(b, byte(e.Kind)), e.Revision)
		b = binary.AppendUvarint(appendBytes(b, []byte(e.Key)), uint64(e.Size))
		has := byte(0)
		if e.Value != nil {
			has = 1
		}
		b = appendBytes(append(b, has), e.Value)
	}
	return b
}

// DecodeEvents is the inverse of [EncodeEvents]. The values share the bytes.
func DecodeEvents(b []byte) (events []Event, err error) {
	in := input{b: b}
	for len(in.b) > 0 && in.what == "" {
		e := Event{Kind: EventKind(in.byte("kind")), Revision: in.uvarint("revision")}
		e.Key, e.Size = string(in.take("key", in.uvarint("key"))), int64(in.uvarint("size"))
		has := in.byte("has a value")
		if value := in.take("value", in.uvarint("value")); has != 0 {
			e.Value = value
		}
		events = append(events, e)
	}
	if in.what != "" {
		return nil, fmt.Errorf("%w events: cut off at %q", ErrInvalid, in.what)
	}
	return events, nil
}

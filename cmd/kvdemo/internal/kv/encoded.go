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
		b = binary.BigEndian.AppendUint64(b, setOf(r.Missing))
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
		e := kindError{text: string(in.bytes("error"))}
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
		r.Value = in.bytes("value")
	}
	if flags&resultTxn != 0 {
		r.Txn = in.txnResult()
	}
	return r, in.end("result")
}

// EncodeActions encodes actions that read, for [DecodeActions].
func EncodeActions(actions []Action) ([]byte, error) {
	c := Command{Op: OpTxn, Txn: &Txn{Then: actions}}
	return c.Checked()
}

// DecodeActions is the inverse of [EncodeActions]; there is at least one action.
func DecodeActions(b []byte) ([]Action, error) {
	p, err := parse(b)
	if err != nil {
		return nil, err
	}
	if p.op != OpTxn || len(p.txn.lists[0]) == 0 || len(p.txn.compares)+len(p.txn.lists[1]) > 0 {
		return nil, fmt.Errorf("%w: a %v, want one list of actions", ErrInvalid, p.op)
	}
	actions := make([]Action, len(p.txn.lists[0]))
	for i, a := range p.txn.lists[0] {
		if a.kind.Writes() {
			return nil, fmt.Errorf("%w action %d: it changes the state, want one that reads", ErrInvalid, a.kind)
		}
		actions[i] = Action{Kind: a.kind, Key: string(a.key), Value: a.value}
	}
	return actions, nil
}

// EncodeResults encodes the results of actions for [DecodeResults].
func EncodeResults(results []ActionResult) []byte {
	return (&TxnResult{Actions: results}).append(nil)
}

// DecodeResults decodes the results of so many actions. They share the bytes.
func DecodeResults(b []byte, actions int) ([]ActionResult, error) {
	in := input{b: b}
	r := in.txnResult()
	if in.what != "" || len(in.b) > 0 || len(r.Actions) != actions {
		return nil, fmt.Errorf("%w: %d results in %d bytes, want %d", ErrInvalid, len(r.Actions), len(b), actions)
	}
	return r.Actions, nil
}

// bytes reads bytes with their length in front.
func (in *input) bytes(what string) []byte { return in.take(what, in.uvarint(what)) }

// end returns an error unless all was there, and nothing else.
func (in *input) end(of string) error {
	if in.what != "" {
		return fmt.Errorf("%w %s: it is cut off at its %s", ErrInvalid, of, in.what)
	}
	if len(in.b) > 0 {
		return fmt.Errorf("%w %s: %d bytes behind its end", ErrInvalid, of, len(in.b))
	}
	return nil
}

// EncodeEvents encodes events for [DecodeEvents], without their values: for subscribers, who hear which keys have changed.
func EncodeEvents(events []Event) (b []byte) {
	for _, e := range events {
		b = binary.AppendUvarint(append(b, byte(e.Kind)), e.Revision)
		b = appendBytes(b, e.Key)
	}
	return b
}

// DecodeEvents is the inverse of [EncodeEvents].
func DecodeEvents(b []byte) (events []Event, err error) {
	in := input{b: b}
	for len(in.b) > 0 && in.what == "" {
		events = append(events, Event{Kind: EventKind(in.byte("kind")), Revision: in.uvarint("revision"), Key: string(in.bytes("key"))})
	}
	return events, in.end("list of events")
}

// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

// Package envelope is what the adapters of package state share: commands that name
// a client's session, and the table that applies such a command once.
package envelope

import (
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"

	"github.com/weftraft/weft/rawnode"
	"github.com/weftraft/weft/rawnode/session"
)

// The first byte of a command says how the rest is to be read.
const (
	kindPlain  = 0 // the command
	kindOpen   = 1 // nothing
	kindInside = 2 // session, sequence, acknowledged as uvarints; the command
	kindEnd    = 3 // session as a uvarint
)

// ErrMalformed says that a command has no envelope that this version can read.
var ErrMalformed = errors.New("state: the command has no envelope of a session; make it with Plain, OpenSession, InSession or EndSession")

// Bounds of what a session keeps: bytes of one result, session.Limits.ResultBytes, and session.Limits.Results,
// each of which takes up to 14 bytes beside the result. A row of the table, with all that a session keeps, must
// fit a frame of a checkpoint.
const (
	maxResultBytes = 1 << 20
	maxKeptBytes   = 8 << 20
	maxResults     = 1 << 20
)

// CheckLimits returns an error that names every mistake in limits.
func CheckLimits(l session.Limits) error {
	err := l.Validate()
	if l.ResultBytes > maxKeptBytes {
		err = errors.Join(err, fmt.Errorf("%w: ResultBytes is %d, want at most %d", session.ErrInvalid, l.ResultBytes, maxKeptBytes))
	}
	if l.Results > maxResults {
		err = errors.Join(err, fmt.Errorf("%w: Results is %d, want at most %d", session.ErrInvalid, l.Results, maxResults))
	}
	return err
}

// limitsSetting is the name under which replicas compare limits.
const limitsSetting = "session limits"

// Settings returns what must be equal at all replicas of a state with these limits; nil: without
// sessions.
func Settings(l *session.Limits) []rawnode.Setting {
	return []rawnode.Setting{{Name: limitsSetting, Value: Describe(l)}}
}

// Describe returns limits in words, equal for equal limits alone.
func Describe(l *session.Limits) string {
	if l == nil {
		return "none"
	}
	return fmt.Sprintf("%d sessions of %d results in %d bytes", l.Sessions, l.Results, l.ResultBytes)
}

// CheckKept compares limits, as Describe put them when a state was written, with those of now.
func CheckKept(kept string, now *session.Limits) error {
	if is := Describe(now); kept != is {
		return fmt.Errorf("%w: the limits of sessions are %q, those with which this state was written %q: give the limits of before, the same at all replicas. A group has its limits for life; a Snapshot can be restored as a group with others", ErrLimits, is, kept)
	}
	return nil
}

// ErrLimits says that a state was written with other limits of sessions.
var ErrLimits = errors.New("state: other limits of sessions")

// ErrPanicked is the result of a command on which the machine panicked unharmed.
var ErrPanicked = errors.New("state: Apply panicked at the command, which has had no effect")

// ErrResult says that a result cannot be kept for a client that tries again.
var ErrResult = errors.New("state: the result cannot be kept by a session; return nil, bool, int, int64, uint64, or []byte or string of at most 1 MiB")

// A RefusedError is the result of a command that its session did not let pass.
type RefusedError struct {
	Session  session.ID
	Sequence uint64
	Verdict  session.Verdict
}

// Error implements error.
func (e *RefusedError) Error() string {
	return fmt.Sprintf("state: session %d, command %d: %v", e.Session, e.Sequence, e.Verdict)
}

// Plain returns the envelope of a command outside any session.
func Plain(command []byte) []byte { return append([]byte{kindPlain}, command...) }

// Open returns a command that opens a session.
func Open() []byte { return []byte{kindOpen} }

// Inside returns the envelope of a command of a session.
func Inside(id session.ID, sequence, acknowledged uint64, command []byte) []byte {
	b := binary.AppendUvarint([]byte{kindInside}, uint64(id))
	b = binary.AppendUvarint(b, sequence)
	b = binary.AppendUvarint(b, acknowledged)
	return append(b, command...)
}

// End returns a command that ends a session.
func End(id session.ID) []byte { return binary.AppendUvarint([]byte{kindEnd}, uint64(id)) }

// Sessions applies commands with envelopes. It is used by one goroutine at a time.
type Sessions struct{ table *session.Table }

// new returns an empty table.
func new(limits session.Limits) (*Sessions, error) { return Load(limits, nil) }

// Load makes a table of rows; nil: none.
func Load(limits session.Limits, rows iter.Seq2[session.ID, []byte]) (*Sessions, error) {
	if rows == nil {
		rows = func(func(session.ID, []byte) bool) {}
	}
	t, err := session.Load(limits, rows)
	if err != nil {
		return nil, err
	}
	return &Sessions{t}, nil
}

// Rows yields the rows of a map, in any order.
func Rows(rows map[session.ID][]byte) iter.Seq2[session.ID, []byte] { return maps.All(rows) }

// EncodeRow returns a row with its id, for frames.
func EncodeRow(id session.ID, row []byte) []byte {
	return append(binary.AppendUvarint(nil, uint64(id)), row...)
}

// ParseRow reads what EncodeRow has made. The row is a copy.
func ParseRow(b []byte) (id session.ID, row []byte, ok bool) {
	v, n := binary.Uvarint(b)
	if n <= 0 {
		return 0, nil, false
	}
	return session.ID(v), slices.Clone(b[n:]), true
}

// All yields every row.
func (s *Sessions) All() iter.Seq2[session.ID, []byte] { return s.table.All() }

// Changes yields the rows that changed since it was called last, nil for those that
// are to be removed.
func (s *Sessions) Changes() iter.Seq2[session.ID, []byte] { return s.table.Changes() }

// Apply returns the result of a command, which apply computes if it was not applied
// before. An error is apply's own, and leaves the table as it was.
func (s *Sessions) Apply(envelope []byte, apply func([]byte) (any, error)) (any, error) {
	if len(envelope) == 0 {
		return ErrMalformed, nil
	}
	kind, rest := envelope[0], envelope[1:]
	switch kind {
	case kindPlain:
		return apply(rest)
	case kindOpen:
		if len(rest) == 0 {
			return s.table.Open(), nil
		}
	case kindInside:
		var n [3]uint64
		if rest = uvarints(rest, n[:]); rest != nil {
			return s.inside(session.ID(n[0]), n[1], n[2], rest, apply)
		}
	case kindEnd:
		var n [1]uint64
		if rest = uvarints(rest, n[:]); rest != nil && len(rest) == 0 {
			return s.table.End(session.ID(n[0])), nil
		}
	}
	return ErrMalformed, nil
}

// uvarints fills in numbers and returns what follows, or nil if they are not there.
func uvarints(b []byte, numbers []uint64) []byte {
	for i := range numbers {
		v, n := binary.Uvarint(b)
		if n <= 0 {
			return nil
		}
		numbers[i], b = v, b[n:]
	}
	if b == nil {
		b = []byte{}
	}
	return b
}

func (s *Sessions) inside(id session.ID, sequence, acknowledged uint64, command []byte, apply func([]byte) (any, error)) (any, error) {
	verdict, kept := s.table.Admit(id, sequence)
	switch verdict {
	case session.Fresh:
	case session.Repeated:
		return decodeResult(kept), nil
	default:
		return &RefusedError{Session: id, Sequence: sequence, Verdict: verdict}, nil
	}
	result, err := apply(command)
	if err != nil {
		return nil, err
	}
	kept, bad := encodeResult(result)
	if bad != nil {
		result = bad
	}
	return result, s.table.Applied(id, sequence, acknowledged, kept)
}

// What a session keeps of a result begins with its type.
const (
	resultNil    = 0
	resultBytes  = 1
	resultString = 2
	resultBad    = 3
	resultPanic  = 4
	resultBool   = 5 // 0 or 1
	resultInt    = 6 // a varint, as the next
	resultInt64  = 7
	resultUint64 = 8 // a uvarint

	// For gateways only.
	resultSession   = 9  // a uvarint
	resultRefused   = 10 // session, sequence, verdict as uvarints
	resultMalformed = 11
	resultError     = 12 // its text
)

// EncodeResult encodes a result for a caller at a gateway, or says why it has no bytes. Of an error other than those
// of this package the text arrives.
func EncodeResult(result any) ([]byte, error) {
	switch r := result.(type) {
	case session.ID:
		return binary.AppendUvarint([]byte{resultSession}, uint64(r)), nil
	case *RefusedError:
		b := []byte{resultRefused}
		for _, v := range [...]uint64{uint64(r.Session), r.Sequence, uint64(r.Verdict)} {
			b = binary.AppendUvarint(b, v)
		}
		return b, nil
	case error:
		switch {
		case errors.Is(r, ErrMalformed):
			return []byte{resultMalformed}, nil
		case errors.Is(r, ErrResult):
			return []byte{resultBad}, nil
		case !errors.Is(r, ErrPanicked):
			return keep(resultError, r.Error())
		}
	}
	return encodeResult(result)
}

// DecodeResult is the inverse of EncodeResult.
func DecodeResult(b []byte) (any, error) {
	var n [3]uint64
	switch {
	case len(b) == 0:
	case b[0] == resultSession && uvarints(b[1:], n[:1]) != nil:
		return session.ID(n[0]), nil
	case b[0] == resultRefused && uvarints(b[1:], n[:]) != nil:
		return &RefusedError{Session: session.ID(n[0]), Sequence: n[1], Verdict: session.Verdict(n[2])}, nil
	case b[0] == resultMalformed:
		return ErrMalformed, nil
	case b[0] == resultBad:
		return ErrResult, nil
	case b[0] == resultError:
		return errors.New(string(b[1:])), nil
	default:
		if r := decodeResult(b); r != any(ErrResult) {
			return r, nil
		}
	}
	return nil, fmt.Errorf("state: %d bytes are no result of a state of this package", len(b))
}

// encodeResult encodes, as resultBad, what cannot be kept, and says why.
func encodeResult(result any) (encoded []byte, err error) {
	switch r := result.(type) {
	case nil:
		return []byte{resultNil}, nil
	case []byte:
		return keep(resultBytes, r)
	case string:
		return keep(resultString, r)
	case bool:
		if r {
			return []byte{resultBool, 1}, nil
		}
		return []byte{resultBool, 0}, nil
	case int:
		return binary.AppendVarint([]byte{resultInt}, int64(r)), nil
	case int64:
		return binary.AppendVarint([]byte{resultInt64}, r), nil
	case uint64:
		return binary.AppendUvarint([]byte{resultUint64}, r), nil
	case error:
		if errors.Is(r, ErrPanicked) {
			return []byte{resultPanic}, nil
		}
	}
	return []byte{resultBad}, fmt.Errorf("%w; the command returned a %T", ErrResult, result)
}

func keep[T []byte | string](kind byte, result T) (encoded []byte, err error) {
	if len(result) > maxResultBytes {
		return []byte{resultBad}, fmt.Errorf("%w; the command returned %d bytes", ErrResult, len(result))
	}
	return append([]byte{kind}, result...), nil
}

func decodeResult(b []byte) any {
	if len(b) > 0 {
		switch b[0] {
		case resultNil:
			return nil
		case resultBytes:
			return append([]byte{}, b[1:]...)
		case resultString:
			return string(b[1:])
		case resultPanic:
			return ErrPanicked
		}
		return decodeNumber(b[0], b[1:])
	}
	return ErrResult
}

func decodeNumber(kind byte, b []byte) any {
	signed, n := binary.Varint(b)
	unsigned, m := binary.Uvarint(b)
	switch {
	case kind == resultBool && len(b) == 1:
		return b[0] == 1
	case kind == resultInt && n > 0:
		return int(signed)
	case kind == resultInt64 && n > 0:
		return signed
	case kind == resultUint64 && m > 0:
		return unsigned
	}
	return ErrResult
}

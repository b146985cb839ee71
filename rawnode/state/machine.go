// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package state

import (
	"io"

	"github.com/weftraft/weft/rawnode/session"
	"github.com/weftraft/weft/rawnode/state/internal/envelope"
)

// Machine is a user's replicated state in memory.
//
// At most one of its methods is called at a time, that of [Digester] counted. Functions of
// [Memory.View] may read beside Write and Digest.
type Machine interface {
	// Apply changes the state by one command and returns a result for the caller of
	// Propose: any value, an error too. The state after it, and the result, must be a
	// function of the state before it and of the command alone, or replicas come to
	// different states: no clock, no randomness, no order of a map. A command that needs
	// the time or a random number carries it, chosen before Propose. The command may be
	// kept, and must not be changed. The caller of Propose uses the result while later
	// commands are applied, so a result is a copy: no pointer, slice or map of the state.
	Apply(command []byte) (result any)
	// Write writes the state. It must not change the state. An error of w is to be
	// returned.
	Write(w io.Writer) error
	// Read fills an empty state with what Write has written, and that alone: the state
	// that was written, to the byte, or replicas differ. JSON does not keep a string
	// that is no UTF-8; Apply refuses such a command, or the state has it as []byte. An
	// error says that r has something else, or is an error of r.
	Read(r io.Reader) error
}

// Forker is an optional interface of a [Machine] that can set its present state aside
// at little cost, for example as its maps are copied on write. Without it, commands
// wait while Write writes, and readers behind a command that waits.
type Forker interface {
	// Fork returns a copy of the state, as [Map] makes one, that stays as it is while the original goes on.
	// Meanwhile no other method of the original is called, and no function of View. Of the copy
	// either Write or Digest is called, once, by another goroutine; another copy may be read, and
	// the original changed, at the same time.
	Fork() Machine
}

// Unharmed is an optional interface of a [Machine] that panics of Apply leave as the command found it,
// because Apply looks at the whole command before it changes anything. Such a panic becomes the command's
// result, [ErrPanicked], and a line of the log with the stack. Without Unharmed the process ends, at each
// replica and again at each start, because a machine may be halfway through a change. A replica whose
// program has Unharmed gets past a command that ends the others.
type Unharmed interface {
	// UnharmedByPanics is not called.
	UnharmedByPanics()
}

// Digester is an optional interface of a [Machine] whose replicas are to be compared in the background
// (see Comparable in package weft): without it, only the results of commands are compared.
type Digester interface {
	// Digest writes bytes from which a sum of the state is made: the same bytes for equal states, at
	// all replicas and after a restart, and others for different states. A method Write that keeps
	// to an order, not that of a map, will do; the sum of a large state may instead be kept up to
	// date by Apply, and written here. Digest must not change the state; an error of w is to be
	// returned. Commands wait while Digest writes, unless the machine is a [Forker]: then Digest is
	// called of the copy.
	Digest(w io.Writer) error
}

// Results of commands with envelopes of sessions; see [Options].Sessions.
var (
	// ErrPanicked is the result of a command on which Apply of an [Unharmed] machine panicked. The
	// command has had no effect.
	ErrPanicked = envelope.ErrPanicked
	// ErrMalformed is the result of a command without an envelope.
	ErrMalformed = envelope.ErrMalformed
	// ErrResult wraps the result of a command inside a session whose own result is of a
	// type that a session cannot keep, or too large: it must be nil, bool, int, int64,
	// uint64, or []byte or string of at most 1 MiB. The command has taken effect.
	ErrResult = envelope.ErrResult
)

// RefusedError is the result of a command that its session did not let pass, as
// Verdict says; the command has not taken effect by this try.
type RefusedError = envelope.RefusedError

// Plain returns the envelope of a command outside any session, which is applied as
// often as it is proposed with success.
func Plain(command []byte) []byte { return envelope.Plain(command) }

// OpenSession returns a command that opens a session; its result is the session.ID.
func OpenSession() []byte { return envelope.Open() }

// InSession returns the envelope of a command of a session, which may be proposed
// again, at any node, and takes effect once. Sequence is the command's number in the
// session, from 1 on; the client has the results up to acknowledged, or 0.
func InSession(id session.ID, sequence, acknowledged uint64, command []byte) []byte {
	return envelope.Inside(id, sequence, acknowledged, command)
}

// EndSession returns a command that ends a session; its result is true if there was
// such a session.
func EndSession(id session.ID) []byte { return envelope.End(id) }

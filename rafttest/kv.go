// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package rafttest

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/weftraft/weft/internal/world"
)

// The replicated state machine is a small key-value store with sessions: a
// command has an id, and a command that is applied again (because its client
// sent it again) changes nothing and has the result of the first time.

const (
	storeKeys = 8 // keys are 0 to storeKeys-1; clients use the first few
	probeKey  = storeKeys - 1
	burstKey  = storeKeys - 2
)

// verb is the kind of a command.
type verb byte

const (
	verbGet verb = iota // never in the log: reads go through ReadIndex
	verbPut
	verbSwap // compare and swap
)

// commandID names a command: a client has a single command under way at a time,
// and numbers its commands.
type commandID struct {
	client uint32
	seq    uint32
}

// command is the payload of an entry.
type command struct {
	id commandID
	// attempt numbers the sendings of all commands, so that no two are the same bytes.
	attempt uint32
	verb    verb
	key     uint8
	// value is what to write. All writes of a run have different values, so a
	// history says a lot; 0 is the value of a key that was never written.
	value uint32
	// old is the value for a swap to replace, if present.
	old uint32
	// padding makes the entry larger.
	padding int
}

// result is the outcome of a command.
type result struct {
	value uint32 // a get: the value read
	done  bool   // a swap: the old value was there
}

const commandSize = 4 + 4 + 1 + 1 + 4 + 4 + 4

func (c command) encode() []byte {
	b := make([]byte, 0, commandSize+c.padding)
	b = binary.LittleEndian.AppendUint32(b, c.id.client)
	b = binary.LittleEndian.AppendUint32(b, c.id.seq)
	b = append(b, byte(c.verb), c.key)
	b = binary.LittleEndian.AppendUint32(b, c.value)
	b = binary.LittleEndian.AppendUint32(b, c.old)
	b = binary.LittleEndian.AppendUint32(b, c.attempt)
	return c.pad(b)
}

// pad appends the padding: bytes derived from the command, so that any other
// bytes in their place are noticed.
func (c command) pad(b []byte) []byte {
	b = slices.Grow(b, c.padding)
	x := uint64(c.value)<<32 | uint64(c.id.client)<<8 | 1
	for n := c.padding; n > 0; n -= 8 {
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
		var word [8]byte
		binary.LittleEndian.PutUint64(word[:], x)
		b = append(b, word[:min(n, 8)]...)
	}
	return b
}

func decodeCommand(b []byte) (command, error) {
	if len(b) < commandSize {
		return command{}, fmt.Errorf("a command has %d bytes; at least %d are needed", len(b), commandSize)
	}
	le := binary.LittleEndian
	c := command{
		id:      commandID{client: le.Uint32(b), seq: le.Uint32(b[4:])},
		verb:    verb(b[8]),
		key:     b[9],
		value:   le.Uint32(b[10:]),
		old:     le.Uint32(b[14:]),
		attempt: le.Uint32(b[18:]),
		padding: len(b) - commandSize,
	}
	if c.key >= storeKeys {
		return command{}, fmt.Errorf("a command has key %d; keys end at %d", c.key, storeKeys-1)
	}
	if !bytes.Equal(c.pad(nil), b[commandSize:]) {
		return command{}, fmt.Errorf("command %v has padding of %d bytes that is not its own", c.id, c.padding)
	}
	return c, nil
}

// session is what the store knows of a client's last command.
type session struct {
	client uint32
	seq    uint32
	done   bool
}

// store is a replica of the state machine.
type store struct {
	values   [storeKeys]uint32
	sessions []session // by client
	// noSessions is a planted bug: commands are applied as often as they stand
	// in the log.
	noSessions bool
}

// apply applies a command and returns the outcome.
func (s *store) apply(c command) result {
	at, known := s.session(c.id.client)
	if known && s.sessions[at].seq >= c.id.seq && !s.noSessions {
		return result{done: s.sessions[at].done}
	}
	done := true
	if c.verb == verbSwap {
		done = s.values[c.key] == c.old
	}
	if done {
		s.values[c.key] = c.value
	}
	now := session{client: c.id.client, seq: c.id.seq, done: done}
	if known {
		s.sessions[at] = now
	} else {
		s.sessions = slices.Insert(s.sessions, at, now)
	}
	return result{done: done}
}

func (s *store) session(client uint32) (at int, known bool) {
	return slices.BinarySearchFunc(s.sessions, client, func(x session, c uint32) int { return int(x.client) - int(c) })
}

// has reports whether the command was applied.
func (s *store) has(id commandID) bool {
	at, known := s.session(id.client)
	return known && s.sessions[at].seq >= id.seq
}

// encode returns the state: equal states have equal encodings.
func (s *store) encode() []byte {
	b := make([]byte, 0, 4*storeKeys+9*len(s.sessions))
	for _, v := range s.values {
		b = binary.LittleEndian.AppendUint32(b, v)
	}
	for _, x := range s.sessions {
		b = binary.LittleEndian.AppendUint32(b, x.client)
		b = binary.LittleEndian.AppendUint32(b, x.seq)
		done := byte(0)
		if x.done {
			done = 1
		}
		b = append(b, done)
	}
	return b
}

// decode replaces the state.
func (s *store) decode(b []byte) error {
	if len(b) < 4*storeKeys || (len(b)-4*storeKeys)%9 != 0 {
		return fmt.Errorf("an encoded store has %d bytes; it is %d and a multiple of 9", len(b), 4*storeKeys)
	}
	for i := range s.values {
		s.values[i] = binary.LittleEndian.Uint32(b[4*i:])
	}
	s.sessions = nil
	for b = b[4*storeKeys:]; len(b) > 0; b = b[9:] {
		s.sessions = append(s.sessions, session{
			client: binary.LittleEndian.Uint32(b),
			seq:    binary.LittleEndian.Uint32(b[4:]),
			done:   b[8] == 1,
		})
	}
	return nil
}

// digest returns a number, the same for equal states.
func (s *store) digest() uint64 { return world.Mix(world.HashBegin, s.encode()) }

// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package nodes

import (
	"encoding/binary"
	"fmt"

	"github.com/weftraft/weft/rawnode/session"
)

// verb is the kind of an operation.
type verb byte

const (
	verbGet  verb = iota // never in the log
	verbPut              // writes a value
	verbSwap             // writes a value if a given other value is there
	verbOpen             // opens a session
	endOfVerbs
)

var verbNames = [endOfVerbs]string{"get", "put", "swap", "open"}

func (v verb) String() string { return verbNames[v] }

// command is the payload of an entry.
type command struct {
	verb    verb
	key     uint8
	session session.ID
	seq     uint64
	acked   uint64 // the client has the results up to here
	value   uint32 // all writes of a run have different values; 0 is never written
	old     uint32 // the value to replace, of a swap
	op      uint32 // the operation of the try
	attempt uint32 // numbers the tries of all operations
	padding int
}

const (
	storeKeys    = 6
	commandBytes = 2 + 3*8 + 4*4
)

func (c command) encode() []byte {
	b := make([]byte, 0, commandBytes+c.padding)
	b = append(b, byte(c.verb), c.key)
	for _, v := range []uint64{uint64(c.session), c.seq, c.acked} {
		b = binary.LittleEndian.AppendUint64(b, v)
	}
	for _, v := range []uint32{c.value, c.old, c.op, c.attempt} {
		b = binary.LittleEndian.AppendUint32(b, v)
	}
	return b[:commandBytes+c.padding]
}

func decodeCommand(b []byte) (command, error) {
	if len(b) < commandBytes || b[1] >= storeKeys || verb(b[0]) >= endOfVerbs {
		return command{}, fmt.Errorf("no command: %d bytes, %x", len(b), b[:min(len(b), 8)])
	}
	u64 := func(i int) uint64 { return binary.LittleEndian.Uint64(b[2+8*i:]) }
	u32 := func(i int) uint32 { return binary.LittleEndian.Uint32(b[2+24+4*i:]) }
	return command{
		verb: verb(b[0]), key: b[1], session: session.ID(u64(0)), seq: u64(1), acked: u64(2),
		value: u32(0), old: u32(1), op: u32(2), attempt: u32(3), padding: len(b) - commandBytes,
	}, nil
}

// answer is what the state machine returns for a command.
type answer struct {
	verdict session.Verdict
	session session.ID // the opened session
	done    bool       // a swap found the value to replace
	value   uint32     // a get: the value read
}

// cell is a key's value. Its padding is not kept, but counts where the state
// is written or sent.
type cell struct {
	value   uint32
	padding uint32
}

// store is the state machine of one group at one node: a few registers, the
// sessions of clients, and the number of commands applied.
type store struct {
	registers [storeKeys]cell
	sessions  *session.Table
	applied   uint64
	noTable   bool // a planted bug: sessions are not looked at
}

func newStore(limits session.Limits) (*store, error) {
	t, err := session.New(limits)
	return &store{sessions: t}, err
}

// apply applies a command.
func (s *store) apply(c command) (answer, error) {
	s.applied++
	if c.verb == verbOpen {
		return answer{session: s.sessions.Open()}, nil
	}
	verdict, before := s.sessions.Admit(c.session, c.seq)
	if s.noTable && verdict == session.Repeated {
		verdict = session.Fresh
	}
	a := answer{verdict: verdict}
	switch verdict {
	case session.Repeated:
		a.done = before[0] == 1
	case session.Fresh:
		r := &s.registers[c.key]
		if a.done = c.verb == verbPut || r.value == c.old; a.done {
			*r = cell{c.value, uint32(c.padding)}
		}
		result := []byte{0}
		if a.done {
			result[0] = 1
		}
		if s.noTable && c.seq <= c.acked {
			return a, nil
		}
		if err := s.sessions.Applied(c.session, c.seq, c.acked, result); err != nil && !s.noTable {
			return a, err
		}
	}
	return a, nil
}

// size is what the state takes on a disk or a link.
func (s *store) size() (n int) {
	for _, r := range s.registers {
		n += int(r.padding)
	}
	return n + 64*s.sessions.Len()
}

// encode returns the state without padding: equal states have equal bytes.
func (s *store) encode() []byte {
	b := binary.LittleEndian.AppendUint64(nil, s.applied)
	for _, r := range s.registers {
		b = binary.LittleEndian.AppendUint32(b, r.value)
		b = binary.LittleEndian.AppendUint32(b, r.padding)
	}
	for id, row := range s.sessions.All() {
		b = binary.AppendUvarint(b, uint64(id))
		b = binary.AppendUvarint(b, uint64(len(row)))
		b = append(b, row...)
	}
	return b
}

const storeHead = 8 + 8*storeKeys

// decodeStore is the inverse of encode.
func decodeStore(b []byte, limits session.Limits) (*store, error) {
	if len(b) < storeHead {
		return nil, fmt.Errorf("a store of %d bytes, want %d or more", len(b), storeHead)
	}
	s := &store{applied: binary.LittleEndian.Uint64(b)}
	for i := range s.registers {
		at := b[8+8*i:]
		s.registers[i] = cell{binary.LittleEndian.Uint32(at), binary.LittleEndian.Uint32(at[4:])}
	}
	rest, bad := b[storeHead:], false
	var err error
	s.sessions, err = session.Load(limits, func(yield func(session.ID, []byte) bool) {
		for len(rest) > 0 {
			id, n := binary.Uvarint(rest)
			size, m := binary.Uvarint(rest[max(n, 0):])
			if n <= 0 || m <= 0 || size > uint64(len(rest)-n-m) {
				bad = true
				return
			}
			end := n + m + int(size)
			row := rest[n+m : end]
			rest = rest[end:]
			if !yield(session.ID(id), row) {
				return
			}
		}
	})
	if err == nil && bad {
		err = fmt.Errorf("a store of %d bytes is cut off", len(b))
	}
	return s, err
}

// encodeAnswer makes bytes of a result, for gateways.
func encodeAnswer(result any) ([]byte, error) {
	a := result.(answer)
	b := binary.LittleEndian.AppendUint64([]byte{byte(a.verdict), 0}, uint64(a.session))
	if a.done {
		b[1] = 1
	}
	return binary.LittleEndian.AppendUint32(b, a.value), nil
}

func decodeAnswer(b []byte) answer {
	return answer{verdict: session.Verdict(b[0]), done: b[1] == 1, session: session.ID(binary.LittleEndian.Uint64(b[2:])), value: binary.LittleEndian.Uint32(b[10:])}
}

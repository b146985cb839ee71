// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package kv

import (
	"encoding/binary"
	"fmt"
)

// Op says what a command does. The numbers are part of the log's format.
type Op byte

const (
	OpPut    Op = 1 // sets the key's value
	OpDelete Op = 2 // removes the key
)

// Command is one change of the state: what a log entry carries.
type Command struct {
	Op    Op
	Key   string
	Value []byte // of OpPut
}

// Check returns nil, or ErrInvalid with what is wrong.
func (c Command) Check() error {
	if err := CheckKey(c.Key); err != nil {
		return err
	}
	return CheckValue(len(c.Value))
}

// Encode returns the command as bytes: the op, the key's length as a uvarint,
// the key, and the value up to the end.
func (c Command) Encode() []byte {
	b := make([]byte, 0, 1+binary.MaxVarintLen32+len(c.Key)+len(c.Value))
	b = append(b, byte(c.Op))
	b = binary.AppendUvarint(b, uint64(len(c.Key)))
	b = append(b, c.Key...)
	return append(b, c.Value...)
}

// Decode is the inverse of Encode. It refuses with ErrInvalid whatever Check
// refuses or Encode cannot have made. The value shares b's memory.
func Decode(b []byte) (Command, error) {
	if len(b) == 0 {
		return Command{}, fmt.Errorf("%w command: it is empty", ErrInvalid)
	}
	c := Command{Op: Op(b[0])}
	if c.Op != OpPut && c.Op != OpDelete {
		return Command{}, fmt.Errorf("%w command: op %d, want %d (put) or %d (delete)", ErrInvalid, b[0], OpPut, OpDelete)
	}
	n, w := binary.Uvarint(b[1:])
	if w <= 0 || n > uint64(len(b)-1-w) {
		return Command{}, fmt.Errorf("%w command: the key goes beyond its %d bytes", ErrInvalid, len(b))
	}
	rest := b[1+w:]
	c.Key, c.Value = string(rest[:n]), rest[n:]
	if c.Op == OpDelete && len(c.Value) > 0 {
		return Command{}, fmt.Errorf("%w command: a delete with %d bytes of value", ErrInvalid, len(c.Value))
	}
	return c, c.Check()
}

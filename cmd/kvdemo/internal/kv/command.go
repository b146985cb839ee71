// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package kv

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"

	"github.com/weftraft/weft/rawnode/session"
)

// Op says what a command does. The numbers are part of the log's format.
type Op byte

const (
	OpPut         Op = 1 // sets the key's value
	OpDelete      Op = 2 // removes the key
	OpOpenSession Op = 3 // begins a session
	opEndSession  Op = 4 // ends Session
	OpPart        Op = 5 // stores a part of an upload
	OpFinish      Op = 6 // makes an upload the key's value
	opAbort       Op = 7 // drops an upload
	OpSystem      Op = 8 // compares a system key with Want, and sets it to Value
	// From level 1 on; see LevelKey.
	OpTxn    Op = 9  // does a transaction
	OpExpire Op = 10 // removes keys whose deadline has passed

	lastOp     = OpExpire
	lastOfBase = OpSystem // level 0
	// inSession is added to the op of a command that is part of a session.
	inSession = 0x80
)

// String returns the op's name.
func (o Op) String() string {
	names := [...]string{"none", "put", "delete", "open session", "end session", "part", "finish", "abort", "system", "transaction", "expire"}
	if int(o) < len(names) {
		return names[o]
	}
	return fmt.Sprintf("Op(%d)", byte(o))
}

// sessions says whether the op may be part of a session. The others need none:
// they can be repeated, or cannot be told apart by a client that has no session.
func (o Op) sessions() bool { return o == OpPut || o == OpDelete || o == OpFinish || o == OpTxn }

// UploadID names an upload. The client chooses it, at random.
type UploadID [16]byte

func (id UploadID) String() string { return hex.EncodeToString(id[:]) }

// Command is one change of the state: what a log entry carries.
type Command struct {
	Op    Op
	Key   string // of OpPut, OpDelete, OpFinish, OpSystem
	Value []byte // of OpPut, OpPart, OpSystem; empty removes a system key
	Want  []byte // of OpSystem: what must be there; empty means nothing

	Upload UploadID // of OpPart, OpFinish, opAbort
	Size   int64    // of OpPart, OpFinish: the whole value's, at least 1
	Part   int      // of OpPart: which, from 0
	SHA256 [32]byte // of OpFinish: the whole value's

	Txn    *Txn    // of OpTxn
	Expire *Expire // of OpExpire

	// Session, unless 0, is the session that the command is part of: OpPut,
	// OpDelete, OpFinish and OpTxn can be. Its Sequence is at least 1 and grows;
	// results up to Acknowledged have reached the client. opEndSession has only
	// Session.
	Session      session.ID
	Sequence     uint64
	Acknowledged uint64

	// checked is what Checked returned. The other fields are not changed behind it.
	checked []byte
}

// Check returns nil, or ErrInvalid with what is wrong.
func (c Command) Check() error {
	_, err := c.Checked()
	return err
}

// Checked is Encode, or ErrInvalid with what is wrong. What was found is kept, so that
// each layer can ask; the command is not to be changed afterwards.
func (c *Command) Checked() ([]byte, error) {
	if c.checked == nil {
		b, err := c.check()
		if err != nil {
			return nil, err
		}
		c.checked = b
	}
	return c.checked, nil
}

func (c *Command) check() ([]byte, error) {
	if len(c.Value) > MaxInlineBytes || len(c.Want) > maxSystemValueBytes {
		return nil, fmt.Errorf("%w %v: %d bytes of value, want at most %d; send a larger one in parts", ErrInvalid, c.Op, max(len(c.Value), len(c.Want)), MaxInlineBytes)
	}
	if c.Txn != nil && len(c.Txn.Compares)+len(c.Txn.Then)+len(c.Txn.Else) > MaxTxnItems {
		return nil, fmt.Errorf("%w transaction: %d comparisons and actions, want at most %d; split it", ErrInvalid, len(c.Txn.Compares)+len(c.Txn.Then)+len(c.Txn.Else), MaxTxnItems)
	}
	if c.Txn != nil && c.Txn.digestBytes() > maxTxnDigestBytes {
		return nil, fmt.Errorf("%w transaction: its comparisons by SHA-256 would have each node read up to %d bytes of values, want at most %d, where a value counts %d: compare fewer keys, or revisions",
			ErrInvalid, c.Txn.digestBytes(), maxTxnDigestBytes, MaxInlineBytes)
	}
	if c.Txn != nil {
		if err := c.Txn.checkScores(); err != nil {
			return nil, err
		}
	}
	b := c.Encode()
	if len(b) > MaxCommandBytes {
		return nil, fmt.Errorf("%w %v: %d bytes, want at most %d; split it", ErrInvalid, c.Op, len(b), MaxCommandBytes)
	}
	_, err := parse(b)
	return b, err
}

// Encode returns the command as bytes: the op; in a session its id, sequence and
// acknowledged; then what the op has. Numbers are uvarints, and bytes that do
// not go up to the end have their length in front. Values have a checksum in
// front, and are stored as they stand here.
func (c Command) Encode() []byte {
	b := make([]byte, 0, 128+len(c.Key)+len(c.Want)+len(c.Value))
	op := byte(c.Op)
	member := c.Session != 0 && c.Op != opEndSession
	if member {
		op |= inSession
	}
	b = append(b, op)
	if member {
		b = binary.AppendUvarint(b, uint64(c.Session))
		b = binary.AppendUvarint(b, c.Sequence)
		b = binary.AppendUvarint(b, c.Acknowledged)
	}
	switch c.Op {
	case OpPut:
		b = appendBytes(b, c.Key)
		b = appendInline(b, []byte(c.Key), c.Value)
	case OpDelete:
		b = append(b, c.Key...)
	case opEndSession:
		b = binary.AppendUvarint(b, uint64(c.Session))
	case OpPart:
		b = append(b, c.Upload[:]...)
		b = binary.AppendUvarint(b, uint64(c.Size))
		b = binary.AppendUvarint(b, uint64(c.Part))
		b = binary.LittleEndian.AppendUint32(b, partSum(c.Upload, c.Part, c.Value))
		b = append(b, c.Value...)
	case OpFinish:
		b = append(b, c.Upload[:]...)
		b = binary.AppendUvarint(b, uint64(c.Size))
		b = append(b, c.SHA256[:]...)
		b = append(b, c.Key...)
	case opAbort:
		b = append(b, c.Upload[:]...)
	case OpSystem:
		b = appendBytes(b, c.Key)
		b = appendBytes(b, c.Want)
		b = append(b, c.Value...)
	case OpTxn:
		b = c.Txn.appendTo(b)
	case OpExpire:
		b = c.Expire.appendTo(b)
	}
	return b
}

func appendBytes[T string | []byte](b []byte, s T) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

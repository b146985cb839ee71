// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package kv

import (
	"encoding/binary"
	"fmt"

	"github.com/weftraft/weft/rawnode/session"
)

// parsed is a command taken apart. It shares the memory of the bytes that it was
// made from.
type parsed struct {
	op                     Op
	key                    []byte
	value                  []byte // of OpPut and OpPart; of OpSystem the new value
	record                 []byte // value as it is stored, checksum in front
	want                   []byte
	upload                 UploadID
	size                   int64
	part                   int
	sha256                 []byte
	txn                    *parsedTxn
	expire                 *parsedExpire
	session                session.ID // 0 if it is part of none
	sequence, acknowledged uint64
}

// input takes bytes apart; after a mistake it yields zeros.
type input struct {
	b    []byte
	what string // the first thing that was cut off
}

func (in *input) cut(what string) {
	if in.what == "" {
		in.what = what
	}
	in.b = nil
}

func (in *input) uvarint(what string) uint64 {
	v, n := binary.Uvarint(in.b)
	if n <= 0 {
		in.cut(what)
		return 0
	}
	in.b = in.b[n:]
	return v
}

func (in *input) take(what string, n uint64) []byte {
	if n > uint64(len(in.b)) {
		in.cut(what)
		return nil
	}
	v := in.b[:n:n]
	in.b = in.b[n:]
	return v
}

func (in *input) rest() []byte {
	v := in.b
	in.b = nil
	return v
}

// level returns the level from which on the command is known.
func (p *parsed) level() int {
	switch {
	case p.op <= lastOfBase:
		return 0
	case p.op == OpTxn:
		return p.txn.level
	}
	return 1
}

// parse is the inverse of Encode. It refuses with ErrInvalid what no good
// command encodes to; what it accepts, all replicas accept.
func parse(b []byte) (parsed, error) {
	p, err := open(b)
	if err == nil {
		err = p.check()
	}
	if err != nil {
		return parsed{}, err
	}
	return p, nil
}

// open is parse, but for what it takes to look at values.
func open(b []byte) (parsed, error) {
	if len(b) == 0 {
		return parsed{}, fmt.Errorf("%w command: it is empty", ErrInvalid)
	}
	p := parsed{op: Op(b[0] &^ inSession)}
	if p.op == 0 || p.op > lastOp || b[0]&inSession != 0 && !p.op.sessions() {
		return parsed{}, fmt.Errorf("%w command: op %d, want 1 to %d, and %d more for put, delete, finish and transaction in a session", ErrInvalid, b[0], lastOp, inSession)
	}
	in := input{b: b[1:]}
	if b[0]&inSession != 0 {
		p.session, p.sequence, p.acknowledged = session.ID(in.uvarint("session")), in.uvarint("sequence"), in.uvarint("acknowledged")
		if in.what == "" && (p.session == 0 || p.sequence == 0) {
			return parsed{}, fmt.Errorf("%w command: session %d, sequence %d, want 1 or more", ErrInvalid, p.session, p.sequence)
		}
	}
	p.fields(&in)
	if in.what != "" || len(in.b) > 0 {
		return parsed{}, fmt.Errorf("%w %v: %d bytes, cut off or too long at %q", ErrInvalid, p.op, len(b), in.what)
	}
	return p, nil
}

// Written says which keys have another value after a command: some, none, or, with every,
// any. The last is true of a system key, which is read with all, of what cannot be
// read, and of a command that names many keys. Sessions and uploads are not values.
func Written(command []byte) (keys []string, every bool) {
	p, err := open(command)
	switch {
	case err != nil, p.op == OpSystem:
		return nil, true
	case p.op == OpPut, p.op == OpDelete, p.op == OpFinish:
		return []string{string(p.key)}, false
	case p.op == OpTxn:
		keys = p.txn.written()
	case p.op == OpExpire:
		for _, key := range p.expire.keys {
			keys = append(keys, string(key))
		}
	}
	if len(keys) > maxWritten {
		return nil, true
	}
	return keys, false
}

// CheckClients returns why no call of a client brings a command, or nil: it is a word of the members among themselves. Of
// system keys a call may make one, made, and end a freeze, which may have been left behind.
func CheckClients(command []byte, made string) error {
	if len(command) == 0 {
		return nil
	}
	switch op := Op(command[0] &^ inSession); op {
	case OpExpire:
		return fmt.Errorf("%w %v: the member that leads removes keys whose time has passed", ErrInvalid, op)
	case OpSystem:
		p, err := open(command)
		makes, thaws := string(p.key) == made && len(p.want) == 0, string(p.key) == FreezeKey && len(p.value) == 0
		if err != nil || !makes && !thaws {
			return fmt.Errorf("%w %v: members alone change the system key %q", ErrInvalid, op, p.key)
		}
	}
	return nil
}

// maxWritten is how many keys Written names.
const maxWritten = 16

// fields reads what follows op and session.
func (p *parsed) fields(in *input) {
	switch p.op {
	case OpPut:
		p.key = in.take("key", in.uvarint("key"))
		p.record = in.rest()
		if len(p.record) < inlineHead {
			in.cut("checksum")
			return
		}
		p.value = p.record[inlineHead:]
	case OpDelete:
		p.key = in.rest()
	case opEndSession:
		p.session = session.ID(in.uvarint("session"))
	case OpPart:
		copy(p.upload[:], in.take("upload", uint64(len(p.upload))))
		p.size, p.part = in.int("size"), int(in.int("part"))
		p.record = in.rest()
		if len(p.record) < sumBytes {
			in.cut("checksum")
			return
		}
		p.value = p.record[sumBytes:]
	case OpFinish:
		copy(p.upload[:], in.take("upload", uint64(len(p.upload))))
		p.size = in.int("size")
		p.sha256 = in.take("sha256", 32)
		p.key = in.rest()
	case opAbort:
		copy(p.upload[:], in.take("upload", uint64(len(p.upload))))
	case OpSystem:
		p.key = in.take("key", in.uvarint("key"))
		p.want = in.take("want", in.uvarint("want"))
		p.value = in.rest()
	case OpTxn:
		p.txn = in.txn()
	case OpExpire:
		p.expire = in.expire()
	}
}

// int reads a number that no bound of this package reaches.
func (in *input) int(what string) int64 { return int64(min(in.uvarint(what), 1<<40)) }

// check looks at what the command says.
func (p *parsed) check() error {
	switch p.op {
	case OpPut:
		return p.checkPut()
	case OpDelete:
		return checkKey(p.key)
	case opEndSession:
		if p.session == 0 {
			return fmt.Errorf("%w %v: session 0, want 1 or more", ErrInvalid, p.op)
		}
	case OpPart:
		return p.checkPart()
	case OpFinish:
		if err := checkKey(p.key); err != nil {
			return err
		}
		return p.checkSize()
	case OpTxn:
		return p.txn.check()
	case OpExpire:
		for _, key := range p.expire.keys {
			if err := checkKey(key); err != nil {
				return err
			}
		}
	case OpSystem:
		if n := len(p.key); n == 0 || n > maxSystemKeyBytes {
			return fmt.Errorf("%w system key: %d bytes, want 1 to %d", ErrInvalid, n, maxSystemKeyBytes)
		}
		if n := max(len(p.value), len(p.want)); n > maxSystemValueBytes {
			return fmt.Errorf("%w system value: %d bytes, want at most %d", ErrInvalid, n, maxSystemValueBytes)
		}
	}
	return nil
}

func (p *parsed) checkPut() error {
	if err := checkKey(p.key); err != nil {
		return err
	}
	if len(p.value) > MaxInlineBytes {
		return fmt.Errorf("%w value: %d bytes in one command, want at most %d; send a larger one in parts", ErrInvalid, len(p.value), MaxInlineBytes)
	}
	if p.record[0] != kindInline {
		return fmt.Errorf("%w put: a record of kind %d, want %d", ErrInvalid, p.record[0], kindInline)
	}
	if want, got := binary.LittleEndian.Uint32(p.record[1:]), sum(p.key, p.value); want != got {
		return fmt.Errorf("%w put of key %q: the value changed on its way here: its checksum is %08x, want %08x", ErrInvalid, p.key, got, want)
	}
	return nil
}

func (p *parsed) checkSize() error {
	if p.size < 1 || p.size > MaxValueBytes {
		return fmt.Errorf("%w upload %v: size %d, want 1 to %d", ErrInvalid, p.upload, p.size, int64(MaxValueBytes))
	}
	return nil
}

func (p *parsed) checkPart() error {
	if err := p.checkSize(); err != nil {
		return err
	}
	if p.part >= partsOf(p.size) {
		return fmt.Errorf("%w upload %v: part %d, want 0 to %d with %d bytes", ErrInvalid, p.upload, p.part, partsOf(p.size)-1, p.size)
	}
	if want := partLen(p.size, p.part); len(p.value) != want {
		return fmt.Errorf("%w upload %v: part %d of %d bytes, want %d", ErrInvalid, p.upload, p.part, len(p.value), want)
	}
	if want, got := binary.LittleEndian.Uint32(p.record), partSum(p.upload, p.part, p.value); want != got {
		return fmt.Errorf("%w upload %v: part %d changed on its way here: its checksum is %08x, want %08x", ErrInvalid, p.upload, p.part, got, want)
	}
	return nil
}

// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package hosts

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"math"

	"google.golang.org/protobuf/proto"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/rafttest/internal/register"
)

// A command as the log carries it:
//
//	byte   0      how the entry is encoded
//	bytes  1-8    command id
//	bytes  9-16   admission: a priority, and zeros
//	byte   17     what to do
//	byte   18     key
//	bytes  19-22  value, or an index
//	bytes  23-26  length of the payload
//	...           payload, a function of the value
//	last 4        CRC-32C of all before
//
// The first headLen bytes are what a host may look at without the rest.
const (
	headLen = 17
	bodyLen = 10
	tailLen = 4
)

// Bounds of clients' payloads.
const (
	smallPayload = 600
	largePayload = 64 << 10
	maxCommand   = headLen + bodyLen + largePayload + tailLen
)

// encoding is the first byte of a command.
type encoding byte

const (
	standard   encoding = iota // nothing to admit
	sideloaded                 // the payload leaves the entry when it is appended
	admitted                   // counts against its sender's tokens
	encodings
)

// op is the kind of a command.
type op byte

const (
	opPut op = iota
	opGet
	opTruncate
	ops
)

// head is what stands in front of a command, legible without the rest.
type head struct {
	encoding encoding
	id       commandID
	priority byte
}

// commandID names a command: the client above, its count below.
type commandID uint64

func newCommandID(client int, seq uint32) commandID { return commandID(client)<<32 | commandID(seq) }

func (id commandID) client() int { return int(id >> 32) }

func (id commandID) seq() uint32 { return uint32(id) }

type command struct {
	head
	op    op
	key   byte
	value uint32
	// size is the length of the payload.
	size int
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func (c command) encode() []byte {
	b := make([]byte, headLen+bodyLen+c.size+tailLen)
	b[0] = byte(c.encoding)
	binary.LittleEndian.PutUint64(b[1:], uint64(c.id))
	b[9] = c.priority
	b[headLen], b[headLen+1] = byte(c.op), c.key
	binary.LittleEndian.PutUint32(b[headLen+2:], c.value)
	binary.LittleEndian.PutUint32(b[headLen+6:], uint32(c.size))
	fill(b[headLen+bodyLen:len(b)-tailLen], c.value)
	binary.LittleEndian.PutUint32(b[len(b)-tailLen:], crc32.Checksum(b[:len(b)-tailLen], castagnoli))
	return b
}

// parseHead reads what a host looks at before a command is whole. An entry
// without data has the zero head.
func parseHead(data []byte) (head, error) {
	switch {
	case len(data) == 0:
		return head{}, nil
	case len(data) < headLen:
		return head{}, fmt.Errorf("entry of %d bytes; a command begins with %d", len(data), headLen)
	case encoding(data[0]) >= encodings:
		return head{}, fmt.Errorf("entry is encoded as %d; known are 0 to %d", data[0], encodings-1)
	case !bytes.Equal(data[10:headLen], make([]byte, headLen-10)):
		return head{}, fmt.Errorf("admission data %x of an entry", data[9:headLen])
	}
	return head{encoding(data[0]), commandID(binary.LittleEndian.Uint64(data[1:])), data[9]}, nil
}

// parseCommand reads a whole command, and refuses whatever differs from what
// encode made, in any byte.
func parseCommand(data []byte) (command, error) {
	h, err := parseHead(data)
	if err != nil {
		return command{}, err
	}
	if len(data) < headLen+bodyLen+tailLen {
		return command{}, fmt.Errorf("command of %d bytes; the least is %d", len(data), headLen+bodyLen+tailLen)
	}
	end := len(data) - tailLen
	if got, want := crc32.Checksum(data[:end], castagnoli), binary.LittleEndian.Uint32(data[end:]); got != want {
		return command{}, fmt.Errorf("command of %d bytes has the checksum %08x; %08x was written", len(data), got, want)
	}
	c := command{
		head: h, op: op(data[headLen]), key: data[headLen+1],
		value: binary.LittleEndian.Uint32(data[headLen+2:]),
		size:  int(binary.LittleEndian.Uint32(data[headLen+6:])),
	}
	payload := data[headLen+bodyLen : end]
	switch {
	case c.op >= ops || int(c.key) >= keys:
		return command{}, fmt.Errorf("command does %d to key %d", c.op, c.key)
	case c.size != len(payload):
		return command{}, fmt.Errorf("command has %d bytes of payload and says %d", len(payload), c.size)
	}
	want := make([]byte, c.size)
	if fill(want, c.value); !bytes.Equal(payload, want) {
		return command{}, fmt.Errorf("payload of value %d differs from what was proposed", c.value)
	}
	return c, nil
}

// fill writes the payload of a value.
func fill(b []byte, value uint32) {
	x := uint64(value)*0x9e3779b97f4a7c15 + 1
	for len(b) > 0 {
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
		var word [8]byte
		binary.LittleEndian.PutUint64(word[:], x)
		b = b[copy(b, word[:]):]
	}
}

// access is a client's operation on a key.
type access struct {
	register.Access
	key byte
}

// never is the return of a call without an answer.
const never = math.MaxInt64

// withData returns an entry with other data.
func withData(e *pb.Entry, data []byte) *pb.Entry {
	c := proto.Clone(e).(*pb.Entry)
	c.Data = data
	return c
}

// sumOf returns a checksum of what an entry says.
func sumOf(e *pb.Entry) uint64 {
	return uint64(crc32.Checksum(e.GetData(), castagnoli))<<32 | uint64(e.GetType())<<28 | uint64(len(e.GetData()))
}

func marshal(m *pb.Message) []byte {
	data, err := proto.Marshal(m)
	if err != nil {
		die("message does not marshal: %w", err)
	}
	return data
}

func unmarshal(data []byte) *pb.Message {
	m := &pb.Message{}
	if err := proto.Unmarshal(data, m); err != nil {
		die("message does not unmarshal: %w", err)
	}
	return m
}

func word(n uint64) []byte { return binary.LittleEndian.AppendUint64(nil, n) }

// die ends a run: a host found an error that no host can bear.
func die(format string, args ...any) { panic(broken{fmt.Errorf(format, args...)}) }

// broken is the panic value of a host that finds a contract broken.
type broken struct{ what error }

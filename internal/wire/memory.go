// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"errors"
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"
)

// Memory of decoded messages
//
// An entry of two bytes becomes an object of 112 bytes and a pointer: a frame full of
// two-byte entries would take 64 times its size, not counted by any budget of a
// receiver. So the objects of a Raft message are counted before the first of them is
// made, and a message with too many is refused.
//
// A message with at most MaxEntries is never refused for its entries. Messages of up to
// countedFrom bytes cannot have too many objects, and are not counted; nearly all
// messages are smaller.

const (
	// MaxEntries bounds the entries in one message.
	MaxEntries = 1 << 17
	// maxObjectBytes bounds the memory, in bytes, of the objects of one decoded
	// message, beside its payloads.
	maxObjectBytes = 32 << 20

	// entryBytes is about the memory of an entry without its data: the object, the
	// pointer to the object, and the rounding of its data.
	entryBytes = 128
	// Honest senders have few of the objects below, so each byte counts as much as its
	// worst case: a response of two bytes is an object of 208 bytes, and a member of
	// one byte is a number of eight, both in lists that have grown by doubling.
	responseFactor = 128
	memberFactor   = 24

	countedFrom = maxObjectBytes / responseFactor
)

// ErrMemory says that decoding the message would exceed maxObjectBytes.
var ErrMemory = errors.New("wire: a message would take too much memory")

const tagSnapshotData = 8*1 + 2

// checkMemory returns the number of entries in an encoded Raft message, 0 if not
// counted; or an error, if its objects would take too much.
func checkMemory(b []byte) (entries int, err error) {
	if len(b) < countedFrom {
		return 0, nil
	}
	objects, entries := objectBytes(b)
	if objects > maxObjectBytes {
		return 0, fmt.Errorf("%w: a Raft message of %d bytes with %d entries: %d bytes for its objects, the bound is %d", ErrMemory, len(b), entries, objects, maxObjectBytes)
	}
	return entries, nil
}

// objectBytes returns about the memory of an encoded Raft message's objects, and the
// number of its entries. Counting stops where protobuf would.
func objectBytes(b []byte) (objects, entries int) {
	eachBytes(b, func(field protowire.Number, value []byte) {
		switch field {
		case tagEntries >> 3:
			entries++
		case tagResponses >> 3:
			objects += responseFactor * (2 + len(value))
		case tagSnapshot >> 3:
			eachBytes(value, func(field protowire.Number, value []byte) {
				if field != tagSnapshotData>>3 {
					objects += memberFactor * len(value)
				}
			})
		}
	})
	return objects + entries*entryBytes, entries
}

// eachBytes calls f for the length-prefixed fields of an encoded message.
func eachBytes(b []byte, f func(protowire.Number, []byte)) {
	for len(b) > 0 {
		if b[0] < 0x80 && b[0]&7 == byte(protowire.BytesType) { // most are
			value, n := protowire.ConsumeBytes(b[1:])
			if n < 0 {
				return
			}
			f(protowire.Number(b[0]>>3), value)
			b = b[1+n:]
			continue
		}
		field, typ, n := protowire.ConsumeTag(b)
		if n < 0 {
			return
		}
		size := protowire.ConsumeFieldValue(field, typ, b[n:])
		if size < 0 {
			return
		}
		if typ == protowire.BytesType {
			value, _ := protowire.ConsumeBytes(b[n:])
			f(field, value)
		}
		b = b[n+size:]
	}
}

// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"encoding/binary"
	"fmt"
)

// decoder reads from a payload. After the first mistake it returns zeros.
type decoder struct {
	b     []byte
	err   error
	share int // payloads from this length on stay in the frame's memory; 0: all are copied
}

func (d *decoder) fail(format string, args ...any) {
	if d.err == nil {
		d.err = fmt.Errorf("%w: %s", ErrFrame, fmt.Sprintf(format, args...))
		d.b = nil
	}
}

func (d *decoder) uvarint() uint64 {
	v, n := binary.Uvarint(d.b)
	if n <= 0 {
		d.fail("a number is cut off or too long")
		return 0
	}
	d.b = d.b[n:]
	return v
}

func (d *decoder) bool() bool {
	v := d.uvarint()
	if v > 1 {
		d.fail("%d is neither true nor false", v)
	}
	return v == 1
}

func (d *decoder) byte() byte {
	if len(d.b) == 0 {
		d.fail("a byte is missing")
		return 0
	}
	v := d.b[0]
	d.b = d.b[1:]
	return v
}

// view returns bytes with their length in front, without copying.
func (d *decoder) view() []byte {
	n := d.uvarint()
	if n > uint64(len(d.b)) {
		d.fail("a length of %d, with %d bytes left", n, len(d.b))
		return nil
	}
	v := d.b[:n]
	d.b = d.b[n:]
	return v
}

func (d *decoder) bytes() []byte {
	v := d.view()
	if len(v) == 0 {
		return nil
	}
	if d.shares(len(v)) {
		return v[:len(v):len(v)]
	}
	return append(make([]byte, 0, len(v)), v...)
}

func (d *decoder) text() string {
	v := d.view()
	if len(v) > maxReasonLen {
		d.fail("a text of %d bytes, the limit is %d", len(v), maxReasonLen)
		return ""
	}
	return string(v)
}

func (d *decoder) rest() []byte {
	v := d.b
	d.b = nil
	return v
}

func (d *decoder) id() CommandID {
	return CommandID{Origin: d.uvarint(), Boot: d.uvarint(), Sequence: d.uvarint()}
}

// DecodeMessages calls each for the messages in a frame's payload, in order, and
// returns the number of messages of unknown kinds, which are left out. Decoding stops
// at the first mistake, after which the rest of the payload is not trustworthy: the
// caller drops the connection. A message that would take too much memory is a mistake,
// and its error wraps ErrMemory. The messages do not share memory with the payload.
func DecodeMessages(payload []byte, each func(Message)) (unknown int, err error) {
	return decodeMessages(payload, 0, each)
}

func decodeMessages(payload []byte, share int, each func(Message)) (unknown int, err error) {
	d := decoder{b: payload}
	for len(d.b) > 0 {
		kind := Kind(d.byte())
		m := Message{Group: d.uvarint(), From: d.uvarint(), To: d.uvarint()}
		body := decoder{b: d.view(), share: share}
		if d.err != nil {
			return unknown, d.err
		}
		if m.From == 0 || m.To == 0 {
			return unknown, fmt.Errorf("%w: message from %d to %d", ErrFrame, m.From, m.To)
		}
		if kind == 0 || kind >= endOfKinds {
			unknown++
			continue
		}
		if m.Body, err = decodeBody(kind, &body); err != nil {
			return unknown, fmt.Errorf("message from %d to %d, %v: %w", m.From, m.To, kind, err)
		}
		each(m)
	}
	return unknown, d.err
}

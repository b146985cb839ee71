// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package world

import (
	"bytes"
	"sync"

	"github.com/weftraft/weft/internal/wire"
)

// frames and payloads are buffers: simulators encode and decode millions of messages.
var (
	frames   = sync.Pool{New: func() any { return new(wire.Frame) }}
	payloads = sync.Pool{New: func() any { return new([]byte) }}
)

// OverWire returns what arrives of a message: it becomes a frame's bytes, and
// these are read again. What arrives shares no memory with the message.
func OverWire(m wire.Message) (got wire.Message, err error) {
	err = decode(encoded(m), func(m wire.Message) { got = m })
	return got, err
}

// encoded returns a message as the bytes of a frame.
func encoded(m wire.Message) []byte {
	f := frames.Get().(*wire.Frame)
	defer frames.Put(f)
	f.AppendMessage(m)
	b := make([]byte, 0, f.Len())
	for _, piece := range f.Messages() {
		b = append(b, piece...)
	}
	f.Reset()
	return b
}

// decode calls take for the messages in a frame.
func decode(frame []byte, take func(wire.Message)) error {
	buf := payloads.Get().(*[]byte)
	defer payloads.Put(buf)
	payload, err := wire.ReadFrame(bytes.NewReader(frame), wire.FrameMessages, wire.DefaultMaxFrame, *buf)
	if err != nil {
		return err
	}
	*buf = payload
	_, err = wire.DecodeMessages(payload, take)
	return err
}

// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package world

import (
	"bytes"

	"github.com/weftraft/weft/internal/wire"
)

// OverWire returns what arrives of a message: it becomes a frame's bytes, and
// these are read again.
func OverWire(m wire.Message) (got wire.Message, err error) {
	var f wire.Frame
	var b bytes.Buffer
	f.AppendMessage(m)
	if _, err = f.WriteMessages(&b); err != nil {
		return got, err
	}
	payload, err := wire.ReadFrame(&b, wire.FrameMessages, wire.MaxFrame, nil)
	if err != nil {
		return got, err
	}
	_, err = wire.DecodeMessages(payload, func(m wire.Message) { got = m })
	return got, err
}

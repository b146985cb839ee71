// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package replicatest

import (
	"bytes"
	"errors"

	"github.com/weftraft/weft/internal/wire"
)

// Reread returns a message in the form that a connection delivers, and panics if the codec does not read what it wrote.
func Reread(m wire.Message) (got wire.Message) {
	var f wire.Frame
	f.Reset()
	f.AppendMessage(m)
	var b bytes.Buffer
	_, wrote := f.WriteMessages(&b)
	payload, read := wire.ReadFrame(&b, wire.FrameMessages, wire.MaxFrame, nil)
	_, decoded := wire.DecodeMessages(payload, func(m wire.Message) { got = m })
	if err := errors.Join(wrote, read, decoded); err != nil {
		panic(err)
	}
	return got
}

// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package wire

// Decoding shared memory
//
// A payload was copied out of the kernel once, into the memory of its frame. A second
// copy, into memory of its own, frees the frame's memory for the next frame. For large
// payloads the copy costs more than it saves, so DecodeShared leaves large payloads in
// the frame's memory, which they then own.
//
// Keeping a shared payload keeps the whole frame in memory, uncounted by any budget. So
// only payloads of at least a shareParts-th of the frame are shared: memory is at most
// shareParts times the budgets' count.
const shareParts = 4

// shares reports whether a payload of n bytes stays in the frame's memory.
func (d *decoder) shares(n int) bool {
	return d.share > 0 && n >= d.share
}

// DecodeShared is DecodeMessages, but large payloads in the messages are parts
// of payload. The caller must not touch payload again.
func DecodeShared(payload []byte, each func(Message)) (unknown int, err error) {
	return decodeMessages(payload, max(referBytes, len(payload)/shareParts), each)
}

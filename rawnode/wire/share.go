// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package wire

// Decoding shared memory
//
// A payload was copied out of the kernel once, into the memory of its frame. A
// second copy, into memory of its own, is what lets the frame's memory be used
// for the next frame. For large payloads it costs more than it saves, so
// DecodeShared lets them stay where they are: then the frame's memory is theirs.
//
// Who keeps such a payload keeps the whole frame in memory, and no budget counts
// that. So only what is at least a shareParts-th of the frame is shared: memory
// is at most that many times what budgets count.
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

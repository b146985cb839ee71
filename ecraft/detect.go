// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package ecraft

import (
	"bytes"
	"encoding/binary"
)

// Detect reports whether an entry's Data is an envelope, of any clear prefix and version, and the
// length of the prefix. Detect is for nodes that must not have envelopes, or only envelopes with
// another prefix. [IsEnvelope] checks the magic only; Detect also requires the right length of the
// prefix behind the magic, and a header with the right checksum, which no payload has by chance. So
// Detect misses an envelope with a damaged header. A payload with many places that look like the begin of a header was made on
// purpose, and counts as an envelope: the next place may have a header, or be the begin of the envelope behind whose clear prefix
// somebody's bytes stand.
func Detect(data []byte) (prefix int, found bool) {
	head := data[:min(len(data), MaxPrefix+len(magic))]
	for tries := 0; tries < maxTries; prefix++ {
		i := bytes.Index(head[prefix:], []byte(magic))
		if i < 0 {
			return 0, false
		}
		prefix += i
		if len(data)-prefix < fixedLen+crcLen || int(binary.LittleEndian.Uint16(data[prefix+atPrefixLen:])) != prefix {
			continue
		}
		if headerIsSound(data, prefix) {
			return prefix, true
		}
		tries++
	}
	return prefix, true
}

const (
	// maxTries bounds the checksums that Detect computes.
	maxTries = 4
	// maxHeaderLen is the length of the longest header.
	maxHeaderLen = fixedLen + 9*MaxSlots + MaxRiders*(riderLen+MaxSlots) + crcLen
)

// headerIsSound reports whether the checksum of a header behind a clear prefix is right.
func headerIsSound(data []byte, prefix int) bool {
	env := data[prefix:]
	n := int64(binary.LittleEndian.Uint32(env[atHeaderLen:]))
	if n < fixedLen+crcLen || n > maxHeaderLen || n > int64(len(env)) {
		return false
	}
	end := prefix + int(n) - crcLen
	return binary.LittleEndian.Uint32(data[end:]) == Checksum(data[:end])
}

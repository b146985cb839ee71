// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package resp

import (
	"strconv"

	"github.com/tidwall/redcon"
)

// Version 3 of the protocol has types of its own for some replies. A client asks for the
// version with HELLO; all others get arrays and strings.

// three reports whether the client of a connection speaks version 3.
func three(w redcon.Conn) bool {
	c, ok := w.Context().(*client)
	return ok && c.three
}

func writeNull(w redcon.Conn) {
	if three(w) {
		w.WriteRaw([]byte("_\r\n"))
		return
	}
	w.WriteNull()
}

// writeNoArray is nothing, where an array is expected.
func writeNoArray(w redcon.Conn) {
	if three(w) {
		writeNull(w)
		return
	}
	w.WriteRaw([]byte("*-1\r\n"))
}

// writeMap begins a map of n keys and values.
func writeMap(w redcon.Conn, n int) {
	if three(w) {
		writeHead(w, '%', n)
		return
	}
	w.WriteArray(2 * n)
}

// writePush begins a message of n parts that answers no command, or a SUBSCRIBE.
func writePush(w redcon.Conn, n int) {
	if three(w) {
		writeHead(w, '>', n)
		return
	}
	w.WriteArray(n)
}

func writeHead(w redcon.Conn, kind byte, n int) {
	w.WriteRaw(append(strconv.AppendInt([]byte{kind}, int64(n), 10), "\r\n"...))
}

func writeScore(w redcon.Conn, score float64) {
	if three(w) {
		w.WriteRaw([]byte("," + formatScore(score) + "\r\n"))
		return
	}
	w.WriteBulkString(formatScore(score))
}

// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

// Package marked has the form of the commands in a log that are the module's own, and not a user's.
//
//	mark   16 bytes
//	kind   1 byte
//	body   as the kind has it
//
// All other commands are in the log as proposed, so that package weft opens a log of package rawnode. A
// kind that a version does not know is left out: kinds say nothing about the user's state, so
// replicas with and without the kind stay equal.
package marked

import "bytes"

// Mark begins a command of the module. Package weft refuses a user's command with the mark.
const Mark = "\x00weft:reserved\x00\xf7"

// The kinds.
const (
	Facts  byte = 1 // body: book.Facts in JSON
	Check  byte = 2 // body: compare.Check
	Digest byte = 3 // body: compare.Digest
)

// Is reports whether a command is the module's own: the mark and at least one byte more.
func Is(command []byte) bool {
	return len(command) > len(Mark) && command[0] == Mark[0] && bytes.HasPrefix(command, []byte(Mark))
}

// Command returns a command of the module.
func Command(kind byte, body []byte) []byte {
	return append(append([]byte(Mark), kind), body...)
}

// Parts takes a command of the module apart.
func Parts(command []byte) (kind byte, body []byte) {
	return command[len(Mark)], command[len(Mark)+1:]
}

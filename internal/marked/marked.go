// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

// Package marked has the mark of the commands in a log that are the module's own, and not a user's.
package marked

import "bytes"

// Mark begins a command of the module. Package weft refuses a user's command with the mark.
const Mark = "\x00weft:reserved\x00\xf7"

// Is reports whether a command is the module's own: the mark and at least one byte more.
func Is(command []byte) bool {
	return len(command) > len(Mark) && command[0] == Mark[0] && bytes.HasPrefix(command, []byte(Mark))
}

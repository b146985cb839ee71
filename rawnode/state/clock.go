// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package state

import (
	"encoding/binary"
	"time"
)

// Clock is the time of a state: that of the commands applied so far, which only goes forward. A lock
// that expires, a queue that delays, and a scheduler compare times with it, because a state must not ask the clock of
// its node. Clock is a part of the state: Write and Read have it, for example as a field in JSON.
//
// Between commands the time stands still; a service without other commands proposes an empty one now
// and then. The node whose clock is furthest ahead among those that propose sets the time, so an
// interval may end too soon by as much as clocks differ.
type Clock struct {
	// Now is the highest time of a command, the zero time before the first.
	Now time.Time
}

const stampBytes = 8

// Stamp returns a command with the time at which it is proposed. [Clock.Take] takes the time off
// again.
func Stamp(at time.Time, command []byte) []byte {
	b := binary.BigEndian.AppendUint64(make([]byte, 0, stampBytes+len(command)), uint64(at.UnixNano()))
	return append(b, command...)
}

// Take moves the clock forward to the time of a command made by [Stamp], unless the clock is later, and
// returns the command without the time. It reports false, and changes nothing, for a command that is
// too short to have a time.
func (c *Clock) Take(command []byte) (inner []byte, ok bool) {
	if len(command) < stampBytes {
		return nil, false
	}
	at := time.Unix(0, int64(binary.BigEndian.Uint64(command))).UTC()
	if at.After(c.Now) {
		c.Now = at
	}
	return command[stampBytes:], true
}

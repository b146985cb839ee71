// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package weft

import (
	"github.com/weftraft/weft/rawnode/session"
)

// Sessions gives a group of [Replicate] sessions of clients: a command that a client proposes again,
// because the first try ended in [ErrUnknown] or the connection broke, takes effect once, at whatever
// node. Each command of the group then has an envelope, also one outside any session: a client opens
// a session with state.OpenSession, whose result is the session's id, numbers its commands, puts
// each into state.InSession, and repeats these bytes until there is a result. Results of commands
// in sessions must be nil, bool, int, int64, uint64, or []byte or string of at most 1 MiB.
//
// All members must have the same limits, from the group's first command on.
func Sessions(limits session.Limits) GroupOption {
	return func(c *groupConfig) { c.sessions = &limits }
}

// sessionsOf returns the limits of sessions that options set, or nil.
func sessionsOf(options []GroupOption) *session.Limits {
	c := groupConfig{peek: true}
	for _, option := range options {
		if option != nil { // a nil option is refused when the group is opened
			option(&c)
		}
	}
	return c.sessions
}

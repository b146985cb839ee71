// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package transport

import "time"

// rivals notices that two processes run under one node's id, each with a directory of its own: an
// operator copied a configuration, or started a node elsewhere while the old process goes on. Each of the
// two may vote for the node. Without a word they take each other's connections here, again and again.
//
// A hello names the sending process by a number drawn at its start. A process whose place another one has
// taken is dead, as a rule, and says no more; a process that comes back again and again is not. Then
// neither is taken, because this node cannot know which of the two is meant, and both are told: the logs
// of the two processes are where the mistake can be mended. When one of them has ended, the other is taken
// again.
type rivals struct {
	last, other process // last: of the latest hello
	returns     int     // how often a process came back after the other
}

// process is a process of a node.
type process struct {
	number uint64
	from   string // its address
	at     time.Time
}

const (
	// enoughReturns is more than a hello that was under way when its process ended can cause.
	enoughReturns = 3
	// rivalQuiet is how long a process must have been silent to count as ended, so a multiple of the
	// pause between dials.
	rivalQuiet = 10 * time.Second
)

// hello notes a hello, and returns an error if another process of the node is alive, too. fresh reports
// whether the hello before came from another process. Earlier versions send the number 0, and are not
// told apart.
func (r *rivals) hello(number uint64, from string, now time.Time) (fresh bool, err error) {
	if number == 0 {
		return false, nil
	}
	p := process{number, from, now}
	switch number {
	case r.last.number:
		r.last = p
	case r.other.number:
		r.returns++
		r.last, r.other, fresh = p, r.last, true
	default:
		fresh = r.last.number != 0
		r.last, r.other, r.returns = p, r.last, 0
	}
	if r.returns < enoughReturns {
		return fresh, nil
	}
	if now.Sub(r.other.at) < rivalQuiet {
		return fresh, refuse(refusedRival, "two processes run under this node's id, and have dialed within %v: yours from %s, the other one from %s. Each may vote for the node: stop the one that is not meant, for good. The other one is taken again %v later",
			rivalQuiet, r.last.from, r.other.from, rivalQuiet)
	}
	r.other, r.returns = process{}, 0
	return fresh, nil
}

// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package live

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// at returns an operation that lasts from a second to another.
func at(from, to int, o operation) operation {
	o.key, o.call, o.ret, o.answered = "k", time.Duration(from)*time.Second, time.Duration(to)*time.Second, true
	return o
}

func unanswered(o operation) operation {
	o.answered = false
	return o
}

func TestCheck(t *testing.T) {
	a := at(0, 1, operation{verb: put, value: "a", revision: 2})
	for name, c := range map[string]struct {
		ops  []operation
		want error
	}{
		"empty":          {nil, nil},
		"read own write": {[]operation{a, at(2, 3, operation{verb: get, read: "a", revision: 2})}, nil},
		"lost write":     {[]operation{a, at(2, 3, operation{verb: get, revision: 2})}, errNotLinearizable},
		"stale revision": {[]operation{a, at(2, 3, operation{verb: get, read: "a", revision: 1})}, errRevision},
		"same revision": {[]operation{a,
			at(0, 1, operation{verb: put, value: "b", revision: 2})}, errRevision},
		"later write, earlier revision": {[]operation{
			at(0, 1, operation{verb: put, value: "a", revision: 3}),
			at(2, 3, operation{verb: put, value: "b", revision: 2})}, errRevision},
		"concurrent reads differ": {[]operation{a,
			at(0, 4, operation{verb: put, value: "b", revision: 3}),
			at(2, 3, operation{verb: get, read: "b", revision: 3}),
			at(2, 3, operation{verb: get, read: "a", revision: 2})}, nil},
		"a value that was seen vanishes": {[]operation{a,
			at(0, 9, operation{verb: put, value: "b", revision: 3}),
			at(2, 3, operation{verb: get, read: "b", revision: 3}),
			at(4, 5, operation{verb: get, read: "a", revision: 3})}, errNotLinearizable},
		"unanswered write is seen later": {[]operation{a,
			unanswered(at(2, 3, operation{verb: put, value: "b"})),
			at(4, 5, operation{verb: get, read: "a", revision: 2}),
			at(6, 7, operation{verb: get, read: "b", revision: 3})}, nil},
		"unanswered write is seen before it began": {[]operation{a,
			at(2, 3, operation{verb: get, read: "b", revision: 3}),
			unanswered(at(4, 5, operation{verb: put, value: "b"}))}, errNotLinearizable},
		"unanswered write is never seen": {[]operation{a,
			unanswered(at(2, 3, operation{verb: put, value: "b"})),
			at(4, 5, operation{verb: get, read: "a", revision: 2})}, nil},
		"swap": {[]operation{a,
			at(2, 3, operation{verb: swap, old: "a", value: "b", swapped: true, revision: 3}),
			at(4, 5, operation{verb: swap, old: "a", value: "c", read: "b", revision: 3})}, nil},
		"swap of what is not there": {[]operation{a,
			at(2, 3, operation{verb: swap, old: "x", value: "b", swapped: true, revision: 3})}, errNotLinearizable},
		"swap refused without a reason": {[]operation{a,
			at(2, 3, operation{verb: swap, old: "a", value: "b", read: "a", revision: 2})}, errNotLinearizable},
		"unanswered swap took effect": {[]operation{a,
			unanswered(at(2, 3, operation{verb: swap, old: "a", value: "b"})),
			at(4, 5, operation{verb: get, read: "b", revision: 3})}, nil},
		"unanswered swap could not": {[]operation{a,
			unanswered(at(2, 3, operation{verb: swap, old: "x", value: "b"})),
			at(4, 5, operation{verb: get, read: "b", revision: 3})}, errNotLinearizable},
	} {
		t.Run(name, func(t *testing.T) { require.ErrorIs(t, check(c.ops), c.want) })
	}
}

func TestLongestTimeWithoutAcknowledgedWriteIsFound(t *testing.T) {
	h := newHistory()
	h.add(at(0, 1, operation{verb: put}))
	h.add(at(0, 5, operation{verb: put}))
	h.add(at(2, 4, operation{verb: put})) // heard of late
	h.add(at(6, 9, operation{verb: get})) // no write
	h.add(unanswered(at(6, 9, operation{verb: put})))
	acked, gap := h.since()
	require.Equal(t, 3, acked)
	require.Equal(t, 4*time.Second, gap)
}

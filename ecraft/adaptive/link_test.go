// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package adaptive

import (
	"testing"

	"github.com/stretchr/testify/require"
)

const testBase = 200e-6

// testLinks returns links whose base is known.
func testLinks(n int) []*link {
	links := make([]*link, n)
	for i := range links {
		links[i] = new(link)
		links[i].init(uint64(i)+2, n, 0)
		links[i].base, links[i].seen = testBase, true
	}
	return links
}

// TestStallsAreNoCost makes three in ten answers late by a hundred times the time of their bytes.
// The cost stays at the cost of the other answers.
func TestStallsAreNoCost(t *testing.T) {
	const bytes, cost = 10_000, 8e-9
	n, l, now := new(nic), testLinks(1)[0], 0.0
	tell := func(answers, lateOf10 int) {
		for i := range answers {
			now += 1e-3
			took := testBase + bytes*cost
			if i*3%10 < lateOf10 {
				took += 100 * bytes * cost
			}
			l.tell(took, bytes, now, n)
		}
	}
	tell(50, 0)
	require.InEpsilon(t, cost, l.shows.cost, 0.1, "from a guess ten times too high")
	for range 50 {
		tell(10, 3)
		require.InEpsilon(t, cost, l.shows.cost, 0.35)
	}
	for range 10_000 {
		now += 1e-3
		l.tell(0, bytes, now, n)
	}
	require.InEpsilon(t, fastLink, l.shows.cost, 1e-9, "answers before the base: never nothing")
	l.tell(testBase, 0, now, n)
	require.InEpsilon(t, fastLink, l.shows.cost, 1, "no bytes at all")
}

// TestInterfaceChanges makes a byte cost ten times as much: the answers on all links show the new
// cost, and the estimate follows within twelve answers of each link. Answers on a single link may
// be a stall, and the estimate follows them more slowly.
func TestInterfaceChanges(t *testing.T) {
	const bytes, cost = 10_000, 8e-9
	n, links, now := new(nic), testLinks(4), 0.0
	tell := func(rounds int, cost float64, links ...*link) {
		for range rounds {
			for _, l := range links {
				now += 1e-3
				l.tell(testBase+bytes*cost, bytes, now, n)
			}
		}
	}
	tell(100, cost, links...)
	for _, l := range links {
		require.InEpsilon(t, cost, l.shows.cost, 0.1)
	}
	tell(12, 10*cost, links...)
	for _, l := range links {
		require.InEpsilon(t, 10*cost, l.shows.cost, 0.5)
	}
	tell(100, cost, links...)
	tell(12, 10*cost, links[0])
	require.Less(t, links[0].shows.cost, 2*cost)
}

// TestOneThatStallsIsNotSlow checks that a connection that takes five times as long for every
// message is slow, and that a connection that takes as long on average, but is fast at times, is
// not slow.
func TestOneThatStallsIsNotSlow(t *testing.T) {
	const bytes, all, cost = 10_000, 40_000, 8e-9
	run := func(quick func(i int) bool) *link {
		l, now := testLinks(4)[0], 0.0
		for i := range 1000 {
			now += 1e-3
			took := testBase + all*cost
			if !quick(i) {
				took += 5 * all * cost
			}
			l.learn(took, flight{queued: bytes, bytes: bytes}, now, 4, all, cost)
		}
		return l
	}
	slow := run(func(int) bool { return false })
	require.True(t, slow.seemsSlow(cost))
	require.False(t, slow.refuted())
	stalls := run(func(i int) bool { return i%10 < 3 })
	require.True(t, stalls.seemsSlow(cost))
	require.True(t, stalls.refuted())
}

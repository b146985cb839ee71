// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package tpcc

// locks are a leader's: a key is one transaction's at a time, and the next one's in the order of coming. Transactions take
// locks in the order of ranges, and in each in an order that all keep, so that nobody waits in a circle.
type locks struct {
	held map[string]bool
	wait map[string][]func()
	bug  bug
}

// take calls then when all keys are had.
func (l *locks) take(keys []string, then func()) {
	if len(keys) == 0 {
		then()
		return
	}
	k, rest := keys[0], func() { l.take(keys[1:], then) }
	if l.held[k] && l.bug != noLocks {
		l.wait[k] = append(l.wait[k], rest)
		return
	}
	l.held[k] = true
	rest()
}

// give gives keys back.
func (l *locks) give(keys []string) {
	var next []func()
	for _, k := range keys {
		if w := l.wait[k]; len(w) > 0 {
			next, l.wait[k] = append(next, w[0]), w[1:]
			continue
		}
		delete(l.held, k)
		delete(l.wait, k)
	}
	for _, then := range next {
		then()
	}
}

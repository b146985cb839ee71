// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package tpcc

// want is a row that a transaction locks.
type want struct {
	key       string
	exclusive bool
}

// locks is the lock table of a range. Locks of a row are given in the order in which they are wanted.
type locks struct {
	rows map[string]*lock
	bug  Bug
}

type lock struct {
	holders   int
	exclusive bool
	queue     []waiter
}

type waiter struct {
	exclusive bool
	then      func()
}

// all takes locks, one after the other, and then calls then.
func (l *locks) all(wants []want, then func()) {
	if len(wants) == 0 {
		then()
		return
	}
	l.take(wants[0], func() { l.all(wants[1:], then) })
}

// skips reports whether the planted bug leaves a lock out.
func (l *locks) skips(key string) bool { return l.bug == skippedLock && key[0] == districts }

func (l *locks) take(w want, then func()) {
	if l.skips(w.key) {
		then()
		return
	}
	x := l.rows[w.key]
	if x == nil {
		x = &lock{}
		l.rows[w.key] = x
	}
	x.queue = append(x.queue, waiter{w.exclusive, then})
	x.grant()
}

// grant gives the lock to those in front who can have it together.
func (x *lock) grant() {
	for len(x.queue) > 0 {
		first := x.queue[0]
		if x.holders > 0 && (x.exclusive || first.exclusive) {
			return
		}
		x.queue, x.holders, x.exclusive = x.queue[1:], x.holders+1, first.exclusive
		first.then()
	}
}

// free lets go of locks.
func (l *locks) free(wants []want) {
	for _, w := range wants {
		if l.skips(w.key) {
			continue
		}
		x := l.rows[w.key]
		x.holders--
		x.grant()
		if x.holders == 0 && len(x.queue) == 0 {
			delete(l.rows, w.key)
		}
	}
}

// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package lockstep

import "fmt"

// ledger remembers what the libraries handed out and what it looked like then.
// Hosts hand slices and messages to other goroutines, so nothing may ever be
// changed once it left. An item is looked at again now and then, and once more
// when its place is needed for a newer one, so each is looked at when it is old.
type ledger struct {
	items []handout
	next  int
}

// ledgerSize is how many items are watched at a time: a few hundred calls back.
const ledgerSize = 96

// handout is something that a library handed out.
type handout struct {
	side   int
	member uint64
	call   uint64
	what   string
	then   fingerprint
	now    func() fingerprint
}

// changed describes the item if it is not what it was; empty if it is.
func (h *handout) changed() string {
	if h.now == nil || h.now() == h.then {
		return ""
	}
	return fmt.Sprintf("%s, handed out by member %x in call %d, has changed since", h.what, h.member, h.call)
}

// add watches an item. It returns the one that had to go, if that has changed.
func (l *ledger) add(h handout) (side int, changed string) {
	if len(l.items) < ledgerSize {
		l.items = append(l.items, h)
		return 0, ""
	}
	old := &l.items[l.next]
	side, changed = old.side, old.changed()
	*old = h
	l.next = (l.next + 1) % ledgerSize
	return side, changed
}

// audit looks at everything.
func (l *ledger) audit() (side int, changed string) {
	for i := range l.items {
		if c := l.items[i].changed(); c != "" {
			return l.items[i].side, c
		}
	}
	return 0, ""
}

// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package lockstep

import "fmt"

// ledger remembers values that the libraries handed out, with their fingerprints at that time.
// Hosts hand slices and messages to other goroutines, so a library must never change a value after
// handing it out. The ledger checks all items at intervals, and each item once more before a newer
// item takes its place, so that each item is checked when it is old.
type ledger struct {
	items []handout
	next  int
}

// ledgerSize is how many items are watched at a time: a few hundred calls back.
const ledgerSize = 96

// handout is a value that a library handed out.
type handout struct {
	side   int
	member uint64
	call   uint64
	what   string
	then   fingerprint
	now    func() fingerprint
}

// changed describes an item whose fingerprint has changed, and returns an empty text for other
// items.
func (h *handout) changed() string {
	if h.now == nil || h.now() == h.then {
		return ""
	}
	return fmt.Sprintf("%s, handed out by member %x in call %d, has changed since", h.what, h.member, h.call)
}

// add watches an item. If add removed an older item that has changed, the results describe the
// removed item.
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

// audit checks all items.
func (l *ledger) audit() (side int, changed string) {
	for i := range l.items {
		if c := l.items[i].changed(); c != "" {
			return l.items[i].side, c
		}
	}
	return 0, ""
}

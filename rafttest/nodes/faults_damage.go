// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package nodes

import (
	"errors"
	"fmt"

	"google.golang.org/protobuf/proto"

	"github.com/weftraft/weft/internal/world"
	"github.com/weftraft/weft/storage"
)

// damageLog stops a node, and flips a bit of its log or cuts a file of the log. The
// log must find the damage when it is opened, or when it reads the entry. Where the
// damage shows only in a read, the node runs with the damage; otherwise the operator
// repairs the files before the node starts again.
func (f faults) damageLog() {
	n := f.anyNode()
	if n == nil || n.disk.damage != nil {
		return
	}
	n.crash(true)
	d := &n.disk
	if err := d.Crash(world.None); err != nil { // no torn tail that looks like damage
		f.fail(noFailure, "%v: crash: %v", n, err)
		return
	}
	whole := d.Copy()
	x, err := d.Damage()
	if err != nil {
		f.fail(noFailure, "%v: damage the log: %v", n, err)
		return
	}
	f.After(f.outage(), n.start)
	if x == nil {
		return
	}
	f.tell(n.id, "damage: %s", x.Detail)
	before, err := d.openLog(whole)
	if err != nil {
		f.fail(noFailure, "%v: open the log before its damage: %v", n, err)
		return
	}
	d.damage = x
	if !n.tryDamaged(before) {
		n.repair()
	}
}

// tryDamaged opens a copy of the damaged log, compares the copy with the log before,
// and reports whether the node is to run with the damage.
func (n *node) tryDamaged(before *storage.Engine) (run bool) {
	w, d := n.w, &n.disk
	after, err := d.openLog(d.Copy())
	if errors.Is(err, storage.ErrDamaged) || errors.Is(err, storage.ErrVersion) { // the number of the version may be what is damaged
		w.reach.DamageRefused++
		return false
	}
	if err != nil {
		w.fail(damage, "%v: open the damaged log (%s): %v", n, d.damage.Detail, err)
		return false
	}
	lost, unreadable := false, false
	for _, g := range w.groups {
		what, bad := differs(before, after, g.id)
		if bad {
			w.fail(damage, "%v, group %d: %s: %s", n, g.id, d.damage.Detail, what)
			return false
		}
		lost = lost || what == lostTail
		unreadable = unreadable || what == unread
	}
	switch {
	case lost: // taken for a torn write
		w.reach.DamageCut++
	case unreadable:
		w.reach.DamageUnread++
	default:
		w.reach.DamageHarmless++
	}
	if lost && w.opts.Bug == cutLog {
		d.damage = nil
	}
	return unreadable && !lost
}

// What damage does to a group's log that opens: it ends earlier; it has entries
// that cannot be read.
const (
	lostTail = "the log lost its end"
	unread   = "entries cannot be read"
)

// differs compares a group's log after damage with the log before. bad says that the
// log gives out what was never written.
func differs(before, after *storage.Engine, group uint64) (what string, bad bool) {
	a, errA := before.Group(group)
	b, errB := after.Group(group)
	if errA != nil || errB != nil {
		return fmt.Sprintf("open the group: %v, %v", errA, errB), true
	}
	hsA, _, errA := a.InitialState()
	hsB, _, errB := b.InitialState()
	if errA != nil || errB != nil {
		return fmt.Sprintf("read the hard state: %v, %v", errA, errB), true
	}
	last, _ := a.LastIndex()
	first, _ := a.FirstIndex()
	lastB, _ := b.LastIndex()
	firstB, _ := b.FirstIndex()
	if !proto.Equal(hsA, hsB) || last != lastB || first != firstB {
		what = lostTail
	}
	for i := max(first, firstB); i <= min(last, lastB); i++ {
		ea, errA := a.Entries(i, i+1, 1<<30)
		eb, errB := b.Entries(i, i+1, 1<<30)
		switch {
		case errA != nil:
			return fmt.Sprintf("entry %d before the damage: %v", i, errA), true
		case errors.Is(errB, storage.ErrDamaged):
			if what == "" {
				what = unread
			}
		case errB != nil:
			return fmt.Sprintf("entry %d: %v", i, errB), true
		case proto.Equal(ea[0], eb[0]):
		case what == lostTail: // an entry that a lost write replaced
		default:
			return fmt.Sprintf("entry %d differs", i), true
		}
	}
	return what, false
}

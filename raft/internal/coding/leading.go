// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package coding

import (
	"maps"
	"time"

	pb "go.etcd.io/raft/v3/raftpb"
	"go.etcd.io/raft/v3/tracker"

	"github.com/weftraft/weft/ecraft"
	"github.com/weftraft/weft/internal/encoded"
	"github.com/weftraft/weft/raft/internal/extend"
)

// leading is the state of a leader that codes. The state begins and ends with the
// leadership.
type leading struct {
	rule
	accounts *accounts

	slots    slots
	unplaced unplaced
	forms    forms
	raiser   raiser
	hedger   hedger
	sealer   sealer
	stuck    stuckMembers
	check    memberCheck
	call     rollCall
	changes  changes
	// anewFrom is the entry from which on acknowledgements count as reports.
	anewFrom uint64
}

// newLeading begins a leadership.
func newLeading(p *parts) *leading {
	n, g, all := p.node, p.ledger, p.accounts
	l := &leading{
		rule: p.rule, accounts: all,
		slots:    slots{node: n},
		unplaced: unplaced{node: n, ledger: g},
		stuck:    stuckMembers{accounts: all, wants: p.wants, stuck: map[uint64]int{}, first: n.log.Last().Index + 1, sentTo: map[uint64]uint64{}},
		check:    memberCheck{accounts: all},
		call:     rollCall{accounts: all},
	}
	w := &words{payloads: p.payloads, accounts: all, check: &l.check}
	l.forms = forms{words: w, wants: p.wants, blocked: map[uint64]bool{}, lagging: map[uint64]time.Duration{}}
	l.raiser = raiser{rule: p.rule, words: w, wants: p.wants, unplaced: &l.unplaced}
	l.hedger = hedger{rule: p.rule, accounts: all, slots: &l.slots, raiser: &l.raiser}
	l.sealer = sealer{accounts: all, slots: &l.slots, unplaced: &l.unplaced, hedger: &l.hedger}
	l.changes = changes{node: n, check: &l.check, call: &l.call, raiser: &l.raiser, slots: &l.slots, reports: p.reports}
	if o := n.observer(); o != nil {
		o.Reset(n.now())
	}
	l.slots.arrange()
	return l
}

// tick lets a tick pass.
func (l *leading) tick() {
	if w, ok := l.observer().(ecraft.ProcessorObserver); ok {
		w.Busy(0, l.busy.float())
	}
	l.hedger.hedge()
	l.unblock()
	l.stuck.serve(l.slots.members, l.forms.blocked)
	l.stuck.handOver()
	l.stuck.readyTransferee()
	l.changes.work()
}

// unblock sends live members the entries that can be made by now.
func (l *leading) unblock() {
	for _, id := range l.slots.members {
		if l.accounts.healthy(id) {
			l.unblockOne(id)
		}
	}
}

func (l *leading) unblockOne(id uint64) {
	if l.forms.blocked[id] {
		l.Ask(extend.Effect{Do: extend.Resend, To: id})
	}
}

// waits reports whether a member or a change of the members waits for payloads.
func (l *leading) waits() bool { return len(l.forms.blocked) > 0 || l.ticks-l.check.failedAt < 2 }

// checks reports whether a check of the members concerns a compacted entry.
func (l *leading) checks(index uint64) bool { return l.check.headers[index] != nil }

// votersChanged hears that other voters count. Another member may come under the id of
// one that has left.
func (l *leading) votersChanged() {
	l.slots.arrange()
	maps.DeleteFunc(l.forms.lagging, func(id uint64, _ time.Duration) bool { return !l.follows(id) })
	maps.DeleteFunc(l.stuck.stuck, func(id uint64, _ int) bool { return !l.follows(id) })
}

// committed notes a higher commit index.
func (l *leading) committed(from, to uint64) {
	for _, rec := range l.ledger.behind(from) {
		if rec.id.Index > to {
			break
		}
		rec.hedgeAt = 0
		if len(rec.raised) == 0 {
			continue
		}
		alone := record{id: rec.id, hdr: rec.hdr}
		if !l.holds(&alone, to, l.node) {
			l.emit(Event{Kind: RiderCommit, Index: rec.id.Index})
		}
	}
	if o := l.observer(); o != nil {
		o.Committed(to)
	}
}

// heardAppend takes the report and the times of an answer to an append.
func (l *leading) heardAppend(m *pb.Message) {
	l.reported(m)
	if m.GetReject() {
		return
	}
	a, now := l.accounts.account(m.GetFrom()), l.now()
	if m.GetIndex() > l.match(m.GetFrom()) {
		a.acked = moment{now, l.ticks}
	}
	o := l.observer()
	if o == nil {
		return
	}
	if w, ok := o.(ecraft.ProcessorObserver); ok {
		w.Busy(m.GetFrom(), a.busy.float())
	}
	o.Acked(m.GetFrom(), m.GetIndex(), a.held, now)
}

// reported takes a member's report from an acknowledgement.
func (l *leading) reported(m *pb.Message) {
	if m.GetIndex() < l.anewFrom {
		return // perhaps of an earlier process: see askAnew
	}
	from := m.GetFrom()
	a := l.accounts.account(from)
	before := a.capable
	if !l.accounts.reported(a, m) {
		return
	}
	if !before && a.capable {
		l.forms.blocked[from] = true
	}
	if !a.stuck {
		delete(l.stuck.stuck, from)
	}
}

// askLagging sends an append, if need be without entries, to a member that by its last
// report lacks payloads of acknowledged entries: the report may be old, and the answer
// has a new one.
func (l *leading) askLagging(id uint64) {
	a := l.accounts.of[id]
	pr, _ := l.raft.Progress(id)
	if a == nil || !a.capable || !a.known || a.completed >= pr.Match {
		return
	}
	if sent := pr.Match < l.log.Last().Index || pr.State == tracker.StateProbe; !sent {
		l.Ask(extend.Effect{Do: extend.Probe, To: id})
	}
}

// sent notes that an append with entries leaves for a member.
func (l *leading) sent(to uint64, ents []*pb.Entry) {
	last := ents[len(ents)-1].GetIndex()
	l.stuck.sentTo[to] = max(l.stuck.sentTo[to], last)
	if o := l.observer(); o != nil {
		o.Sent(to, last, encoded.Size(ents...)-l.forms.saved, l.now())
	}
}

// askAnew has every member report again.
func (l *leading) askAnew() {
	clear(l.stuck.stuck)
	// This entry is acknowledged by processes of now.
	l.anewFrom = noLimit
	l.unplaced.append(nil, func(id ecraft.ID) { l.anewFrom = id.Index })
	l.Ask(extend.Effect{Do: extend.Spread})
}

// takeOver begins the term with carriers for the entries of earlier terms behind the
// commit index, with the units that the members which are alive need to commit these
// entries: the former leader hardly is. The result says whether there are any carriers.
func (l *leading) takeOver(former uint64) bool {
	alive := func(id uint64) bool {
		return id != former || l.accounts.healthy(id)
	}
	n := l.raiser.raise(alive)
	if n > 0 {
		l.emit(Event{Kind: Fallback, Index: l.log.Committed() + 1, Count: n})
	}
	return n > 0
}

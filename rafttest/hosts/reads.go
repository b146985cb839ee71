// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package hosts

import (
	"encoding/binary"

	"github.com/weftraft/weft/leases"
	"github.com/weftraft/weft/raft"
)

// readings are the reads of a process that go by ReadIndex.
type readings struct {
	asked     map[uint64]reading
	confirmed []confirmedRead
	count     uint64
}

type reading struct {
	key  byte
	done func(uint32)
	// fresh is the last index that the read must not miss: somebody may have seen the
	// entry there.
	fresh uint64
}

type confirmedRead struct {
	reading
	index uint64
}

// ask asks for the index to wait for, under a number that no other request of
// any process has.
func (r *replica) ask(c command, done func(uint32)) {
	r.reads.count++
	id := r.m.id<<56 | uint64(r.m.life)<<32 | r.reads.count
	if r.w.opts.Bug == reusedReadIDs {
		id = r.reads.count
	}
	q, spans := reading{c.key, done, r.w.check.fresh}, []leases.Span(nil)
	spanned, ok := r.core.(spannedCore)
	if ok && r.w.readsSpans() {
		q.fresh, spans = r.w.check.freshOf[c.key], []leases.Span{keySpan(c.key)}
	}
	if r.reads.count%2 == 0 && r.readAtOnce(q, spans) {
		return
	}
	r.reads.asked[id] = q
	if spans != nil {
		spanned.ReadIndexSpans(word(id), spans...)
	} else {
		r.core.ReadIndex(word(id))
	}
}

// spannedCore is a core that may be told which keys a read looks at.
type spannedCore interface {
	ReadIndexSpans(rctx []byte, spans ...leases.Span)
}

// confirm takes the answers of the core.
func (r *replica) confirm(states []raft.ReadState) {
	for _, s := range states {
		if len(s.RequestCtx) != 8 {
			die("read state for the request %x", s.RequestCtx)
		}
		id := binary.LittleEndian.Uint64(s.RequestCtx)
		q, ok := r.reads.asked[id]
		if !ok {
			continue
		}
		delete(r.reads.asked, id)
		r.checkFresh(q, s.Index)
		r.reads.confirmed = append(r.reads.confirmed, confirmedRead{q, s.Index})
	}
	r.answerReads()
}

// checkFresh checks the index of a read.
func (r *replica) checkFresh(q reading, index uint64) {
	if index < q.fresh && r.w.opts.Bug == noBug {
		r.w.fail("n%d is to read key %d at %d; somebody may have seen %d when the read began", r.m.id, q.key, index, q.fresh)
	}
}

// answerReads answers the reads for which enough is applied.
func (r *replica) answerReads() {
	left := r.reads.confirmed[:0]
	for _, q := range r.reads.confirmed {
		if q.index <= r.state.at.index {
			r.w.reach.Reads++
			q.done(r.state.values[q.key])
		} else {
			left = append(left, q)
		}
	}
	r.reads.confirmed = left
}

// readsSpans draws whether a read names its key, where entries do.
func (w *sim) readsSpans() bool {
	return w.opts.Library.Leased && w.opts.Kind == cockroachLike && w.clients.Chance(0.7)
}

// permittingCore is a core with permits: a permit names the reads that need no message.
type permittingCore interface {
	LeasePermit(former *leases.Permit) *leases.Permit
}

// publish shows readers what the leases permit, before a Ready is dealt with.
func (r *replica) publish() {
	if core, ok := r.core.(permittingCore); ok {
		r.permit = core.LeasePermit(r.permit)
	}
}

// readAtOnce answers a read without a word to the core, if the permit of the last Ready covers
// the keys, and reports whether it does.
func (r *replica) readAtOnce(q reading, spans []leases.Span) bool {
	if r.permit == nil {
		return false
	}
	index, ok := r.permit.ReadIndex(leases.InstantOf(r.clock.leases.Now()), spans...)
	if !ok || uint64(index) > r.state.at.index {
		return false
	}
	r.w.leases.PermitReads++
	r.w.reach.Reads++
	r.checkFresh(q, uint64(index))
	q.done(r.state.values[q.key])
	return true
}

// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package leases

import (
	"errors"
	"slices"
	"time"
)

const keyCount = 4

// keySpans are the keys that the model writes.
var keySpans = [keyCount]Span{KeySpan("a"), KeySpan("b"), KeySpan("c"), KeySpan("d")}

func keyOf(k int) Span { return keySpans[k] }

// entry is an entry of the model's log. Writes set keys, by bit.
type entry struct {
	term Term
	id   uint64
	keys uint8
	told bool // which keys it touches is known to all
	conf *Members
}

func (e entry) writes(key int) bool { return e.keys&(1<<key) != 0 }

func (e entry) spans() []Span {
	if !e.told {
		return nil
	}
	spans := []Span{}
	for k := range keyCount {
		if e.writes(k) {
			spans = append(spans, keyOf(k))
		}
	}
	return spans
}

// disk is what a member finds after a restart.
type disk struct {
	term   Term
	vote   NodeID
	log    []entry
	commit Index
}

// read is a read that waits until the member has applied an index.
type read struct {
	keys  uint8
	index Index
	fresh [keyCount]Index // when it began
}

// member is one node of the model.
type member struct {
	w     *world
	id    NodeID
	clock clock
	conf0 Members

	alive, paused bool
	inbox         []func() // while it is paused
	missed        int      // ticks
	life          int      // grows with each start and stop; what belongs to an earlier life is void

	disk    disk
	term    Term
	vote    NodeID
	log     []entry
	commit  Index
	applied Index
	conf    Members
	lead    NodeID
	leads   bool
	runs    bool // it is a candidate
	votes   map[NodeID]bool
	match   map[NodeID]Index
	sentTo  map[NodeID]Index
	beat    Instant // next heartbeat
	heard   Instant
	patient time.Duration
	pending Index // the last change of the configuration that may not be applied
	wants   *Members
	heir    NodeID
	handing Instant

	matched Index // up to where its log is that of the leader of its term
	durable Index
	dirty   bool
	syncing bool
	stuck   bool // its disk is
	limps   int  // how many times as long its disk takes beyond what it should
	misled  bool // its clock is beyond the bound, and it knows
	// slowApply says that its state machine does not get on
	slowApply bool
	// deafToTicks keeps ticks from its leases
	deafToTicks bool
	// published is a commit rule in the place of ours.
	published func(upTo Index) Index
	vouches   []func()

	lease  *Node
	permit *Permit       // as of the last flush
	leased time.Duration // the longest of all runs
	asking bool
	reads  []read
	// first is the first entry of its term in its log, if it leads
	first Index
}

// started returns the leases of a node whose settings are right.
func started(cfg Config, s Start) *Node {
	n, err := New(cfg, s)
	if err != nil {
		panic(err)
	}
	return n
}

// start starts a member from its disk.
func (m *member) start(empty bool) {
	w := m.w
	m.alive, m.paused, m.life = true, false, m.life+1
	m.inbox, m.missed = nil, 0
	m.term, m.vote, m.log, m.commit = m.disk.term, m.disk.vote, slices.Clip(m.disk.log), m.disk.commit
	m.applied, m.conf, m.lead, m.leads, m.runs = 0, m.conf0, 0, false, false
	m.matched, m.durable, m.dirty, m.syncing, m.vouches = 0, Index(len(m.log)), false, false, nil
	m.stuck, m.slowApply = false, false
	m.reads, m.wants, m.heir, m.heard = nil, nil, 0, 0
	w.boots++
	cfg := w.set.cfg
	cfg.ID, cfg.Boot = m.id, Boot(w.boots)
	cfg.DriftPPM, cfg.Resolution = w.boundOf(m.id).DriftPPM, w.boundOf(m.id).Resolution
	cfg.Lease = m.drawLease(cfg)
	cfg.Quarantine = max(m.leased, cfg.Lease)
	m.leased = cfg.Quarantine // a run may end before its quarantine does
	m.lease = started(cfg, Start{Now: m.reading(), Term: m.term, Empty: empty})
	m.lease.Configured(m.reading(), m.conf)
	m.appended(1)
	m.permit = nil
	m.lease.Committed(m.commit)
	m.applyTo(m.commit)
	m.patient = w.between(w.set.cfg.ElectionTimeout, 2*w.set.cfg.ElectionTimeout)
	m.heard = m.reading()
	m.planTick(m.life)
	m.flush()
}

// drawLease sometimes makes the lease of a run shorter than that of others.
func (m *member) drawLease(cfg Config) time.Duration {
	shorter := cfg
	shorter.Lease = m.w.between(cfg.Lease/2, cfg.Lease)
	if m.w.calm || m.w.chance(0.7) || shorter.Validate() != nil {
		return cfg.Lease
	}
	return shorter.Lease
}

// stop stops a member: what is not on its disk is gone.
func (m *member) stop() {
	m.alive, m.paused, m.life = false, false, m.life+1
	m.count()
}

// count adds up what the leases of a run of the member did.
func (m *member) count() {
	c, r := m.lease.counts, &m.w.reached
	r.Granted += int(c.Granted)
	r.Confirmed += int(c.Confirmed)
	r.Adopted += int(c.Adopted)
	r.Removed += int(c.Removed)
	r.Restored += int(c.Restored)
	r.Silent += int(c.Silent)
	r.Stuck += int(c.Stuck)
	r.Faltered += int(c.Faltered)
	r.Limped += int(c.Limped)
}

// receive runs what arrived, or keeps it until the member goes on.
func (m *member) receive(run func()) {
	switch {
	case !m.alive:
	case m.paused:
		m.inbox = append(m.inbox, run)
	default:
		run()
		m.flush()
	}
}

// later plans something of this life of the member.
func (m *member) later(d time.Duration, run func()) {
	life := m.life
	m.w.after(d, func() {
		if m.life == life {
			m.receive(run)
		}
	})
}

func (m *member) planTick(life int) {
	m.w.after(m.w.set.tick, func() {
		if m.life != life {
			return
		}
		if m.paused {
			m.missed++
		} else {
			m.tick()
		}
		m.planTick(life)
	})
}

// pause stops the process, but not its clock.
func (m *member) pause() { m.paused = true }

// resume lets the process go on: ticks that were missed come in a burst or not
// at all, before or after the messages that wait, and clients ask at once.
func (m *member) resume() {
	if !m.paused {
		return
	}
	w := m.w
	m.paused = false
	burst := func() {
		if w.chance(0.5) {
			for range m.missed {
				m.tick()
			}
		}
		m.missed = 0
	}
	first := w.rng.IntN(3)
	if first == 0 {
		w.ask(m)
	}
	if first != 1 {
		burst()
	}
	inbox := m.inbox
	m.inbox = nil
	for _, run := range inbox {
		if m.alive && !m.paused {
			run()
			m.flush()
		}
	}
	burst()
}

// tick is what a member does now and then.
func (m *member) tick() {
	now := m.reading()
	if !m.deafToTicks {
		m.lease.Tick(now)
	}
	switch {
	case m.leads:
		if now >= m.beat {
			m.beat = now.after(m.w.set.cfg.Heartbeat)
			m.broadcast()
		}
		m.tryChange()
		m.tryHandOver()
	case now.since(m.heard) >= m.patient:
		m.campaign(false)
	}
	m.flush()
	if err := m.lease.Check(); err != nil {
		m.w.fail("Fields", "%v", err)
	}
	m.w.checkTuner(m)
	m.w.checkKept(m)
	m.w.checkAgreed(m)
	if was := m.asking; was && !m.lease.isAsking() {
		m.w.reached.Asked++
	}
	m.asking = m.lease.isAsking()
}

// flush sends what the leases have to say, and does what became possible.
func (m *member) flush() {
	if !m.alive || m.paused {
		return
	}
	for _, o := range m.lease.Poll(m.reading()) {
		m.w.ambush(m, o)
		m.w.messages++
		data := AppendMessage(nil, &o.Message)
		if len(data) > 1<<20 {
			continue // transports take no longer control messages
		}
		from := m.id
		m.w.send(from, o.To, func(to *member) {
			msg, err := ParseMessage(data)
			if err == nil {
				err = to.lease.Step(to.reading(), from, msg)
			}
			if err != nil && !errors.Is(err, ErrClocks) {
				to.w.fail("Messages", "node %d to %d: %v", from, to.id, err)
			}
		})
	}
	if m.leads {
		m.maybeCommit()
	} else {
		m.tryRelease()
	}
	m.flushDisk()
	m.publish()
}

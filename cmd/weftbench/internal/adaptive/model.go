// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package adaptive

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/weftraft/weft/ecraft"
	"github.com/weftraft/weft/ecraft/papers"
)

const (
	threshold     = 512 // smaller payloads are not coded
	messageBytes  = 64  // a message, and the header of an entry in the message
	unitBytes     = 4   // a unit's checksum
	windowEntries = 256 // messages to a follower without an answer yet
	heartbeat     = 100 * ms
	unhealthy     = time.Second // silence after which a follower is unhealthy
	hintEvery     = ms          // at most, as package rawnode does
	maxTokens     = 4 << 20     // bound of the bytes that hedges may save up
)

// entry is an entry of the leader's log.
type entry struct {
	size  int
	at    time.Duration
	plan  ecraft.Plan
	units shares
	// layout is the cut of the payload: as in the core, a level that does not divide the group's D has one of its own.
	layout ecraft.Layout
	bytes  [maxFollowers]int32 // of the message that carries the entry
	// number of answers, the leader's included, for a side that counts answers; 0: the commit rule
	need int
	d    int          // units that restore the payload
	sets []ecraft.Set // those of each follower, if followers' units overlap

	riders []rider // of a carrier, and of the entries that the carrier raises
}

// rider raises an entry: from carrier on, followers hold this number of units of the entry.
type rider struct {
	carrier, entry uint64
	units          shares
}

// follower is a follower, and the leader's view of the follower.
type follower struct {
	link *Link
	rng  *rand.Rand
	to   pipe
	back time.Duration // when its last answer arrives

	waits   int         // bytes that the leader has not sent yet, for sides with hints
	leaving []departure // the parts of waits, in order

	next, match uint64
	flying      int
	heard       time.Duration
	spoke       time.Duration // time of the last answer to an append

	durable, received uint64 // at the follower
	since             []time.Duration
	syncing           bool
	pausedUntil       time.Duration
	dead              bool
}

// departure is a number of bytes that leave the leader at a time.
type departure struct {
	at    time.Duration
	bytes int
}

// model is a small model of the protocol: appends, answers, the commit rule,
// riders and hedges. Messages are lost only with their receiver.
type model struct {
	agenda
	n      int
	now    time.Duration
	net    Network
	layout ecraft.Layout
	side   Side

	policy   ecraft.Policy
	general  papers.SetPolicy // used if policy is nil
	sets     []ecraft.Set
	observer ecraft.Observer
	round    ecraft.Round
	units    []int

	busy      time.Duration // until when the interface sends
	cpus      []*cpu        // the leader's, and the followers'; nil without processors
	deaf      bool          // the policy hears nothing of processors
	followers []*follower
	log       []entry // log[i] has index i+1
	committed uint64
	carriers  []uint64 // not committed yet
	tokens    float64
	alarm     time.Duration // of the next hedge
	retry     time.Duration
	hinted    time.Duration // time of the last hint to the policy

	onCommit func(index uint64, now time.Duration)
	calls    []func()
	usage    Usage
	risks    map[holdings]bool
}

// newModel returns a cluster at time 0, with a leader elected at this time.
func newModel(net Network, side Side, seed uint64) *model {
	n := len(net.Links) + 1
	m := &model{n: n, net: net, side: side, layout: ecraft.NewLayout(n, n-1), units: make([]int, n-1), alarm: never, risks: map[holdings]bool{}}
	m.net.Links = append([]Link(nil), net.Links...)
	policy := side.policy()
	m.policy, _ = policy.(ecraft.Policy)
	m.general, _ = policy.(papers.SetPolicy)
	m.observer, _ = policy.(ecraft.Observer)
	m.sets = make([]ecraft.Set, n-1)
	m.round = ecraft.Round{Voters: n, Layout: m.layout, Followers: make([]ecraft.Member, n-1)}
	for i := range net.Links {
		m.followers = append(m.followers, &follower{link: &m.net.Links[i], next: 1, rng: rand.New(rand.NewPCG(seed, uint64(i)))})
		m.round.Followers[i] = ecraft.Member{ID: uint64(i) + 2}
		if m.observer != nil {
			m.observer.Joined(uint64(i)+2, true, 0)
		}
	}
	if m.observer != nil {
		m.observer.Reset(0)
	}
	m.cpus = newCPUs(net.Processor, n)
	m.add(event{at: 0, kind: beat})
	return m
}

var _ Cluster = (*model)(nil)

// Now and the methods below implement Cluster.

func (m *model) Now() time.Duration                     { return m.now }
func (m *model) OnCommit(f func(uint64, time.Duration)) { m.onCommit = f }
func (m *model) Usage() Usage                           { return m.usage }
func (m *model) Kill(i int)                             { m.followers[i].dead = true }
func (m *model) Pause(i int, until time.Duration)       { m.followers[i].pausedUntil = until }
func (m *model) Change(f func(net *Network))            { f(&m.net) }
func (m *model) Schedule(at time.Duration, do func()) {
	m.calls = append(m.calls, do)
	m.add(event{at: at, kind: client, index: uint64(len(m.calls) - 1)})
}

// Err is an error if a side with Raft's guarantee acknowledged an entry that a minority's failure could lose.
func (m *model) Err() error {
	if m.general == nil && m.usage.AtRisk > 0 {
		return fmt.Errorf("side %s: of %d entries acknowledged, the failure of a minority could lose %d", m.side.Name, m.usage.Acked, m.usage.AtRisk)
	}
	return nil
}

// Step runs the next event.
func (m *model) Step() bool {
	if len(m.heap) == 0 {
		return false
	}
	e := m.heap.Pop()
	m.now = e.at
	switch e.kind {
	case client:
		do := m.calls[e.index]
		m.calls[e.index] = nil
		do()
	case beat:
		m.beat()
	case hedgeAt:
		if m.now == m.alarm { // otherwise an earlier alarm was set since
			m.alarm = never
			m.hedge()
		}
	default:
		if !m.processed(&e) {
			m.remote(int(e.node), e)
		}
	}
	return true
}

// Propose appends an entry and sends the entry.
func (m *model) Propose(size int) uint64 {
	index := uint64(len(m.log)) + 1
	r := &m.round
	r.Index, r.Now, r.Size = index, m.now, size
	for i, f := range m.followers {
		r.Followers[i].Healthy = m.now-f.heard < unhealthy
	}
	if m.observer != nil {
		m.observer.Proposed(index, size, m.now)
	}
	e := entry{size: size, at: m.now}
	m.assign(&e)
	m.tokens = min(m.tokens+ecraft.HedgeBudget*float64(size), maxTokens)
	m.usage.Payload += int64(size)
	m.append(e)
	return index
}

// assign asks the policy for an entry's shares.
func (m *model) assign(e *entry) {
	e.layout = m.layout
	d := m.layout.D
	switch {
	case e.size < threshold && !m.side.always:
		e.plan = ecraft.Full{}.Assign(&m.round, m.units)
	case m.general != nil:
		p := m.general.AssignSets(&m.round, m.sets)
		e.plan, e.need, d = p.Plan, p.Quorum, p.D
		e.sets = slices.Clone(m.sets)
		for i := range m.sets {
			m.units[i] = m.sets[i].Len()
		}
	default:
		if m.side.hints && m.now-m.hinted >= hintEvery {
			m.hint()
		}
		e.plan = m.policy.Assign(&m.round, m.units)
		e.layout = m.layout.Reduce(m.units)
		d = e.layout.D
	}
	e.d = d
	whole := true
	for i, u := range m.units {
		e.units[i] = uint8(u)
		whole = whole && u == d
	}
	unit := (e.size + d - 1) / d
	for i, u := range m.units {
		e.bytes[i] = int32(messageBytes + u*(unit+unitBytes))
		if whole || u == d {
			e.bytes[i] = int32(messageBytes + e.size)
		}
		if m.side.spares && !m.round.Followers[i].Healthy {
			e.bytes[i] = messageBytes
		}
	}
}

func (m *model) append(e entry) {
	m.log = append(m.log, e)
	m.work(0, m.net.Processor.call(e.size, m.coded(&e)))
	m.send()
	m.arm()
}

// send sends all entries that the windows allow: entry by entry, to each follower in turn.
func (m *model) send() {
	for {
		sent := false
		for i, f := range m.followers {
			if f.next > uint64(len(m.log)) || f.flying >= windowEntries {
				continue
			}
			index := f.next
			f.next++
			f.flying++
			bytes := int(m.log[index-1].bytes[i])
			m.transmit(i, bytes, event{kind: arrival, node: int16(i), index: index}, false)
			if m.observer != nil {
				m.observer.Sent(uint64(i)+2, index, bytes, m.now)
			}
			sent = true
		}
		if !sent {
			return
		}
	}
}

// transmit puts bytes on their way to a follower.
func (m *model) transmit(i, bytes int, e event, control bool) {
	f := m.followers[i]
	m.usage.Egress += int64(bytes)
	if control {
		// A message that bypasses the queue waits for the packet under way.
		e.at = m.now + transfer(1500, m.net.Egress) + f.link.late(f.rng)
		m.add(e)
		return
	}
	start := max(m.busy, m.work(0, m.net.Processor.message(bytes)))
	m.busy = start + transfer(bytes, m.net.Egress)
	done := m.busy
	if f.link.Rate > 0 {
		f.to.free = max(f.to.free, start) + transfer(bytes, f.link.Rate)
		done = max(done, f.to.free)
	}
	if m.side.hints && !control {
		f.waits += bytes
		f.leaving = append(f.leaving, departure{done, bytes})
	}
	f.to.arrived = max(f.to.arrived, done+f.link.late(f.rng))
	e.at = f.to.arrived
	m.add(e)
}

// hint tells the policy the number of bytes that have not left for each follower: bytes at the
// interface, and bytes that wait for a slow link.
func (m *model) hint() {
	m.hinted = m.now
	for i, f := range m.followers {
		n := 0
		for ; n < len(f.leaving) && f.leaving[n].at <= m.now; n++ {
			f.waits -= f.leaving[n].bytes
		}
		f.leaving = slices.Delete(f.leaving, 0, n)
		m.observer.QueueHint(uint64(i)+2, f.waits, 0, m.now)
	}
}

// reply puts an answer on its way back.
func (m *model) reply(f *follower, e event) {
	f.back = max(f.back, m.work(int(e.node)+1, m.net.Processor.message(0))+f.link.late(f.rng))
	e.at = f.back
	m.add(e)
}

// remote runs the events at a follower, and the arrival of its answers.
func (m *model) remote(i int, e event) {
	f := m.followers[i]
	switch e.kind {
	case answer:
		m.answered(i, f, e)
		return
	case beatBack:
		f.heard = m.now
		if m.observer != nil {
			m.observer.HeartbeatAnswered(uint64(i)+2, m.now)
		}
		return
	}
	if f.dead {
		return
	}
	if f.pausedUntil > m.now {
		e.at = f.pausedUntil
		m.add(e)
		return
	}
	switch e.kind {
	case arrival:
		f.received = e.index
		if f.link.Sync == 0 && f.link.Disk == 0 {
			f.durable = e.index
			m.push(i, e.index)
			m.reply(f, event{kind: answer, node: e.node, index: e.index})
			return
		}
		f.since = append(f.since, m.now)
		m.sync(i, f)
	case synced:
		f.syncing = false
		held := m.now - f.since[e.index-f.durable-1]
		f.since = append(f.since[:0], f.since[e.index-f.durable:]...)
		for x := f.durable + 1; x <= e.index; x++ {
			m.push(i, x)
		}
		f.durable = e.index
		m.reply(f, event{kind: answer, node: e.node, index: e.index, held: held})
		m.sync(i, f)
	case beatAt:
		m.reply(f, event{kind: beatBack, node: e.node})
	}
}

// sync makes all arrived entries durable, together, when the disk is free.
func (m *model) sync(i int, f *follower) {
	if f.syncing || f.durable == f.received {
		return
	}
	f.syncing = true
	bytes := 0
	for x := f.durable + 1; x <= f.received; x++ {
		bytes += int(m.log[x-1].bytes[i])
	}
	m.add(event{at: m.now + f.link.Sync + transfer(bytes, f.link.Disk), kind: synced, node: int16(i), index: f.received})
}

func (m *model) answered(i int, f *follower, e event) {
	f.heard = m.now
	if e.index > f.match {
		f.spoke = m.now
		f.flying -= int(e.index - f.match)
		f.match = e.index
	}
	if m.observer != nil {
		m.observer.Acked(uint64(i)+2, e.index, e.held, m.now)
	}
	m.advance()
	m.send()
}

func (m *model) beat() {
	m.lookAtProcessors()
	for i := range m.followers {
		m.transmit(i, messageBytes, event{kind: beatAt, node: int16(i)}, true)
		if m.observer != nil {
			m.observer.HeartbeatSent(uint64(i)+2, m.now)
		}
	}
	m.add(event{at: m.now + heartbeat, kind: beat})
}

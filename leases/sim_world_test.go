// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package leases

import (
	"container/heap"
	"fmt"
	"math/rand/v2"
	"reflect"
	"time"
)

// world is a group of model nodes in virtual time: a plain and honest Raft
// without snapshots around the leases of this package, drawn and run from one
// seed. What the nodes are asked to read is checked against all that was
// acknowledged and read before.
type world struct {
	rng    *rand.Rand
	tuning *rand.Rand // nil unless the run has a tuner
	seed   uint64
	opt    options
	set    settings
	now    time.Duration
	events events
	seq    uint64

	members []*member
	cut     [][]bool          // one way, from and to, by id
	slow    [][]time.Duration // likewise, for everything
	bulk    [][]time.Duration // likewise, for entries

	// What is committed, and what somebody may have seen of it, by key.
	chosen  []entry
	fresh   [keyCount]Index
	failure string
	trace   []string
	reached reached
	boots   uint64
	entries uint64
	calm    bool
	// messages counts those of leases.
	messages int
	busy     float64 // chance of a write where a client acts
}

// options are what a test asks of a run.
type options struct {
	beyond  float64 // by how much clocks exceed the bound, which is wide then; 0: not at all
	only    string  // if it is not empty, other invariants are not looked at
	verbose bool
}

// settings are drawn by the seed.
type settings struct {
	nodes, voters int
	first         NodeID // campaigns at once
	cfg           Config
	tick          time.Duration
	delay, jitter time.Duration
	loss, dup     float64
	late          float64 // messages that arrive long after
	forced        bool    // nodes heed votes although they hear their leader
	spans         bool    // entries tell which keys they touch
	applyLag      time.Duration
	sync          time.Duration
	pace          time.Duration // between acts, on average
	weights       [actCount]int
	rates         []float64             // of the clocks, if not drawn
	ambush        float64               // chance of an act upon a message of leases that matters
	meek          bool                  // nobody but the first campaigns
	bounds        map[NodeID]ClockBound // of clocks, where they are not those of cfg
}

// reached counts what a run came by.
type reached struct {
	Leaders, Commits, LocalReads, LeaderReads, LearnerReads, HeldReads, Permits, Withdrawn, PermitReads, PermitWaits, PausedReads, CutReads,
	Granted, Expired, Confirmed, Adopted, Removed, Restored, Restarts, Asked, Pauses, Changes, Joints, Transfers, GaveUp, Retired,
	NoteCommits, Recovered, Retuned, TunedSpans, Asides, Silent, Stuck, Faltered, Limped int
}

func (r *reached) add(o reached) {
	a, b := reflect.ValueOf(r).Elem(), reflect.ValueOf(o)
	for i := range a.NumField() {
		a.Field(i).SetInt(a.Field(i).Int() + b.Field(i).Int())
	}
}

type event struct {
	at  time.Duration
	seq uint64
	run func()
}

type events []event

func (e events) Len() int { return len(e) }
func (e events) Less(i, j int) bool {
	return e[i].at < e[j].at || e[i].at == e[j].at && e[i].seq < e[j].seq
}
func (e events) Swap(i, j int) { e[i], e[j] = e[j], e[i] }
func (e *events) Push(x any)   { *e = append(*e, x.(event)) }
func (e *events) Pop() any {
	old := *e
	x := old[len(old)-1]
	old[len(old)-1] = event{}
	*e = old[:len(old)-1]
	return x
}

// after plans an event.
func (w *world) after(d time.Duration, run func()) {
	w.seq++
	heap.Push(&w.events, event{at: w.now + max(d, 0), seq: w.seq, run: run})
}

// run runs events for a while, or until an invariant does not hold.
func (w *world) run(d time.Duration) {
	until := w.now + d
	for len(w.events) > 0 && w.events[0].at <= until && w.failure == "" {
		e := heap.Pop(&w.events).(event)
		w.now = e.at
		e.run()
	}
	if w.failure == "" {
		w.now = until
	}
}

func (w *world) chance(p float64) bool { return w.rng.Float64() < p }

func (w *world) upTo(d time.Duration) time.Duration {
	if d <= 0 {
		return 0
	}
	return time.Duration(w.rng.Int64N(int64(d)))
}

func (w *world) between(a, b time.Duration) time.Duration { return a + w.upTo(b-a) }

func (w *world) fail(invariant, format string, args ...any) {
	if w.failure == "" && (w.opt.only == "" || w.opt.only == invariant) {
		w.failure = fmt.Sprintf("seed %d: %s does not hold: at %v: %s", w.seed, invariant, w.now, fmt.Sprintf(format, args...))
		w.logf("%s", w.failure)
	}
}

func (w *world) logf(format string, args ...any) {
	if w.opt.verbose {
		w.trace = append(w.trace, fmt.Sprintf("%10v ", w.now)+fmt.Sprintf(format, args...))
	}
}

// draw draws the settings of a seed.
func (w *world) draw() {
	r := w.rng
	s := &w.set
	s.nodes = 3 + r.IntN(5)
	s.voters = min(s.nodes, 3+r.IntN(5))
	s.first = NodeID(1 + r.IntN(s.voters))
	lease := w.between(150*time.Millisecond, 500*time.Millisecond)
	s.cfg = Config{
		Lease:           lease,
		ElectionTimeout: w.between(150*time.Millisecond, 600*time.Millisecond),
		Heartbeat:       w.between(10*time.Millisecond, 30*time.Millisecond),
		Fail:            w.between(80*time.Millisecond, 200*time.Millisecond),
		DriftPPM:        []int{1000, 20_000, 100_000}[r.IntN(3)],
		Resolution:      []time.Duration{time.Microsecond, time.Millisecond, 4 * time.Millisecond}[r.IntN(3)],
		Notes:           r.IntN(2) == 0,
		Wanted:          w.someWanted(),
	}
	if w.opt.beyond > 0 {
		s.cfg.DriftPPM = 100_000
	}
	renewed := min(s.cfg.Lease, s.cfg.ElectionTimeout) - s.cfg.delta(s.cfg.clock())
	s.cfg.Heartbeat = min(s.cfg.Heartbeat, renewed/3)
	s.tick = s.cfg.Heartbeat / 2
	s.delay = w.between(200*time.Microsecond, 4*time.Millisecond)
	s.jitter = w.between(0, 10*time.Millisecond)
	s.loss = []float64{0, 0.01, 0.1}[r.IntN(3)]
	s.dup = []float64{0, 0.05}[r.IntN(2)]
	s.late = []float64{0, 0.02, 0.1}[r.IntN(3)]
	s.forced = r.IntN(2) == 0
	s.spans = r.IntN(2) == 0
	s.applyLag = []time.Duration{0, 3 * time.Millisecond, 100 * time.Millisecond}[r.IntN(3)]
	s.sync = w.between(100*time.Microsecond, 5*time.Millisecond)
	s.pace = w.between(20*time.Millisecond, 300*time.Millisecond)
	for i := range s.weights {
		s.weights[i] = []int{0, 1, 1, 5}[r.IntN(4)]
	}
	s.weights[r.IntN(actCount)] += 5
	s.ambush = []float64{0, 0, 0.02, 0.2}[r.IntN(4)]
}

func newWorld(seed uint64, opt options) *world {
	w := &world{rng: rand.New(rand.NewPCG(seed, 7)), seed: seed, opt: opt}
	w.draw()
	w.drawTuner()
	return w
}

// begin starts the members, voters first.
func (w *world) begin() {
	n := w.set.nodes + 1
	for range n {
		w.cut, w.slow, w.bulk = append(w.cut, make([]bool, n)), append(w.slow, make([]time.Duration, n)), append(w.bulk, make([]time.Duration, n))
	}
	conf := Members{}
	for id := NodeID(1); int(id) <= w.set.nodes; id++ {
		if int(id) <= w.set.voters {
			conf.Incoming = append(conf.Incoming, id)
		} else {
			conf.Learners = append(conf.Learners, id)
		}
	}
	for id := NodeID(1); int(id) <= w.set.nodes; id++ {
		m := &member{w: w, id: id, conf0: conf}
		m.clock.rate = 1
		m.clock.local = float64(w.between(0, time.Hour))
		w.members = append(w.members, m)
		w.drift(m)
	}
	for _, m := range w.members {
		m.start(true)
	}
	first := w.member(w.set.first)
	w.after(time.Millisecond, func() { first.receive(func() { first.campaign(false) }) })
}

func (w *world) member(id NodeID) *member { return w.members[id-1] }

// clock runs at a rate of its own, which changes.
type clock struct {
	at    time.Duration // real, when rate changed last
	local float64       // what it read then
	rate  float64
}

func (w *world) drift(m *member) {
	c := &m.clock
	c.local += float64(w.now-c.at) * c.rate
	c.at = w.now
	rho := float64(w.boundOf(m.id).DriftPPM) / 1e6 * max(w.opt.beyond, 1)
	if w.set.rates != nil {
		c.rate = w.set.rates[m.id-1]
		return
	}
	switch w.rng.IntN(4) {
	case 0:
		c.rate = 1 + rho*(2*w.rng.Float64()-1)
	case 1, 2:
		c.rate = 1 + rho
	default:
		c.rate = max(1-rho, 0.05)
	}
}

// reading is what a member's clock shows: in steps of its resolution.
func (m *member) reading() Instant {
	t := Instant(m.clock.local + float64(m.w.now-m.clock.at)*m.clock.rate)
	return t - t%Instant(m.w.boundOf(m.id).Resolution)
}

// boundOf is the bound of a member's clock.
func (w *world) boundOf(id NodeID) ClockBound {
	if b, ok := w.set.bounds[id]; ok {
		return b
	}
	return w.set.cfg.clock()
}

// send carries something to a member, late, more than once, or not at all.
func (w *world) send(from, to NodeID, deliver func(*member)) { w.carry(from, to, 0, deliver) }

func (w *world) carry(from, to NodeID, extra time.Duration, deliver func(*member)) {
	if w.cut[from][to] || !w.calm && w.chance(w.set.loss) {
		return
	}
	d := w.set.delay + w.upTo(w.set.jitter) + w.slow[from][to] + extra
	if !w.calm && w.chance(w.set.late) {
		d += w.upTo(3 * w.set.cfg.Lease)
	}
	run := func() { w.member(to).receive(func() { deliver(w.member(to)) }) }
	w.after(d, run)
	if !w.calm && w.chance(w.set.dup) {
		w.after(d+w.upTo(2*w.set.cfg.Lease), run)
	}
}

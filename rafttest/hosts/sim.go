// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package hosts

import (
	"fmt"
	"math"
	"runtime/debug"
	"slices"
	"time"

	pb "go.etcd.io/raft/v3/raftpb"
	"go.etcd.io/raft/v3/tracker"

	"github.com/weftraft/weft/internal/world"
	"github.com/weftraft/weft/leases"
	"github.com/weftraft/weft/raft"
	"github.com/weftraft/weft/rafttest/internal/register"
)

// sim is a run.
type sim struct {
	world.Agenda
	story world.Story
	opts  options
	plan  plan
	// Streams of randomness, so that more draws from a stream leave the others
	// alone.
	faults, net, clients world.Draws

	machines []*machine // by id, from 1
	links    *world.Network
	streams  [maxMachines + 1][maxMachines + 1]stream
	sent     int // frames, of cores
	// confAt is the index of the newest configuration by which who left was shut down.
	confAt uint64
	// calm is set when the faults are over.
	calm bool

	check   checker
	rush    rush
	roll    upgrade
	history []access
	reach   reach
	leases  leaseReach
	err     error
}

func newSim(seed uint64, opts options) *sim {
	draw := func(stream uint64) world.Draws { return world.NewDraws(seed, stream) }
	w := &sim{opts: opts, plan: drawPlan(draw(1)), faults: draw(2), net: draw(3), clients: draw(4)}
	w.check.w = w
	w.story = world.NewStory(&w.Agenda, opts.Trace)
	w.links = world.NewNetwork(&w.Agenda, w.net, maxMachines, &w.plan.links)
	w.plan.drawMachines(draw(40))
	w.links.Echoes = draw(41)
	if w.rush = drawRush(draw(6), opts); opts.Rush {
		w.plan.churnEvery = 0
	}
	if opts.Library.Leased {
		w.plan.checkQuorum = true // which leases need
	}
	return w
}

// run runs a seed. It sets the reader of crypto/rand, because upstream's
// library draws from the reader: one run at a time.
func run(seed uint64, opts options) result {
	world.CollectLess()
	w := newSim(seed, opts)
	defer seedEntropy(world.NewDraws(seed, 5))()
	w.say(0, "plan: %+v", w.plan)
	if opts.Rush {
		w.say(0, "changes at once: every %v, reports first %v", w.rush.every, w.rush.reportsFirst)
	}
	w.found()
	w.beginFaults()
	w.beginClients()
	w.beginOperator()
	w.beginRush()
	w.beginRolling()
	w.beginLeases()
	w.runUntil(runTime, nil)
	if !w.runUntil(w.Now()+rollTime, func() bool { return w.roll.done }) && w.err == nil {
		w.fail("some members do not run %s after %v: %s", w.target().Name, rollTime, w.describe())
	}
	if w.err == nil {
		w.finale()
	}
	if w.err == nil {
		w.checkHistory()
	}
	for _, m := range w.machines {
		m.countLeases()
	}
	w.reach.NetworkCounts = w.links.NetworkCounts
	r := result{Seed: seed, Err: w.err, Reached: w.reach, Leases: w.leases}
	if r.Err != nil {
		r.Err = fmt.Errorf("seed %d, %v on %s: %w", seed, opts.Kind, opts.Library.Name, r.Err)
		r.Story = w.story.Recent()
	}
	return r
}

// found makes the first members, with the same state.
func (w *sim) found() {
	conf := &pb.ConfState{}
	for id := range uint64(w.plan.founders) {
		conf.Voters = append(conf.Voters, id+1)
	}
	for range conf.Voters {
		w.addMachine(newDisk(conf)).start()
	}
}

func (w *sim) addMachine(d *disk) *machine {
	m := &machine{w: w, id: uint64(len(w.machines) + 1), disk: d, spindle: world.NewSpindle(&w.Agenda), lib: w.opts.Library}
	if w.roll.w != nil {
		m.lib = w.target()
	}
	w.machines = append(w.machines, m)
	return m
}

// runUntil lets time pass until an instant, or until done.
func (w *sim) runUntil(t time.Duration, done func() bool) bool {
	for w.err == nil && (done == nil || !done()) {
		if !w.Step(t) {
			return done != nil && done()
		}
	}
	return w.err == nil
}

// fail ends the run.
func (w *sim) fail(format string, args ...any) {
	if w.err == nil {
		w.err = fmt.Errorf("at %v: %w", w.Now(), fmt.Errorf(format, args...))
		w.say(0, "%v", w.err)
	}
}

func (w *sim) say(id uint64, format string, args ...any) {
	w.story.Tell(id, format, args...)
}

// broken is the panic value of a host that finds a contract broken.
type broken struct{ what error }

// guard runs a part of a process. What a host or a core cannot bear ends the
// run.
func (w *sim) guard(id uint64, f func()) {
	defer func() {
		switch p := recover().(type) {
		case nil:
		case broken:
			w.fail("n%d dies: %w", id, p.what)
		default:
			w.fail("n%d panics: %v\n%s", id, p, debug.Stack())
		}
	}()
	f()
}

// live returns the machines that are members, as far as the operator knows.
func (w *sim) live() (ms []*machine) {
	for _, m := range w.machines {
		if !m.gone {
			ms = append(ms, m)
		}
	}
	return ms
}

// leader returns the process that leads in the latest term, or nil.
func (w *sim) leader() process {
	var p process
	term := uint64(0)
	for _, m := range w.machines {
		if m.proc == nil || m.paused {
			continue
		}
		if s := m.proc.common().core.State(); s.Role == raft.StateLeader && s.Term > term {
			p, term = m.proc, s.Term
		}
	}
	return p
}

// checker holds what must be true of all members at once.
type checker struct {
	w *sim
	// leaders is the leader of each term.
	leaders map[uint64]uint64
	// applied is what stands at each index: its term, and a checksum.
	applied map[uint64]appliedEntry
	// fresh is the index of the last entry applied anywhere that concerns any key, freshOf the
	// same for a key: somebody may have seen the entry.
	fresh   uint64
	freshOf [keys]uint64
	// changes are the changes of the members that were proposed, as bytes.
	changes []string
}

type appliedEntry struct {
	term uint64
	sum  uint64
}

// sees looks at a member after a step.
func (c *checker) sees(r *replica) {
	s := r.core.State()
	if s.Role != raft.StateLeader {
		return
	}
	if c.leaders == nil {
		c.leaders = map[uint64]uint64{}
	}
	if other, ok := c.leaders[s.Term]; !ok {
		c.leaders[s.Term] = r.m.id
		c.w.reach.Leaders++
		c.w.say(r.m.id, "leads term %d", s.Term)
	} else if other != r.m.id {
		c.w.fail("n%d and n%d lead term %d", other, r.m.id, s.Term)
	}
}

// applies notes an entry applied by a member.
func (c *checker) applies(r *replica, e *pb.Entry) {
	if c.applied == nil {
		c.applied = map[uint64]appliedEntry{}
	}
	is := appliedEntry{e.GetTerm(), sumOf(e)}
	was, ok := c.applied[e.GetIndex()]
	if !ok {
		c.applied[e.GetIndex()] = is
	} else if was != is {
		c.w.fail("n%d applies entry %d of term %d with checksum %x; another member applied term %d, checksum %x",
			r.m.id, e.GetIndex(), is.term, is.sum, was.term, was.sum)
	}
}

// shows notes that a member has applied an entry, so that a client may have seen the effect.
// An entry concerns the keys that the host names to the leases, or every key if the host
// names none.
func (c *checker) shows(e *pb.Entry) {
	var spans []leases.Span
	if c.w.opts.Kind == cockroachLike && e.GetType() == pb.EntryNormal {
		spans = writtenKeys(e.GetData())
	}
	for key := range c.freshOf {
		if spans == nil || slices.Contains(spans, keySpan(byte(key))) {
			c.freshOf[key] = max(c.freshOf[key], e.GetIndex())
			c.fresh = max(c.fresh, e.GetIndex())
		}
	}
}

// changed checks that an applied change was proposed.
func (c *checker) changed(r *replica, e *pb.Entry) {
	if len(e.GetData()) > 0 && !slices.Contains(c.changes, string(e.GetData())) {
		c.w.fail("n%d applies the change %x at %d, which nobody proposed", r.m.id, e.GetData(), e.GetIndex())
	}
}

// keepsUp checks that a member applies the entries known as committed, after
// the faults.
func (c *checker) keepsUp(r *replica) {
	m, w := r.m, c.w
	if !w.calm || r.state.at.index >= m.target {
		m.target, m.targetAt = r.core.State().Commit, w.Now()
		return
	}
	if late := w.Now() - m.targetAt; late > lagTime {
		w.fail("n%d has known for %v that %d is committed, and has applied %d", m.id, late, m.target, r.state.at.index)
	}
}

// quietTime is several election timeouts.
const quietTime = 2 * time.Second

// lateTime is more than any message takes.
const lateTime = 2500 * time.Millisecond

// lagTime bounds the time until members apply the entries known as committed.
const lagTime = 3 * time.Second

// access is a client's operation on a key.
type access struct {
	register.Access
	key byte
}

// checkHistory checks that the clients' history is linearizable.
func (w *sim) checkHistory() {
	for key := range byte(keys) {
		var ops []access
		for _, a := range w.history {
			if a.key == key && (a.Known || a.Kind != register.Read) {
				ops = append(ops, a)
			}
		}
		w.reach.Histories++
		if err := register.Check(ops, func(a access) register.Access { return a.Access }); err != nil {
			w.fail("what clients saw of key %d is not linearizable:\n%w", key, err)
			return
		}
	}
}

// finale ends the faults. The group must then elect a leader, answer at each
// member, and come to one state.
func (w *sim) finale() {
	w.say(0, "calm")
	w.calm = true
	w.links.Calm()
	for _, m := range w.live() {
		m.spindle.Mend()
		switch {
		case m.proc == nil && !m.lazy:
			m.start()
		case m.paused:
			m.resume()
		}
	}
	answered := w.askAll()
	if !w.runUntil(w.Now()+calmTime, func() bool { return answered() && w.agree() }) && w.err == nil {
		w.fail("no agreement within %v of calm: %s", calmTime, w.describe())
	}
	if w.err != nil {
		return
	}
	// When what was on its way has arrived, nothing happens any more, and the
	// leader stays.
	w.runUntil(w.Now()+lateTime, nil)
	terms := len(w.check.leaders)
	if w.runUntil(w.Now()+quietTime, nil); len(w.check.leaders) != terms {
		w.fail("a calm and idle group elected another leader: %s", w.describe())
	}
	if w.err == nil {
		w.checkRest()
	}
}

// askAll puts and gets through each member, again and again, until each has
// answered both.
func (w *sim) askAll() (answered func() bool) {
	type question struct {
		m    *machine
		done bool
	}
	var questions []*question
	for i, m := range w.live() {
		for _, kind := range []register.Kind{register.Write, register.Read} {
			q := &question{m: m}
			questions = append(questions, q)
			var ask func()
			ask = func() {
				if !q.done && w.err == nil {
					w.leasesOn()
					w.call(i%clients, m, kind, func() { q.done = true })
					w.After(callTime, ask)
				}
			}
			ask()
		}
	}
	return func() bool {
		return !slices.ContainsFunc(questions, func(q *question) bool {
			idle := q.m.lazy && q.m.proc == nil // the machine was never made a member
			return !q.done && !q.m.gone && !idle
		})
	}
}

// agree reports whether all members have one state and nothing on the way.
func (w *sim) agree() bool {
	var first *replica
	for _, m := range w.live() {
		if m.lazy && m.proc == nil {
			continue // the machine was never made a member
		}
		if m.proc == nil {
			return false
		}
		r := m.proc.common()
		if first == nil {
			first = r
		}
		if !r.state.equal(&first.state) || r.state.at.index != m.disk.live.last() || !r.settled() {
			return false
		}
	}
	return first != nil
}

// describe says where each member is.
func (w *sim) describe() (text string) {
	for _, m := range w.live() {
		if m.proc == nil {
			text += fmt.Sprintf(" n%d down;", m.id)
			continue
		}
		r := m.proc.common()
		text += fmt.Sprintf(" n%d %+v log %d..%d applied %d settled %v;", m.id, r.core.State(),
			m.disk.live.base.index+1, m.disk.live.last(), r.state.at.index, r.settled())
		r.visit(func(id uint64, _ bool, pr tracker.Progress) { text += fmt.Sprintf(" (n%d %v)", id, pr.Match) })
	}
	return text
}

// never is the return of a call without an answer.
const never = math.MaxInt64

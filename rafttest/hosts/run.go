// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package hosts

import (
	"fmt"
	"slices"
	"time"

	pb "go.etcd.io/raft/v3/raftpb"
	"go.etcd.io/raft/v3/tracker"

	"github.com/weftraft/weft/internal/world"
	"github.com/weftraft/weft/rafttest/internal/register"
	"github.com/weftraft/weft/rafttest/internal/seeds"
)

func newSim(seed uint64, opts options) *sim {
	draw := func(stream uint64) world.Draws { return world.NewDraws(seed, stream) }
	w := &sim{opts: opts, plan: drawPlan(draw(1)), faults: draw(2), net: draw(3), clients: draw(4)}
	w.newProcess = func(m *machine) process { return newEtcd(m) }
	if opts.Kind == cockroachLike {
		w.newProcess = func(m *machine) process { return newCockroach(m) }
	}
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
	defer world.SetEntropy(world.NewDraws(seed, 5))()
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
	r := result{Outcome: seeds.Ended(seed, &w.story, nil), Reached: w.reach, Leases: w.leases}
	r.Plan = fmt.Sprintf("%+v", w.plan)
	if w.err != nil {
		r.Err, r.Story = fmt.Errorf("seed %d, %v on %s: %w", seed, opts.Kind, opts.Library.Name, w.err), w.story.Recent()
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

// quietTime is several election timeouts.
const quietTime = 2 * time.Second

// lateTime is more than any message takes.
const lateTime = 2500 * time.Millisecond

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

// checkRest looks whether a group to which nothing happens comes to rest, sends
// nothing then, and wakes when it is needed.
func (w *sim) checkRest() {
	if w.opts.Kind != cockroachLike || w.plan.checkQuorum {
		return
	}
	if !w.runUntil(w.Now()+calmTime, w.atRest) {
		w.fail("an idle group does not come to rest: %s", w.describe())
		return
	}
	w.runUntil(w.Now()+lateTime, nil) // messages sent before
	before := w.sent
	if w.runUntil(w.Now()+quietTime, nil); w.sent != before {
		w.fail("a group at rest sent %d frames", w.sent-before)
	}
	answered := w.askAll()
	if !w.runUntil(w.Now()+calmTime, func() bool { return answered() && w.agree() }) && w.err == nil {
		w.fail("no agreement within %v of a rest: %s", calmTime, w.describe())
	}
}

// atRest reports whether all voters rest. A woken learner may stay awake,
// because learners do not campaign.
func (w *sim) atRest() bool {
	p := w.leader()
	return p != nil && !slices.ContainsFunc(p.common().state.conf.GetVoters(), func(id uint64) bool {
		h, ok := w.machines[id-1].proc.(*cockroach)
		return !ok || !h.quiesced
	})
}

// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package hosts

import (
	"fmt"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/internal/world"
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

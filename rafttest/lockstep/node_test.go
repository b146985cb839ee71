// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package lockstep

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weftraft/weft/internal/silent"
	"github.com/weftraft/weft/raft"
)

var (
	nodeSeeds = flag.Uint64("node-seeds", 120, "how many fixed seeds TestNode runs")
	nodeSteps = flag.Int("node-steps", 1000, "calls of a schedule of TestNode")
)

// TestNode feeds Node of both libraries the same calls, each pair of groups in a bubble of fake
// time: after each call all goroutines come to rest before the next call. Node serves its channels
// in random order, so no step leaves Node two calls to choose from.
func TestNode(t *testing.T) {
	tally, calls, failed := tally{}, uint64(0), 0
	start := time.Now()
	run := func(seed uint64) {
		if failed >= 5 || failed > 0 && *firstOnly {
			return
		}
		n, d := runNodes(t, seed, *nodeSteps, tally)
		calls += n
		if d != nil {
			failed++
			t.Errorf("reproduce with: go test -run TestNode -seed %d\n%v", seed, d)
		}
	}
	if *oneSeed != 0 {
		run(*oneSeed)
		return
	}
	fixed, fresh := *nodeSeeds, *freshSeeds/4
	if testing.Short() {
		fixed, fresh = fixed/8, fresh/8
	}
	for seed := uint64(1); seed <= fixed; seed++ {
		run(seed)
	}
	first := uint64(start.UnixNano())
	for seed := first; seed < first+fresh; seed++ {
		run(seed)
	}
	t.Logf("%d fixed schedules and %d fresh ones from seed %d, %d calls compared in %v",
		fixed, fresh, first, calls, time.Since(start).Round(time.Millisecond))
	if testing.Short() || failed > 0 || *firstOnly {
		return
	}
	t.Logf("covered:%v", tally)
	var required []string
	for i := range nodeOps {
		required = append(required, nodeOps[i].row)
	}
	for _, name := range strings.Split(nodeRows, "; ") {
		required = append(required, "node: "+name)
	}
	if missing := tally.Missing(required); len(missing) > 0 {
		t.Errorf("these are no longer covered: %s", strings.Join(missing, "; "))
	}
}

const nodeRows = "StartNode; RestartNode; blocked proposal taken later; blocked proposal given up; blocked proposal ended by Stop; " +
	"raft: stopped; context canceled; context deadline exceeded; raft proposal dropped; async; sync"

// nodeGroup is a schedule whose members are Nodes.
type nodeGroup struct {
	*schedule
	nodes []*nodeMember
}

type nodeMember struct {
	*member
	node    [2]node
	stopped bool
	// blocked is a proposal that waits for a leader.
	blocked *blockedCall
}

// blockedCall is a call that has not returned, on both sides.
type blockedCall struct {
	what   string
	cancel [2]context.CancelFunc
	err    [2]chan error
}

// runNodes runs a schedule in a bubble.
func runNodes(t *testing.T, seed uint64, steps int, tally tally) (calls uint64, d *difference) {
	installEntropy()
	synctest.Test(t, func(*testing.T) {
		s := &schedule{chance: newChance(seed), seed: seed, libs: [2]library{upstream, weft}, tally: tally}
		for _, lib := range s.libs {
			lib.setLogger(silent.Logger{})
		}
		g := &nodeGroup{schedule: s}
		defer func() {
			calls = s.call
			if p := recover(); p != nil {
				err, _ := p.(error)
				if !errors.As(err, &d) {
					panic(p)
				}
			}
			g.stopAll()
		}()
		g.assembleNodes()
		for range steps {
			g.stepNodes()
		}
		s.audit()
	})
	return calls, d
}

// stopAll ends all goroutines, also after a difference.
func (g *nodeGroup) stopAll() {
	for _, m := range g.nodes {
		if b := m.blocked; b != nil {
			b.cancel[0]()
			b.cancel[1]()
		}
		for _, n := range m.node {
			if n != nil {
				go n.Stop()
			}
		}
	}
	synctest.Wait()
}

// assembleNodes draws a group whose hosts make no mistakes, because a panic in a Node's own
// goroutine would end the process.
func (g *nodeGroup) assembleNodes() {
	s := g.schedule
	s.plan = s.drawPlan()
	s.plan.carelessHost = false
	cfg := g.drawNodeConfig()
	if s.plan.async {
		s.tally.Hit("node: async")
	} else {
		s.tally.Hit("node: sync")
	}
	prepare := s.prepare()
	for i, id := range s.plan.ids {
		m := &nodeMember{member: &member{id: id, index: i, cfg: cfg, machine: restored(0, nil)}}
		m.cfg.ID = id
		for side, lib := range s.libs {
			m.disk[side] = &disk{memory: lib.newMemory(), lib: lib}
		}
		if slices.Contains(s.plan.voters, id) || slices.Contains(s.plan.learners, id) {
			prepare(m.member)
		}
		s.members = append(s.members, m.member)
		g.nodes = append(g.nodes, m)
		g.startNodes(m)
	}
}

// drawNodeConfig draws a configuration with which no Node panics.
func (g *nodeGroup) drawNodeConfig() raft.Config {
	cfg := g.drawConfig()
	cfg.DisableConfChangeValidation = false
	if cfg.MaxCommittedSizePerReady == 0 {
		cfg.MaxCommittedSizePerReady = 500
	}
	return cfg
}

// startNodes starts a member's Nodes from its disks, sometimes with another configuration than the
// group's, or than before.
func (g *nodeGroup) startNodes(m *nodeMember) {
	if g.oneIn(4) {
		m.cfg = g.drawNodeConfig()
		m.cfg.ID, m.cfg.AsyncStorageWrites = m.id, g.oneIn(2)
	}
	cfg := m.cfg
	empty := g.recover(m.member, &cfg)
	peers := m.first
	if !empty && g.oneIn(4) {
		peers = []raft.Peer{{ID: m.id}} // ignored, as there is something on the disk
	}
	g.note(m.member, "start", "applied", cfg.Applied, "peers", len(peers))
	m.node, m.stopped, m.host = [2]node{}, false, host{}
	_ = g.bothNodes(m, "start", func(side int) error {
		c := cfg
		c.Storage = m.disk[side]
		if len(peers) > 0 {
			g.tally.Hit("node: StartNode")
			m.node[side] = g.libs[side].startNode(c, peers)
		} else {
			g.tally.Hit("node: RestartNode")
			m.node[side] = g.libs[side].restartNode(c)
		}
		return nil
	})
	g.compareNodes(m)
}

// bothNodes makes a call that does not block, on both sides.
func (g *nodeGroup) bothNodes(m *nodeMember, what string, f func(side int) error) error {
	g.call++
	var errs [2]error
	for side := range errs {
		theEntropy.reset(g.seed, g.call)
		errs[side] = f(side)
		synctest.Wait()
	}
	g.sameError(what, errs[0], errs[1])
	if errs[0] != nil {
		g.tally.Hit("node: " + errs[0].Error())
	}
	return errs[0]
}

// onNodes makes a call that does not block on a member, and compares the member's state afterwards.
func (g *nodeGroup) onNodes(m *nodeMember, what string, f func(n node) error) {
	g.note(m.member, what)
	_ = g.bothNodes(m, what, func(side int) error { return f(m.node[side]) })
	g.compareNodes(m)
}

// compareNodes compares the state of a member, and the outcome of its blocked call, if there is a
// blocked call.
func (g *nodeGroup) compareNodes(m *nodeMember) {
	var sum [2]fingerprint
	var st [2]raft.Status
	for side, n := range m.node {
		st[side] = n.Status()
		sum[side].status(&st[side])
	}
	synctest.Wait()
	if sum[0] != sum[1] {
		g.differ("Status", m.node[0].Status(), m.node[1].Status())
	}
	if !m.stopped {
		m.state = st[0]
		g.safety.observe(&st[0])
		g.tallyStatus(&st[0])
	}
	if b := m.blocked; b != nil {
		_ = g.settle(m, b, "node: blocked proposal taken later") // the call may still be blocked
	}
}

// settle compares on both sides whether a blocked call has returned, and its error, and reports
// whether the call has returned.
func (g *nodeGroup) settle(m *nodeMember, b *blockedCall, row string) bool {
	var done [2]bool
	var errs [2]error
	for side := range done {
		select {
		case errs[side] = <-b.err[side]:
			done[side] = true
		default:
		}
	}
	if done[0] != done[1] {
		g.differ(b.what+" returned on one side only", done[0], done[1])
	}
	if !done[0] {
		return false
	}
	g.sameError(b.what, errs[0], errs[1])
	if errs[0] != nil {
		g.tally.Hit("node: " + errs[0].Error())
	}
	g.tally.Hit(row)
	b.cancel[0]()
	b.cancel[1]()
	m.blocked = nil
	return true
}

// mayBlock makes a call that may have to wait for a leader. A call that waits is given up at once,
// or left to wait while other calls are made.
func (g *nodeGroup) mayBlock(m *nodeMember, what string, f func(ctx context.Context, side int) error) {
	if m.blocked != nil {
		return // one blocked call at a time: Node would choose between two calls at random
	}
	g.note(m.member, what)
	b := &blockedCall{what: what}
	timeout := g.oneIn(3)
	g.call++
	for side := range b.err {
		theEntropy.reset(g.seed, g.call)
		ctx, cancel := context.WithCancel(context.Background())
		if timeout {
			ctx, cancel = context.WithTimeout(context.Background(), time.Second)
		}
		b.cancel[side], b.err[side] = cancel, make(chan error, 1)
		go func() { b.err[side] <- f(ctx, side) }()
		synctest.Wait()
	}
	if !g.settle(m, b, "node: proposal taken at once") {
		m.blocked = b
		if g.oneIn(2) {
			g.giveUp(m, timeout)
		}
	}
	g.compareNodes(m)
}

// giveUp ends a blocked call by its context.
func (g *nodeGroup) giveUp(m *nodeMember, timeout bool) {
	b := m.blocked
	if timeout {
		time.Sleep(2 * time.Second) // in fake time
	} else {
		b.cancel[0]()
		b.cancel[1]()
	}
	synctest.Wait()
	if !g.settle(m, b, "node: blocked proposal given up") {
		g.fail(b.what+" does not return when its context ends", fmt.Sprintf("timeout: %t", timeout))
	}
}

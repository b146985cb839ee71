// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package nodes

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	pb "go.etcd.io/raft/v3/raftpb"
)

// TestMembersUnderLoad changes the members while clients write: no time without
// a successful write is longer than two election timeouts, and nothing is lost.
func TestMembersUnderLoad(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		do   func(*change)
	}{
		{"replace each of three", func(c *change) {
			for old := uint64(1); old <= 3; old++ {
				c.learner(old + 3)
				c.promote(old + 3)
				c.remove(old)
			}
		}},
		{"replace each of three, jointly", func(c *change) {
			for old := uint64(1); old <= 3; old++ {
				c.learner(old + 3)
				c.make("swap", single(pb.ConfChangeAddNode, old+3), single(pb.ConfChangeRemoveNode, old))
			}
		}},
		{"grow to five, shrink to three", func(c *change) {
			for _, id := range []uint64{4, 5} {
				c.learner(id)
				c.promote(id)
			}
			for _, id := range []uint64{1, 2} {
				c.remove(id)
			}
		}},
		{"learners come, are promoted, and go", func(c *change) {
			c.learner(4)
			c.learner(5)
			c.promote(5)
			c.remove(4)
			c.make("demote", single(pb.ConfChangeAddLearnerNode, 5))
			c.remove(5)
		}},
		{"remove the leader, three times", func(c *change) {
			for id := uint64(4); id <= 6; id++ {
				c.learner(id)
				c.promote(id)
				c.remove(c.leader().n.id)
			}
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var worst time.Duration
			for seed := uint64(1); seed <= 4; seed++ {
				c := newChange(t, seed)
				tt.do(c)
				c.pass(2 * electionTime)
				worst = max(worst, c.g.gap)
				require.LessOrEqual(t, c.g.gap, 2*electionTime, "seed %d: time without a write\n%s", seed, c.story.Recent())
				c.end()
				require.NotZero(t, c.reach.Writes)
			}
			t.Logf("longest time without a write: %v; two election timeouts: %v", worst, 2*electionTime)
		})
	}
}

// change is an operator who changes the members of a group in use.
type change struct {
	*scenario
	g *group
}

func newChange(t *testing.T, seed uint64) *change {
	s := newScenario(t, seed, func(p *plan) { p.deadline, p.think = 3*electionTime, 2*time.Millisecond })
	c := &change{s, s.groups[0]}
	for range 6 {
		s.addClient(c.g).patient = true
	}
	s.pass(2 * electionTime)
	c.g.gap = 0
	return c
}

func (c *change) leader() *member {
	c.reaches(5*electionTime, "a leader", func() bool { return c.g.leading() != nil })
	return c.g.leading()
}

// learner lets a node join, and waits until it has caught up.
func (c *change) learner(id uint64) {
	c.g.join(id)
	c.make(fmt.Sprint("learner ", id), single(pb.ConfChangeAddLearnerNode, id))
	c.reaches(20*electionTime, fmt.Sprintf("learner %d to catch up", id), func() bool {
		m, leader := c.node(id).members[c.g.id], c.g.leading()
		return m != nil && leader != nil && m.applied+50 > leader.applied
	})
}

func (c *change) promote(id uint64) {
	c.make(fmt.Sprint("promote ", id), single(pb.ConfChangeAddNode, id))
}

// remove removes a node, and shuts it down when it is out.
func (c *change) remove(id uint64) {
	c.make(fmt.Sprint("remove ", id), single(pb.ConfChangeRemoveNode, id))
	c.pass(electionTime / 2)
	c.g.retire(c.leader().conf())
}

// make makes a change, and tries again until it is done.
func (c *change) make(what string, changes ...*pb.ConfChangeSingle) {
	c.t.Helper()
	cc := &pb.ConfChangeV2{Changes: changes}
	for range 20 {
		var done, failed bool
		via := c.membersOf()[c.rng.IntN(len(c.membersOf()))]
		c.tell(via.n.id, "%s", what)
		via.change(c.plan.deadline, cc, func(_ *pb.ConfState, err error) {
			done, failed = err == nil, err != nil
			if err != nil {
				c.tell(via.n.id, "%s: %v", what, err)
			}
		})
		c.reaches(2*c.plan.deadline, what, func() bool { return done || failed })
		if done {
			c.reaches(5*electionTime, "a configuration that is not joint", func() bool {
				m := c.g.leading()
				return m != nil && len(m.conf().GetVotersOutgoing()) == 0
			})
			return
		}
		c.pass(electionTime / 10)
	}
	c.t.Fatalf("%s is not done\n%s", what, c.story.Recent())
}

// membersOf returns the voters that run, by the leader's configuration.
func (c *change) membersOf() []*member { return c.g.membersOf(c.leader().conf()) }

// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package nodes

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weftraft/weft/internal/replica"
	"github.com/weftraft/weft/rawnode/session"
)

const leaderChanges = 200

// TestLeaderChanges has clients at every node go on while leadership changes two
// hundred times: by transfers, by leaders that are cut off, that stand still, and
// by connections that are held up. No node stops. So every command has a definite
// outcome: it is applied, or refused; once; and in the order of its session.
func TestLeaderChanges(t *testing.T) {
	t.Parallel()
	for seed := uint64(1); seed <= 2; seed++ {
		t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) {
			s := newScenario(t, seed, func(p *plan) {
				p.voters = 3 + 2*int(seed%2)
				p.sessions.Results, p.keepEvery = 10_000, 1000                 // what is overtaken by far is remembered too
				p.silent, p.links.Loss, p.think = 1, 0.01, 50*time.Millisecond // messages get lost too, and nobody is told
			})
			g := s.groups[0]
			var outcomes tally
			for id := range s.plan.voters {
				(&proposer{s: s, m: s.node(uint64(id + 1)).members[1], tally: &outcomes}).next()
			}
			for g.changes <= leaderChanges {
				s.disturb(g)
				was := g.changes
				s.until(5*electionTime, func() bool { return g.changes > was })
				s.ok("leader change %d", g.changes)
				s.pass(s.rng.Span(time.Millisecond, electionTime/2))
			}
			s.sim.calming = true
			s.net.mendAll()
			s.reaches(2*s.plan.deadline, "all outcomes", func() bool { return outcomes.open == 0 })
			s.end()
			t.Logf("%d changes of the leader in %v: %+v", g.changes, s.Now().Round(time.Millisecond), outcomes)
			require.Zero(t, outcomes.unknown)
			require.Greater(t, outcomes.applied, 1000)
			for id := range s.plan.voters {
				require.EqualValues(t, 1, s.node(uint64(id+1)).life, "no node stops")
			}
		})
	}
}

// disturb takes leadership from who has it, one way or another.
func (s *scenario) disturb(g *group) {
	m := g.leading()
	if m == nil {
		return
	}
	voters := m.conf().GetVoters()
	switch s.rng.IntN(4) {
	case 0:
		s.isolate(m.n, s.rng.Span(electionTime, 3*electionTime))
	case 1:
		m.n.pause(s.rng.Span(electionTime, 3*electionTime))
	case 2:
		s.holdLink()
		fallthrough
	default:
		s.transferAt(m, voters[s.rng.IntN(len(voters))])
	}
}

func (s *scenario) transferAt(m *member, to uint64) {
	m.n.bound(func() { m.transfer(to, func(error) {}) })()
}

// tally counts outcomes.
type tally struct{ open, applied, overtaken, refused, unknown int }

// proposer proposes commands at a node, in one session and up to three at a
// time, and does not try again: each has the outcome that it has.
type proposer struct {
	s       *scenario
	m       *member
	tally   *tally
	session session.ID
	seq     uint64
}

func (p *proposer) next() {
	s := p.s
	if s.calming {
		return
	}
	s.history.operations++
	op := &operation{id: s.history.operations, verb: verbOpen}
	lanes := 3
	if p.session != 0 {
		p.seq++
		op.verb, op.session, op.seq, op.value = verbPut, p.session, p.seq, op.id
		lanes = 1
	}
	p.tally.open++
	p.m.n.bound(func() {
		p.m.propose(op, s.plan.deadline, func(a answer, err error) {
			p.tally.open--
			switch {
			case errors.Is(err, replica.ErrRefused):
				p.tally.refused++
			case err != nil:
				p.tally.unknown++
				s.fail(definite, "%v: %v", p.m.n, err)
			case op.verb == verbOpen:
				p.session = a.session
			case a.verdict == session.Overtaken: // it came behind a later one, and has no effect
				p.tally.overtaken++
			case a.verdict == session.Fresh:
				p.tally.applied++
			default:
				s.fail(definite, "%v: command %d of session %d: %v", p.m.n, p.seq, p.session, a.verdict)
			}
			for range lanes {
				s.After(s.rng.Wait(s.plan.think), p.next)
			}
		})
	})()
}

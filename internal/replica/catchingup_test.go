// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package replica

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/internal/catchup"
	"github.com/weftraft/weft/internal/wire"
)

// Sizes of a paced group: an append has a thousand bytes, and so a window four thousand.
const (
	pacedAppend = 1000
	pacedWindow = windowAppends * pacedAppend
	pacedFree   = 1500
)

// paced is a group, led by node 1, whose leader has a budget for catching up.
type paced struct {
	*cluster
	budget *catchup.Budget
	posts  []func(*Replica)
	gone   map[uint64]bool // nodes that are cut off
	acks   int             // how many acknowledgements of node 5 arrive; below 0: all
	sent   int             // bytes of entries, to nodes that are not cut off
}

func newPaced(t *testing.T, budget int64, ids ...uint64) *paced {
	p := &paced{cluster: newCluster(t, Weft, ids...), gone: map[uint64]bool{}, acks: -1}
	for _, id := range p.ids() {
		p.nodes[id].cfg.MaxAppendBytes = pacedAppend
		p.start(p.nodes[id])
	}
	p.lose = func(m wire.Message) bool {
		if p.gone[m.From] || p.gone[m.To] {
			return true
		}
		raft, ok := m.Body.(wire.Raft)
		for _, e := range raft.GetEntries() {
			p.sent += len(e.GetData())
		}
		if !ok || m.From != 5 || raft.GetType() != pb.MsgAppResp || raft.GetReject() || p.acks < 0 {
			return false
		}
		p.acks = max(p.acks-1, 0)
		return p.acks == 0
	}
	if budget > 0 {
		p.budget = catchup.New(budget, func() time.Duration { return p.now })
		p.nodes[1].r.CatchUpWithin(p.budget, pacedFree, func(turn func(*Replica)) { p.posts = append(p.posts, turn) })
	}
	p.elect(1)
	p.pass(2)
	return p
}

// rest lets everything happen that needs no time.
func (p *paced) rest() {
	for p.settle(); len(p.posts) > 0; p.settle() {
		posts := p.posts
		p.posts = nil
		for _, turn := range posts {
			turn(p.nodes[1].r)
		}
	}
}

func (p *paced) pass(ticks int) {
	for range ticks {
		p.run(1)
		p.rest()
	}
}

// write writes so many commands of 400 bytes.
func (p *paced) write(n int) {
	for i := range n {
		call := p.propose(1, fmt.Sprint(i, strings.Repeat("x", 400)))
		p.rest()
		require.NoError(p.t, p.result(call).Err)
	}
	p.sent = 0
}

// fallBehind cuts nodes off, has the others write, and brings the nodes back.
func (p *paced) fallBehind(ids ...uint64) {
	for _, id := range ids {
		p.gone[id] = true
	}
	p.write(100)
	clear(p.gone)
}

func (p *paced) used() catchup.Stats { return p.budget.Statistics(catchup.Sending) }

// Nothing of a group whose followers keep up changes with a budget, however small, and nothing is taken from it.
func TestBudgetChangesNothingIfNobodyIsBehind(t *testing.T) {
	said := func(budget int64) (all []string) {
		p := newPaced(t, budget, 1, 2, 3)
		lose := p.lose
		p.lose = func(m wire.Message) bool { all = append(all, fmt.Sprintf("%+v", m)); return lose(m) }
		for range 20 {
			p.write(20)
			p.pass(3)
		}
		if budget > 0 {
			require.Zero(t, p.used().Turns)
			require.Empty(t, p.nodes[1].r.catching.by)
		}
		return all
	}
	plain := said(0)
	require.Equal(t, plain, said(1))
	require.Greater(t, len(plain), 1000)
}

// What is under way to a member that is behind is within the budget, until the member acknowledges; then the member
// catches up, and all comes back.
func TestMissedEntriesUnderWayAreWithinTheBudget(t *testing.T) {
	p := newPaced(t, 16_000, 1, 2, 3, 4, 5)
	p.fallBehind(5)
	p.acks = 2 // the second and all others are lost
	p.pass(5)
	s := p.used()
	require.EqualValues(t, 3*pacedWindow, s.UsedBytes, "three quarters, for a voter that is not urgent")
	require.Equal(t, 1, s.Waiting)
	require.Zero(t, s.Urgent)
	require.Greater(t, p.sent, 3*pacedWindow)
	require.LessOrEqual(t, p.sent, pacedFree+pacedAppend+3*pacedWindow+pacedAppend)
	before := p.sent
	p.pass(3)
	require.Equal(t, before, p.sent)

	p.acks = -1
	p.pass(3)
	require.Equal(t, p.nodes[1].sm.index, p.nodes[5].sm.index)
	require.Greater(t, p.used().Turns, uint64(6))
	p.pass(1)
	require.Zero(t, p.used().UsedBytes)
	require.Zero(t, p.used().Waiting)
	require.Empty(t, p.nodes[1].r.catching.by)
	p.agree()
}

// With the budget in use elsewhere, a member waits that the group can do without, and goes on when its turn comes. The
// group goes on meanwhile; and a member that the group needs does not wait.
func TestMemberThatTheGroupNeedsDoesNotWaitForTheBudget(t *testing.T) {
	p := newPaced(t, 16_000, 1, 2, 3)
	elsewhere := &catchup.Place{Direction: catchup.Sending}
	require.True(t, p.budget.Ask(elsewhere, wire.UrgencyEdge, 0, 4000))
	more := &catchup.Place{Direction: catchup.Sending}
	require.True(t, p.budget.Ask(more, wire.UrgencyVoter, 0, 12_000))
	p.fallBehind(3)
	p.pass(5)
	require.Less(t, p.nodes[3].sm.index, p.nodes[1].sm.index)
	require.Equal(t, 1, p.used().Urgent, "one more failure stops the group")
	p.write(10)

	p.gone[2] = true
	call := p.propose(1, "without node 2")
	p.pass(electionTicks + 3)
	require.NoError(t, p.result(call).Err)
	require.Equal(t, p.nodes[1].sm.index, p.nodes[3].sm.index)
	require.Zero(t, p.used().Waiting)

	clear(p.gone)
	p.pass(3)
	p.fallBehind(3)
	p.pass(3)
	require.Less(t, p.nodes[3].sm.index, p.nodes[1].sm.index)
	p.budget.Leave(elsewhere)
	p.rest()
	require.Equal(t, p.nodes[1].sm.index, p.nodes[3].sm.index, "its turn needs no tick")
	p.agree()
}

// A member that loses what it is sent is sent it again and again; the entries are under way once.
func TestEntriesThatAreSentAgainCountOnce(t *testing.T) {
	p := newPaced(t, 16_000, 1, 2, 3, 4, 5)
	p.fallBehind(5)
	lose, lost := p.lose, 0
	p.lose = func(m wire.Message) bool {
		raft, ok := m.Body.(wire.Raft)
		if ok && m.To == 5 && len(raft.GetEntries()) > 0 && raft.GetIndex() > 20 && lost >= 0 {
			lost++
			return true
		}
		return lose(m)
	}
	p.pass(5)
	before := lost
	require.Greater(t, before, pacedWindow/pacedAppend)
	p.pass(5)
	require.Greater(t, lost, before, "it waits for no window in the place of what was lost")
	lost = -1
	p.pass(2)
	require.Zero(t, p.used().UsedBytes)
	p.agree()
}

// Members that acknowledge nothing, that cannot be reached, and those of a leader that falls, give back what they have.
func TestMemberThatGetsNoFurtherGivesItsBytesBack(t *testing.T) {
	for name, then := range map[string]func(*paced){
		"it acknowledges nothing": func(p *paced) { p.pass(idleWindows*electionTicks + 2) },
		"its connection breaks":   func(p *paced) { p.gone[5] = true; p.nodes[1].r.Unreachable(5) },
		"nothing is heard of it":  func(p *paced) { p.gone[5] = true; p.pass(electionTicks + 2) },
		"another leads": func(p *paced) {
			p.nodes[1].r.core.TransferLeader(2)
			p.nodes[1].r.dirty = true
			p.pass(2)
		},
		"the host stops": func(p *paced) { p.nodes[1].r.CatchUpWithin(nil, 0, nil) },
	} {
		t.Run(name, func(t *testing.T) {
			p := newPaced(t, pacedWindow, 1, 2, 3, 4, 5)
			p.fallBehind(5)
			p.acks = 2
			p.pass(5)
			require.EqualValues(t, pacedWindow, p.used().UsedBytes)
			other := &catchup.Place{Direction: catchup.Sending, Ready: func() {}}
			require.False(t, p.budget.Ask(other, wire.UrgencyEdge, 1, pacedWindow))
			then(p)
			require.True(t, p.budget.Ask(other, wire.UrgencyEdge, 1, pacedWindow), "another has its turn")
		})
	}
}

// A member whose disk hangs is sent the same entries with each heartbeat, and has one turn for them: the turns of others, in
// groups whose members get on, do not wait for it. When the disk goes on, the member has its turns.
func TestMemberWhoseDiskHangsHasOneTurn(t *testing.T) {
	p := newPaced(t, 16_000, 1, 2, 3, 4, 5)
	p.gone[5] = true
	p.write(100)
	p.nodes[5].hung = true
	clear(p.gone)
	p.pass(10 * idleWindows * electionTicks)
	require.LessOrEqual(t, p.used().Turns, uint64(2))
	require.Zero(t, p.used().UsedBytes)
	require.Zero(t, p.used().Waiting)
	p.nodes[5].hung = false
	p.pass(10)
	p.agree()
	require.Zero(t, p.used().UsedBytes)
}

// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package replica

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/internal/marked"
	"github.com/weftraft/weft/internal/replica/replicatest"
	"github.com/weftraft/weft/internal/wire"
)

// gated is a cluster with a gateway, node 9.
type gated struct {
	*cluster
	g    *Gateway
	done map[Call]Done
}

func newGated(t *testing.T, tune func(*Settings), ids ...uint64) *gated {
	c := &gated{cluster: newCluster(t, Weft, ids...), done: map[Call]Done{}}
	for _, id := range ids {
		c.nodes[id].r.cfg.EncodeResult = func(v any) ([]byte, error) {
			if s := v.(string); s != "did nothing" {
				return []byte(s), nil
			}
			return nil, errors.New("nothing was done")
		}
	}
	c.g = c.newGateway(1, tune)
	return c
}

func (c *gated) newGateway(boot uint64, tune func(*Settings)) *Gateway {
	s := Settings{ID: 9, Group: 7, Boot: boot}
	if tune != nil {
		tune(&s)
	}
	g, err := NewGateway(s)
	require.NoError(c.t, err)
	g.SetHomes(c.ids(), nil)
	return g
}

// settle lets everything happen that needs no time, also at the gateway.
func (c *gated) settle() {
	for {
		var rest []wire.Message
		busy := false
		for _, m := range c.wires {
			switch {
			case m.To != 9:
				rest = append(rest, m)
			case !c.lose(m):
				require.NoError(c.t, c.g.Receive(replicatest.Reread(m)))
				busy = true
			}
		}
		c.wires = rest
		out := c.g.Flush(c.now)
		c.wires = append(c.wires, out.Sends...)
		for _, d := range out.Done {
			_, twice := c.done[d.Call]
			require.False(c.t, twice, "call %d ends twice", d.Call)
			c.done[d.Call] = d
		}
		busy = busy || len(c.wires) > 0
		c.deliver()
		for _, id := range c.ids() {
			busy = c.turn(c.nodes[id]) || busy
		}
		if !busy {
			return
		}
	}
}

func (c *gated) run(n int) {
	for range n {
		c.now += tick
		for _, id := range c.ids() {
			c.nodes[id].r.Tick(c.now)
		}
		c.g.Tick(c.now)
		c.settle()
	}
}

// propose begins a proposal at the gateway.
func (c *gated) propose(command string) Call {
	c.calls++
	c.g.Propose(c.calls, []byte(command), c.now+100*tick)
	return c.calls
}

func (c *gated) result(call Call) Done {
	c.t.Helper()
	d, ok := c.done[call]
	require.True(c.t, ok, "call %d has not ended", call)
	return d
}

func TestGatewayGetsResultsFromAFollower(t *testing.T) {
	c := newGated(t, nil, 1, 2, 3)
	c.elect(1)
	c.run(30)
	require.NotEqual(t, uint64(1), c.g.Status().Home)
	calls := []Call{c.propose("a"), c.propose("b"), c.propose("nothing")}
	c.run(1)
	require.Equal(t, []byte("did a"), c.result(calls[0]).Result)
	require.Equal(t, []byte("did b"), c.result(calls[1]).Result)
	require.Equal(t, uint64(1), c.g.Status().Counters.Batches)
	err := c.result(calls[2]).Err
	require.ErrorIs(t, err, ErrNoBytes)
	require.ErrorIs(t, err, ErrUnknown)
	require.ErrorContains(t, err, "nothing was done")
	require.Equal(t, []string{"a", "b", "nothing"}, c.agree())
}

// A home that is silent is left, and what its successor has applied before is applied, with results
// that nobody knows.
func TestGatewayMovesAndLearnsWhatWasApplied(t *testing.T) {
	c := newGated(t, nil, 1, 2, 3)
	c.elect(1)
	c.run(30)
	home := c.g.Status().Home
	c.lose = func(m wire.Message) bool { return m.From == home && m.To == 9 }
	call := c.propose("a")
	c.settle()
	c.run(11)
	require.ErrorIs(t, c.result(call).Err, ErrSuperseded)
	require.ErrorIs(t, c.result(call).Err, ErrUnknown)
	st := c.g.Status()
	require.NotEqual(t, home, st.Home)
	require.Equal(t, uint64(1), st.Counters.Superseded)
	require.Zero(t, st.Queued)
	call = c.propose("b")
	c.run(1)
	require.NoError(t, c.result(call).Err)
}

// A gateway moves into its own zone, once a node there answers that knows a leader. A near node is no better than a far
// one if it leads, is cut off from the gateway, or from the members.
func TestGatewayMovesIntoItsZone(t *testing.T) {
	for _, near := range []uint64{1, 2, 3} {
		for name, lose := range map[string]func(wire.Message) bool{
			"well":                     func(wire.Message) bool { return false },
			"cut off from the gateway": func(m wire.Message) bool { return m.To == near && m.From == 9 },
			"cut off from members":     func(m wire.Message) bool { return m.To == near && m.From != 9 },
		} {
			c := newGated(t, nil, 1, 2, 3)
			if near == 1 && name != "well" {
				continue
			}
			c.elect(1)
			c.lose = lose
			c.run(60)
			far := c.g.Status().Home != near
			c.g.SetHomes(c.ids(), []uint64{near})
			c.run(300) // some time after the move away from the leader
			require.Equal(t, name == "well" && near != 1, c.g.Status().Home == near, "%d, %s", near, name)
			require.Equal(t, far && c.g.Status().Home == near, c.g.Status().Counters.Nearer == 1, "%d, %s", near, name)
		}
	}
}

// A gateway with batches under way at all times moves, too: for a moment it begins none. It loses no result by the move.
// If the results take too long, it stays, and begins batches again.
func TestGatewayLosesNoResultByAMove(t *testing.T) {
	for late := 1; late <= 6; late++ { // reports take so many ticks
		c := newGated(t, nil, 1, 2, 3)
		c.elect(1)
		c.run(30)
		near := 5 - c.g.Status().Home // 2 or 3
		c.g.restless = 0
		c.g.SetHomes(c.ids(), []uint64{near})
		held := make([][]wire.Message, late)
		c.lose = func(m wire.Message) bool {
			_, report := m.Body.(wire.Report)
			if report {
				held[len(held)-1] = append(held[len(held)-1], m)
			}
			return report
		}
		var calls []Call
		for range 100 {
			calls = append(calls, c.propose("a"))
			c.run(1)
			require.LessOrEqual(t, c.g.Status().Waiting, late+4)
			for _, m := range held[0] {
				require.NoError(t, c.g.Receive(m))
			}
			held = append(held[1:], nil)
		}
		require.Equal(t, late <= 2, c.g.Status().Home == near, late)
		for _, call := range calls[:80] {
			require.NoError(t, c.result(call).Err)
		}
	}
}

// Reports that are lost come again, in order; until then no later mark counts.
func TestReportsComeAgain(t *testing.T) {
	c := newGated(t, nil, 1, 2, 3)
	c.elect(1)
	c.run(30)
	lost := 0
	c.lose = func(m wire.Message) bool {
		r, ok := m.Body.(wire.Report)
		if ok && len(r.Entries) > 0 && lost == 0 {
			lost++
			return true
		}
		return false
	}
	first := c.propose("a")
	c.settle()
	second := c.propose("b")
	c.settle()
	require.Empty(t, c.done)
	c.run(3)
	require.Equal(t, []byte("did a"), c.result(first).Result)
	require.Equal(t, []byte("did b"), c.result(second).Result)
	require.NotZero(t, c.g.Status().Counters.Gaps)
	for _, id := range c.ids() {
		if h := c.nodes[id].r.home; h != nil {
			require.Zero(t, h.kept, "all is acknowledged")
		}
	}
}

// A gateway that starts again, even with a clock that was set back, begins behind its former life.
func TestGatewayStartsAgain(t *testing.T) {
	for _, boot := range []uint64{5, 4, 1} {
		c := newGated(t, func(s *Settings) { s.Boot = 5 }, 1, 2, 3)
		c.elect(1)
		c.run(30)
		c.propose("a")
		c.run(1)
		c.g = c.newGateway(boot, nil)
		c.run(60)
		call := c.propose("b")
		c.run(3)
		require.NoError(t, c.result(call).Err, "boot %d", boot)
		require.Equal(t, []string{"a", "b"}, c.agree())
	}
}

// A proposal that comes late to a node that leads again, in another term, is not appended: its caller was
// told long ago that it is in no log.
func TestLeaderComparesTheTermOfAGatewaysProposal(t *testing.T) {
	c := newGated(t, nil, 1, 2, 3)
	c.elect(1)
	c.run(30)
	var held []wire.Message
	c.lose = func(m wire.Message) bool {
		_, late := m.Body.(wire.Proposal)
		if late && m.To == 1 {
			held = append(held, m)
		}
		return late
	}
	c.calls++
	call := c.calls
	c.g.Propose(call, []byte("late"), c.now+60*tick)
	c.settle()
	require.Len(t, held, 1)
	c.nodes[1].r.TransferLeader(1000, 2, c.now+50*tick)
	c.run(5) // by now the gateway knows of a later term, and sends to node 2
	c.nodes[2].r.TransferLeader(1001, 1, c.now+50*tick)
	c.run(5)
	require.True(t, c.nodes[1].r.leads())
	require.NoError(t, c.nodes[1].r.Receive(held[0]))
	c.settle()
	require.Empty(t, c.agree())
	c.lose = func(wire.Message) bool { return false }
	c.run(30)
	require.Equal(t, []string{"late"}, c.agree(), "in the end it is, once")
	require.NoError(t, c.result(call).Err)
}

// Commands of package weft say who is no member any more: a member may propose them, and a gateway may not.
func TestGatewayProposesNoCommandOfThePackages(t *testing.T) {
	c := newGated(t, nil, 1, 2, 3)
	c.elect(1)
	c.run(30)
	own := marked.Command(marked.Facts, []byte("{}"))
	for from, refused := range map[uint64]uint64{2: 0, 9: 1} {
		id := wire.CommandID{Origin: from, Boot: 50, Sequence: 1}
		p := wire.Proposal{ID: id, Number: 1, Term: c.nodes[1].r.state.Term, Data: encodeBatch(id, 1, [][]byte{own})}
		before := c.nodes[1].r.count.RefusedIn
		require.NoError(t, c.nodes[1].r.Receive(wire.Message{Group: 7, From: from, To: 1, Body: p}))
		require.Equal(t, refused, c.nodes[1].r.count.RefusedIn-before, "node %d", from)
	}
}

// A new home may be behind the former one, and take a node for the leader whose term is over.
func TestGatewaySendsNothingForATermThatIsOver(t *testing.T) {
	g := newGated(t, nil, 1, 2).g
	g.Flush(0)
	report := func(term uint64) {
		h := g.home
		require.NoError(t, g.Receive(wire.Message{Group: 7, From: h.id, To: 9, Body: wire.Report{Life: 1, Number: h.number, Stream: wire.StreamID{Boot: h.id, Number: 1},
			Counted: true, Count: 1, Leader: 1, LeaderTerm: term, Term: term, Index: term, Row: &wire.OriginRow{}}}))
	}
	report(5)
	lead, _ := g.leader()
	require.Equal(t, uint64(1), lead)
	g.moveHome()
	report(4)
	lead, _ = g.leader()
	require.Zero(t, lead)
}

func TestGatewayTakesNoAnswerToAnEarlierLife(t *testing.T) {
	c := newGated(t, func(s *Settings) { s.Boot = 5 }, 1)
	c.elect(1)
	c.run(5)
	c.g.Query(1, []byte("q"), ReadOptions{}, c.now+100*tick)
	c.g.Flush(c.now) // and the query is lost
	require.NoError(t, c.g.Receive(wire.Message{Group: 7, From: 1, To: 9, Body: wire.Reply{Life: 4, Number: 1, Code: wire.Answered}}))
	require.Empty(t, c.g.Flush(c.now).Done)
	require.NoError(t, c.g.Receive(wire.Message{Group: 7, From: 1, To: 9, Body: wire.Reply{Life: 5, Number: 1, Code: wire.Answered}}))
	require.Len(t, c.g.Flush(c.now).Done, 1)
}

func TestGatewayRefusesAtOnceWhenFull(t *testing.T) {
	c := newGated(t, func(s *Settings) { s.MaxCommandBytes, s.MaxQueueBytes, s.MaxCalls = 10, 20, 3 }, 1)
	c.elect(1)
	for range 2 {
		c.propose("0123456789")
	}
	c.g.Query(100, []byte("x"), ReadOptions{}, c.now+tick)
	full := c.propose("x")
	c.calls++
	c.g.Propose(c.calls, make([]byte, 11), c.now+tick)
	c.settle()
	require.ErrorIs(t, c.result(full).Err, ErrOverloaded)
	require.ErrorIs(t, c.result(100).Err, ErrOverloaded)
	require.ErrorIs(t, c.result(c.calls).Err, ErrTooLarge)
	c.run(30)
	require.Len(t, c.done, 5)
	require.Zero(t, c.g.Status().Queued)
}

// A leader lets each gateway have so much under way, and no more.
func TestLeaderBoundsWhatAGatewayHasUnderWay(t *testing.T) {
	c := newGated(t, func(s *Settings) { s.MaxBatchBytes = 1 }, 1, 2, 3)
	leader := c.elect(1)
	c.run(30)
	leader.r.cfg.MaxQueueBytes = 100
	c.lose = func(m wire.Message) bool { return m.From == 1 && m.Class() == wire.ClassAppend }
	for range 4 {
		c.propose(strings.Repeat("x", 60))
	}
	c.settle()
	require.Less(t, leader.r.inbox.granted[9], 200)
	require.NotZero(t, leader.r.Status().Counters.RefusedIn)
	c.lose = func(wire.Message) bool { return false }
	c.run(20)
	require.Len(t, c.done, 4)
	require.Len(t, c.agree(), 4)
	require.Empty(t, leader.r.inbox.granted)
}

// What a home keeps for its gateways has a bound; beyond it a stream ends, and another begins.
func TestHomeKeepsABoundedNumberOfResults(t *testing.T) {
	c := newGated(t, nil, 1)
	n := c.elect(1)
	c.run(5)
	const room = reportBytes + 100 // for a report, and no result
	n.r.home.kept = maxKeptBytes - room
	call := c.propose("a")
	c.run(5)
	require.ErrorIs(t, c.result(call).Err, ErrSuperseded)
	require.Equal(t, uint64(2), c.g.Status().Counters.Homes)
	require.Equal(t, maxKeptBytes-room, n.r.home.kept)
	n.r.home.kept = 0
	for id := range uint64(maxGuests) {
		require.NoError(t, n.r.Receive(wire.Message{Group: 7, From: 100 + id, To: 1, Body: wire.Attach{Life: 1, Number: 1}}))
	}
	require.Len(t, n.r.home.guests, maxGuests)
	out := n.r.Flush(c.now)
	require.Contains(t, out.Sends[len(out.Sends)-1].Body.(wire.Report).Closed, "1024 gateways")
	c.run(guestPatience*10 + 2)
	require.Len(t, n.r.home.guests, 1, "those that say nothing are forgotten")
}

// A gateway that acknowledges no results takes the room of no other.
func TestGatewayThatAcknowledgesNothingLosesItsOwnStream(t *testing.T) {
	c := newGated(t, nil, 1)
	n := c.elect(1)
	c.run(5)
	require.NoError(t, n.r.Receive(wire.Message{Group: 7, From: 10, To: 1, Body: wire.Attach{Life: 1, Number: 1}}))
	_, hostile := n.r.home.find(10)
	hostile.kept = append(hostile.kept, keptReport{bytes: maxKeptBytes - 10})
	n.r.home.kept += maxKeptBytes - 10
	call := c.propose("a")
	c.run(1)
	require.NoError(t, c.result(call).Err)
	require.False(t, n.r.home.has(hostile))
	require.Less(t, n.r.home.kept, 1000)
}

// The results of a batch have a bound, and so have the reasons for results that have no bytes.
func TestResultsOfABatchAreBounded(t *testing.T) {
	n, long := newGated(t, nil, 1).nodes[1], errors.New(strings.Repeat("x", 10_000))
	n.r.cfg.EncodeResult = func(v any) ([]byte, error) {
		if n, ok := v.(int); ok {
			return make([]byte, n), nil
		}
		return nil, long
	}
	for _, results := range [][]any{{maxResultBytes, 0, 1}, slices.Repeat([]any{maxResultBytes}, 12), {maxResultBytes + 1}, slices.Repeat([]any{"x"}, wire.MaxResults)} {
		encoded := n.r.atHome().encodeResults(results)
		require.Len(t, encoded, len(results))
		bytes := 0
		for i, c := range encoded {
			require.True(t, c.NoBytes != "" || len(c.Data) == results[i])
			bytes += len(c.Data) + len(c.NoBytes)
		}
		require.LessOrEqual(t, bytes, maxBatchResults+64*len(results))
	}
}

func TestQueriesSeeWhatWasAcknowledged(t *testing.T) {
	c := newGated(t, nil, 1, 2, 3)
	c.elect(1)
	c.run(30)
	home := c.nodes[c.g.Status().Home]
	for i, policy := range []ReadPolicy{nil, AtResponder{}, LeaderLease{}, QuorumRead{}, BoundedStaleness{Max: tick}} {
		c.propose(fmt.Sprint(i))
		c.settle()
		c.g.Query(Call(100+i), []byte("q"), ReadOptions{Policy: policy}, c.now+10*tick)
		asked := false
		for range 200 {
			c.wires = append(c.wires, c.g.Flush(c.now).Sends...)
			c.deliver()
			for _, id := range c.ids() {
				n := c.nodes[id]
				out := n.r.Flush(c.now)
				c.wires = append(c.wires, out.Sends...)
				n.appends, n.applies = append(n.appends, out.Appends...), append(n.applies, out.Applies...)
				c.work(n)
				for _, q := range out.Queries {
					require.Equal(t, home, n)
					require.Len(t, n.sm.applied, i+1)
					n.r.Answered(q, wire.Reply{Code: wire.Answered, Data: append(q.Request, '!')})
					asked = true
				}
			}
			if asked {
				break
			}
		}
		require.True(t, asked, "%T", policy)
		c.settle()
		d := c.result(Call(100 + i))
		require.NoError(t, d.Err)
		require.Equal(t, []byte("q!"), d.Result)
	}
	require.Empty(t, home.r.home.queries)
	require.Zero(t, home.r.home.asked)
	require.Zero(t, c.g.Status().Queued)
}

// Queries of gateways have no number of a driver's call: the caller of call 0 gives up, and they go on.
func TestQueriesGoOnWhenACallIsCancelled(t *testing.T) {
	c := newGated(t, nil, 1, 2, 3)
	c.elect(1)
	c.run(30)
	home := c.nodes[c.g.Status().Home].r
	require.NoError(t, home.receiveQuery(9, wire.Query{Number: 1, Policy: wire.QueryReadIndex, Patience: 10 * tick}))
	home.Cancel(0, nil)
	home.Flush(c.now)
	require.Len(t, home.home.queries, 1)
}

// A member is no gateway, and a gateway takes nothing that is not for one.
func TestGatewaysAndMembersAreKeptApart(t *testing.T) {
	c := newGated(t, nil, 1, 2, 3)
	c.elect(1)
	require.ErrorIs(t, c.nodes[1].r.Receive(wire.Message{Group: 7, From: 2, To: 1, Body: wire.Attach{Life: 1, Number: 1}}), ErrBadMessage)
	require.ErrorIs(t, c.g.Receive(wire.Message{Group: 7, From: 1, To: 9, Body: wire.Raft{Message: &pb.Message{}}}), ErrBadMessage)
	require.ErrorIs(t, c.g.Receive(wire.Message{Group: 7, From: 1, To: 8, Body: wire.Report{}}), ErrBadMessage)
	require.ErrorIs(t, c.g.Receive(wire.Message{Group: 7, From: 1, To: 9, Body: wire.Report{Row: &wire.OriginRow{Boot: 1 << 63}}}), ErrBadMessage)
}

// Whatever a peer sends, nothing panics, and each call ends once.
func TestGatewayAndHomeWithNonsense(t *testing.T) {
	c := newGated(t, nil, 1, 2, 3)
	c.elect(1)
	c.run(30)
	rng := rand.New(rand.NewPCG(3, 4))
	few := func() uint64 { return []uint64{0, 1, 2, 3, 7, 1 << 62, 1<<64 - 1}[rng.IntN(7)] }
	h := &c.g.home
	for range 3000 {
		c.propose("x")
		var body wire.Body
		number, stream := h.number, h.stream
		if rng.IntN(3) == 0 {
			number, stream = few(), wire.StreamID{Boot: few(), Number: few()}
		}
		switch rng.IntN(4) {
		case 0:
			r := wire.Report{Life: c.g.cfg.Boot, Number: number, Stream: stream, Counted: rng.IntN(2) == 0, Count: h.received + few(),
				Leader: few(), LeaderTerm: few(), Term: few(), Index: few()}
			if rng.IntN(2) == 0 {
				r.Row = &wire.OriginRow{Boot: few(), Floor: few()}
			}
			for range rng.IntN(3) {
				r.Entries = append(r.Entries, wire.EntryResults{Boot: c.g.outbox.boot, Sequence: few(), Index: few(), Lost: rng.IntN(2) == 0, Results: make([]wire.CommandResult, rng.IntN(3))})
			}
			body = r
		case 1:
			body = wire.Verdict{ID: wire.CommandID{Origin: 9, Boot: c.g.outbox.boot, Sequence: few()}, Number: few(), Outcome: wire.Outcome(1 + rng.IntN(6)), Index: few(), Term: few(), Leader: few()}
		case 2:
			body = wire.Reply{Life: few(), Number: few(), Code: wire.ReplyCode(1 + rng.IntN(4)), By: uint8(few()), Lag: few()}
		case 3:
			to := 1 + rng.Uint64N(3)
			var b wire.Body = wire.Attach{Life: few(), Number: few(), Stream: stream, Received: few(), Leaves: rng.IntN(2) == 0}
			if rng.IntN(2) == 0 {
				b = wire.Query{Life: few(), Number: few(), Policy: wire.QueryPolicy(1 + rng.IntN(6)), MaxEntries: few(), Patience: tick}
			}
			_ = c.nodes[to].r.Receive(wire.Message{Group: 7, From: 20 + few()%3, To: to, Body: b}) // whatever it says
			continue
		}
		_ = c.g.Receive(wire.Message{Group: 7, From: h.id, To: 9, Body: body}) // likewise
		for _, d := range c.g.Flush(c.now).Done {
			_, twice := c.done[d.Call]
			require.False(t, twice)
			c.done[d.Call] = d
		}
	}
	c.g.Stop()
	for _, d := range c.g.Flush(c.now).Done {
		c.done[d.Call] = d
	}
	require.Len(t, c.done, int(c.calls))
}

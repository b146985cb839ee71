// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package front_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weftraft/weft"
	"github.com/weftraft/weft/internal/book"
	"github.com/weftraft/weft/internal/wire"
	"github.com/weftraft/weft/rawnode"
	"github.com/weftraft/weft/rawnode/session"
	"github.com/weftraft/weft/rawnode/state"
)

// Query returns all lines; a request other than that is an error.
func (j *journal) Query(_ context.Context, request []byte) ([]byte, error) {
	if string(request) != "lines" {
		return nil, fmt.Errorf("no such request: %q", request)
	}
	return json.Marshal(j.lines())
}

// EncodeResult writes the number of a line.
func (j *journal) EncodeResult(result any) ([]byte, error) {
	return strconv.AppendInt(nil, int64(result.(int)), 10), nil
}

// openGateway opens a gateway of a cluster, with a group.
func openGateway(t testing.TB, id uint64, all map[uint64]*member, peers ...uint64) *weft.Group {
	return openGatewayIn(t, "", id, all, peers...)
}

// openGatewayIn opens a gateway in a zone.
func openGatewayIn(t testing.TB, zone string, id uint64, all map[uint64]*member, peers ...uint64) *weft.Group {
	g, err := gatewayNode(t, zone, id, all, peers...).Group(1, nil)
	require.NoError(t, err)
	return g
}

func gatewayNode(t testing.TB, zone string, id uint64, all map[uint64]*member, peers ...uint64) *weft.Node {
	o := weft.Options{Gateway: true, Cluster: testCluster, ID: id, Zone: zone, Listen: "127.0.0.1:0", Peers: map[uint64]string{}, TickInterval: 10 * time.Millisecond}
	for _, peer := range peers {
		o.Peers[peer] = all[peer].options.Peers[peer]
	}
	n, err := weft.Open(o)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, n.Close(context.Background())) })
	return n
}

func linesOf(t testing.TB, g *weft.Group, options ...weft.ReadOption) (lines []string) {
	answer, err := g.Query(within(t), []byte("lines"), options...)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(answer, &lines))
	return lines
}

func TestGatewayProposesAndAsksWithoutAReplica(t *testing.T) {
	all := startCluster(t, 3)
	g := openGateway(t, 9, all, 1, 2) // and learns where node 3 is
	var want []string
	for i := range 20 {
		line := fmt.Sprint("line ", i)
		want = append(want, line)
		r, err := g.Propose(within(t), []byte(line))
		require.NoError(t, err)
		require.Equal(t, strconv.Itoa(i+1), string(r.Value.([]byte)))
		require.NotZero(t, r.Index)
	}
	for _, options := range [][]weft.ReadOption{nil, {weft.AtResponder()}, {weft.LeaderLease()}, {weft.Quorum()}, {weft.Stale(time.Minute)}} {
		require.Equal(t, want, linesOf(t, g, options...))
	}
	require.Equal(t, want, linesOf(t, all[1].group))
	_, err := g.Query(within(t), []byte("pages"))
	require.ErrorIs(t, err, weft.ErrRefused)
	require.ErrorContains(t, err, "no such request")
	_, err = all[1].group.Query(within(t), []byte("pages"))
	require.ErrorIs(t, err, weft.ErrRefused)
	s := g.State()
	require.Equal(t, weft.Gateway, s.Role)
	require.Len(t, s.Members, 3)
	eventually(t, func() bool { return g.Leader() != 0 && g.Leader() == all[1].group.Leader() }, "the gateway and a node know the same leader")
	eventually(t, func() bool { return g.State().Members[2].Address == all[3].options.Peers[3] }, "the gateway learns the address of node 3")
	eventually(t, func() bool { s := g.State(); return s.Home != 0 && s.Home != s.Leader }, "a follower is the home")
	require.Zero(t, all[1].group.State().Home, "a node has none")
}

// The gateway learns from connections where nodes stand, and moves while calls go on; none fails.
func TestGatewayHasItsHomeInItsZone(t *testing.T) {
	peers, all := addressesOf(t, 1, 2, 3), map[uint64]*member{}
	for id := range peers {
		all[id] = newMember(t, id, peers)
		all[id].options.Zone = fmt.Sprint("zone ", id)
		all[id].start(t)
	}
	all[1].propose(t, "a line")
	near := uint64(3) // which a gateway does not take first
	if all[1].group.Leader() == near {
		near = 2
	}
	g := openGatewayIn(t, all[near].options.Zone, 9, all, 1, 2, 3)
	eventually(t, func() bool {
		_, err := g.Propose(within(t), []byte("another line"))
		require.NoError(t, err)
		return g.Gateway().Status().Home == near || g.Leader() == near
	}, "node %d is the home", near)
}

func TestGatewayRefusesWhatNeedsAReplica(t *testing.T) {
	all := startCluster(t, 1)
	g := openGateway(t, 9, all, 1)
	_, err := g.Read(within(t))
	require.ErrorContains(t, err, "gateway")
	require.ErrorContains(t, g.TransferLeader(within(t), 1), "gateway")
	require.ErrorContains(t, g.AddVoter(within(t), 2, "127.0.0.1:7000"), "gateway")
	_, err = g.Snapshot(within(t), nil)
	require.ErrorContains(t, err, "gateway")
	require.NoError(t, g.Close(within(t)))
	_, err = g.Propose(within(t), []byte("late"))
	require.ErrorIs(t, err, weft.ErrStopped)
}

// Without a node nothing is sent: calls end with their contexts, have no effect, and hold no more than the budget.
func TestGatewayWithoutNodesRefusesInTime(t *testing.T) {
	n, err := weft.Open(weft.Options{Gateway: true, Cluster: testCluster, ID: 9, Listen: "127.0.0.1:0", Peers: addressesOf(t, 1, 2),
		TickInterval: 10 * time.Millisecond, BudgetBytes: 10})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, n.Close(context.Background())) })
	g, err := n.Group(1, nil)
	require.NoError(t, err)
	short, end := context.WithTimeout(context.Background(), 100*time.Millisecond)
	defer end()
	_, err = g.Propose(short, []byte("a"))
	require.ErrorIs(t, err, weft.ErrRefused)
	require.ErrorIs(t, err, weft.ErrTimeout)
	require.ErrorContains(t, err, "no member answers this gateway; asked: [1 2]")
	_, err = g.Propose(short, []byte("a"))
	require.ErrorIs(t, err, weft.ErrTimeout)
	_, err = g.Propose(within(t), make([]byte, 11))
	require.ErrorIs(t, err, weft.ErrTooLarge)

	ctx, cancel := context.WithCancelCause(context.Background())
	errs := make(chan error, 2)
	go func() { _, err := g.Propose(ctx, make([]byte, 5)); errs <- err }()
	go func() { _, err := g.Query(ctx, make([]byte, 5)); errs <- err }()
	eventually(t, func() bool { return g.Gateway().Status().Queued == 10 }, "both wait")
	_, err = g.Propose(within(t), []byte("b"))
	require.ErrorIs(t, err, weft.ErrOverloaded)
	why := errors.New("the user has gone")
	cancel(why)
	for range 2 {
		err := <-errs
		require.ErrorIs(t, err, why)
		require.ErrorIs(t, err, weft.ErrRefused)
	}
	require.Zero(t, g.Gateway().Status().Queued)
	require.Zero(t, g.Leader())
	require.False(t, g.State().CaughtUp)
}

// Sessions work across gateways: a command that is proposed again elsewhere takes effect once.
func TestSessionsThroughGateways(t *testing.T) {
	m := newMember(t, 1, addressesOf(t, 1))
	var err error
	m.node, err = weft.Open(m.options)
	require.NoError(t, err)
	t.Cleanup(func() { m.stop(t) })
	r, err := weft.Replicate(m.node, 1, newVotes, weft.Sessions(session.DefaultLimits))
	require.NoError(t, err)
	gates := []*weft.Group{openGateway(t, 8, map[uint64]*member{1: m}, 1), openGateway(t, 9, map[uint64]*member{1: m}, 1)}
	propose := func(g *weft.Group, command []byte) any {
		result, err := g.Propose(within(t), command)
		require.NoError(t, err)
		value, err := state.DecodeResult(result.Value.([]byte))
		require.NoError(t, err)
		return value
	}
	id := propose(gates[0], state.OpenSession()).(session.ID)
	for i, g := range gates {
		require.Equal(t, 1, propose(g, state.InSession(id, 1, 0, []byte("ada"))), "gateway %d", i)
	}
	require.Equal(t, 2, propose(gates[1], state.InSession(id, 2, 1, []byte("ada"))))
	require.Equal(t, true, propose(gates[1], state.EndSession(id)))
	require.IsType(t, &state.RefusedError{}, propose(gates[0], state.InSession(id, 3, 2, []byte("ada"))))
	for _, g := range []*weft.Group{r.Group, gates[0]} {
		_, err = g.Query(within(t), nil)
		require.ErrorIs(t, err, weft.ErrRefused)
		require.ErrorContains(t, err, "takes no queries")
	}
}

func TestOptionsOfAGateway(t *testing.T) {
	good := weft.Options{Gateway: true, Cluster: testCluster, ID: 9, Listen: "127.0.0.1:0", Peers: map[uint64]string{1: "127.0.0.1:7001"}}
	require.NoError(t, good.Validate())
	for says, change := range map[string]func(*weft.Options){
		"Options.Dir is set, and a gateway has none":          func(o *weft.Options) { o.Dir = "data" },
		"Options.Join is set, and a gateway has none":         func(o *weft.Options) { o.Join = true },
		"Options.LeaderWeight is set, and a gateway has none": func(o *weft.Options) { o.LeaderWeight = 5 },
		"Options.CatchUpBytes is set, and a gateway has none": func(o *weft.Options) { o.CatchUpBytes = 1 },
		"Options.Balance is set, and a gateway has none":      func(o *weft.Options) { o.Balance = -1 },
		"Options.Peers is empty":                              func(o *weft.Options) { o.Peers = nil },
		"Options.Peers[9] is 127.0.0.1:7009, and a gateway has the ID": func(o *weft.Options) {
			o.Peers = map[uint64]string{1: "127.0.0.1:7001", 9: "127.0.0.1:7009"}
		},
		"Options.Listen is empty": func(o *weft.Options) { o.Listen = "" },
	} {
		o := good
		change(&o)
		require.ErrorContains(t, o.Validate(), says)
	}
	o := good
	o.Listen = ":0"
	_, err := weft.Open(o)
	require.ErrorContains(t, err, "Options.Advertise is empty, and nodes cannot dial the address of Listen")
	_, err = weft.OpenMemory(good, 1, func() votes { return votes{} })
	require.ErrorContains(t, err, "is a gateway")
	n, err := weft.Open(good)
	require.NoError(t, err)
	_, err = n.Group(1, &journal{})
	require.ErrorContains(t, err, "a gateway has no state: pass nil")
	_, err = weft.Replicate(n, 1, func() votes { return votes{} })
	require.ErrorContains(t, err, "a gateway has no state")
	require.ErrorContains(t, n.SetLeaderWeight(3), "is a gateway")
	require.NoError(t, n.Close(context.Background()))
}

// gateLoad is writers at gateways, each with lines of its own, and what they were told.
type gateLoad struct {
	gates   []*weft.Group
	writers sync.WaitGroup
	stop    context.CancelFunc

	mu             sync.Mutex
	acked, refused []string
	unknown        int
}

func startGateLoad(gates ...*weft.Group) *gateLoad {
	l := &gateLoad{gates: gates}
	var running context.Context
	running, l.stop = context.WithCancel(context.Background())
	for w := range 8 {
		l.writers.Go(func() {
			for i := 0; running.Err() == nil; i++ {
				l.write(gates[w%len(gates)], fmt.Sprintf("%d of %d", i, w))
			}
		})
	}
	return l
}

func (l *gateLoad) write(g *weft.Group, line string) {
	ctx, end := context.WithTimeout(context.Background(), 2*time.Second)
	defer end()
	_, err := g.Propose(ctx, []byte(line))
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case err == nil:
		l.acked = append(l.acked, line)
	case errors.Is(err, weft.ErrRefused):
		l.refused = append(l.refused, line)
	default:
		l.unknown++
	}
}

// goesOn waits for more acknowledged lines.
func (l *gateLoad) goesOn(t testing.TB, lines int, when string) {
	t.Helper()
	count := func() int { l.mu.Lock(); defer l.mu.Unlock(); return len(l.acked) }
	had := count()
	eventually(t, func() bool { return count() >= had+lines }, "gateways go on %s", when)
}

// check ends the load, and compares what the writers were told with the lines of the group.
func (l *gateLoad) check(t testing.TB) (lines []string) {
	l.stop()
	l.writers.Wait()
	lines = linesOf(t, l.gates[0])
	counts := map[string]int{}
	for _, line := range lines {
		counts[line]++
	}
	for _, line := range l.acked {
		require.Equal(t, 1, counts[line], "%q was acknowledged", line)
	}
	for _, line := range l.refused {
		require.Zero(t, counts[line], "%q was refused", line)
	}
	for line, n := range counts {
		require.Equal(t, 1, n, "%q", line)
	}
	t.Logf("%d acknowledged, %d refused, %d unknown; %+v", len(l.acked), len(l.refused), l.unknown, l.gates[0].Gateway().Status().Counters)
	require.Less(t, l.unknown, len(l.acked)/5)
	return lines
}

// What a caller at a gateway was told holds, while the leader goes and comes back again and again.
func TestVerdictsOfGatewaysHoldWhileLeadersGo(t *testing.T) {
	all := startCluster(t, 3)
	all[1].propose(t, "first")
	load := startGateLoad(openGateway(t, 8, all, 1, 2, 3), openGateway(t, 9, all, 1, 2, 3))
	for range 3 {
		load.goesOn(t, 200, "with all nodes")
		leader := load.gates[0].Leader()
		if leader == 0 {
			continue
		}
		all[leader].stop(t)
		load.goesOn(t, 50, "without the leader")
		all[leader].start(t)
	}
	lines := load.check(t)
	require.Equal(t, lines, all[2].read(t)[:len(lines)])
}

func TestVerdictsOfGatewaysHoldWhenTheLeaderIsKilled(t *testing.T) {
	peers := addressesOf(t, 1, 2, 3)
	all := map[uint64]*member{1: newMember(t, 1, peers), 2: newMember(t, 2, peers), 3: newMember(t, 3, peers)}
	process := errand{Options: all[1].options}.start(t)
	for _, id := range []uint64{2, 3} {
		all[id].start(t)
	}
	eventually(t, func() bool { return len(process.said(t, "acked")) > 20 }, "lines of the first node")
	changed(t, func(ctx context.Context) error { return all[2].group.TransferLeader(ctx, 1) })
	load := startGateLoad(openGateway(t, 8, all, 1, 2, 3), openGateway(t, 9, all, 1, 2, 3))
	load.goesOn(t, 200, "with all nodes")
	require.NoError(t, process.Kill())
	load.goesOn(t, 50, "without the leader")
	lines := load.check(t)
	require.Subset(t, lines, process.said(t, "acked"))
	require.Equal(t, lines, all[2].read(t)[:len(lines)])
}

// noted counts the calls of a group, as tracing does.
type noted struct {
	weft.Calls
	proposed, read *int
}

func (n noted) Propose(ctx context.Context, command []byte) (weft.Result, error) {
	*n.proposed++
	return n.Calls.Propose(ctx, command)
}

func (n noted) ReadWith(ctx context.Context, o rawnode.ReadOptions) (weft.ReadResult, error) {
	*n.read++
	return n.Calls.ReadWith(ctx, o)
}

// Options.Calls sees the calls at a gateway: commands, and queries as reads.
func TestCallsAtAGatewayAreSeen(t *testing.T) {
	all := startCluster(t, 3)
	var proposed, read int
	o := weft.Options{
		Gateway: true, Cluster: testCluster, ID: 101, Listen: "127.0.0.1:0", TickInterval: 10 * time.Millisecond,
		Peers: map[uint64]string{1: all[1].options.Peers[1]},
		Calls: func(_ uint64, host weft.Calls) weft.Calls { return noted{host, &proposed, &read} },
	}
	n, err := weft.Open(o)
	require.NoError(t, err)
	defer func() { require.NoError(t, n.Close(context.Background())) }()
	g, err := n.Group(1, nil)
	require.NoError(t, err)
	_, err = g.Propose(within(t), []byte("a line"))
	require.NoError(t, err)
	require.Equal(t, []string{"a line"}, linesOf(t, g))
	require.Equal(t, []int{1, 1}, []int{proposed, read})

	o.ID, o.Calls = 102, func(_ uint64, host weft.Calls) weft.Calls { return strange{host} }
	other, err := weft.Open(o)
	require.NoError(t, err)
	defer func() { require.NoError(t, other.Close(context.Background())) }()
	g, err = other.Group(1, nil)
	require.NoError(t, err)
	_, err = g.Query(within(t), []byte("lines"))
	require.ErrorContains(t, err, "Options.Calls has dropped the context")
	require.ErrorIs(t, err, weft.ErrRefused)
}

// strange drops contexts.
type strange struct{ weft.Calls }

func (s strange) ReadWith(_ context.Context, o rawnode.ReadOptions) (weft.ReadResult, error) {
	return s.Calls.ReadWith(context.Background(), o)
}

// A gateway with all its rights, and a program of an attacker's, cannot tell nodes where others are, or that they were removed.
func TestGatewayDecidesNothingAboutMembers(t *testing.T) {
	all := startCluster(t, 3)
	knowEachOther(t, all)
	n := gatewayNode(t, "", 9, all, 1, 2, 3)
	g, err := n.Group(1, nil)
	require.NoError(t, err)
	_, err = g.Propose(within(t), []byte("a line"))
	require.NoError(t, err)

	lies := book.Facts{
		Addresses: map[uint64]book.Located{2: {Address: "127.0.0.1:1", Version: 1 << 40}},
		Removed:   map[uint64]map[uint64]bool{1: {1: true, 2: true, 3: true}},
	}
	command, err := lies.Command()
	require.NoError(t, err)
	_, err = g.Gateway().Propose(within(t), command)
	require.ErrorIs(t, err, weft.ErrRefused)
	require.ErrorContains(t, err, "is no member")

	note, err := json.Marshal(map[string]any{"sum": 1, "facts": lies})
	require.NoError(t, err)
	for id := range all {
		received := func() uint64 { return all[id].node.Transport().Stats().Peers[9][wire.ClassBackground].ReceivedMessages }
		before := received()
		n.Transport().Send([]wire.Message{{Group: book.NoteGroup, From: 9, To: id, Body: wire.Note{Data: note}}})
		eventually(t, func() bool { return received() > before }, "node %d gets the note", id)
	}
	for range 10 {
		for id, m := range all {
			m.propose(t, "still here")
			require.Empty(t, m.group.Removed(), "node %d", id)
			require.Equal(t, all[2].options.Peers[2], m.node.Addresses()[2])
		}
	}
}

// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// cluster is nodes whose reports a test writes.
type cluster struct {
	nodes map[uint64]*Node // nil: no answer
	asked []Ask
	now   time.Time
	*Collector
}

func newCluster(size int) *cluster {
	c := &cluster{nodes: map[uint64]*Node{}, now: time.Unix(1000, 0)}
	var sources []Source
	var voters []uint64
	for i := range size {
		voters = append(voters, uint64(i+1))
	}
	for _, id := range voters {
		c.nodes[id] = &Node{
			ID: id, Cluster: 7, Core: "weft", PID: int(100 + id), Group: 1, Groups: 1, Role: "follower", Leader: 1, Term: 2,
			Commit: 50, Applied: 50, Last: 50, Voters: voters, Links: []Link{},
		}
		sources = append(sources, Source{ID: id, Read: func(_ context.Context, ask Ask) (*Node, error) {
			if id == 1 {
				c.asked = append(c.asked, ask)
			}
			if c.nodes[id] == nil {
				return nil, errors.New("gone")
			}
			n := *c.nodes[id]
			n.Group = ask.Group
			return &n, nil
		}})
	}
	c.nodes[1].Role = "leader"
	c.Collector = NewCollector(0, sources)
	c.Collector.now = func() time.Time { return c.now }
	return c
}

// after returns the state after some time.
func (c *cluster) after(d time.Duration) *State {
	c.now = c.now.Add(d)
	return c.State(context.Background(), 1)
}

// texts returns the events, oldest first.
func texts(s *State) (all []string) {
	for _, e := range s.Events {
		all = append(all, e.Kind+": "+e.Text)
	}
	slices.Reverse(all)
	return all
}

// A gateway that is asked is shown, and what it says of the cluster counts after what nodes say.
func TestGatewayIsShown(t *testing.T) {
	c := newCluster(3)
	c.nodes[3].Role, c.nodes[3].Core, c.nodes[3].Applied, c.nodes[3].Voters = Gateway, "", 99, nil
	for _, id := range []uint64{1, 2} {
		c.nodes[id].Voters = []uint64{1, 2}
	}
	s := c.after(0)
	require.Equal(t, "weft", s.Core)
	require.Len(t, s.Members, 3)
	require.Equal(t, []string{"voter", "voter", "none"}, []string{s.Members[0].Vote, s.Members[1].Vote, s.Members[2].Vote})
	require.Equal(t, Gateway, s.Members[2].Role)
	require.Zero(t, s.Missing)
}

func TestStateOfAHealthyCluster(t *testing.T) {
	c := newCluster(3)
	s := c.after(0)
	require.EqualValues(t, 1, s.Leader)
	require.EqualValues(t, 2, s.Term)
	require.EqualValues(t, 7, s.Cluster)
	require.Len(t, s.Members, 3)
	for _, m := range s.Members {
		require.Equal(t, Up, m.State)
		require.Equal(t, "voter", m.Vote)
	}
	require.Empty(t, s.Events, "there is nothing to compare with")
	require.Same(t, s, c.after(fresh-1), "a state is good enough for a moment")
	require.NotSame(t, s, c.after(1))
	require.Equal(t, []Ask{{1, 0}, {1, 50}}, c.asked, "entries are wanted up to the last commit index")
	c.Expire()
	require.NotNil(t, c.after(0))
	require.Len(t, c.asked, 3)
}

// Rates are differences of counters, which begin again in a new process.
func TestRatesAndTotalsOverProcesses(t *testing.T) {
	c := newCluster(3)
	say := func(pid int, sent uint64, writes Counts) {
		n := c.nodes[2]
		n.PID, n.Links, n.Writes = pid, []Link{{Peer: 1, Sent: sent, Connected: true}}, writes
	}
	say(10, 1000, Counts{2: 5})
	s := c.after(0)
	require.Zero(t, s.BytesPerSecond, "there is no rate of one report")
	require.EqualValues(t, 1000, s.Links[0].Total)

	say(10, 5000, Counts{2: 9})
	s = c.after(2 * time.Second)
	require.InDelta(t, 2000, s.BytesPerSecond, 1e-6)
	require.InDelta(t, 2, s.WritesPerSecond, 1e-6)
	require.Equal(t, LinkState{From: 2, To: 1, PerSecond: 2000, Total: 5000, Connected: true}, s.Links[0])

	say(11, 600, Counts{2: 1})
	s = c.after(2 * time.Second)
	require.EqualValues(t, 5600, s.Links[0].Total)
	require.InDelta(t, 4600.0/4, s.BytesPerSecond, 1e-6)
	require.Equal(t, Counts{2: 5}, s.Latency.Writes, "since the first report")
	require.InDelta(t, 0.5, *s.Latency.WriteP99, 1e-9)

	c.nodes[2] = nil
	s = c.after(time.Minute)
	require.EqualValues(t, 5600, s.Links[0].Total)
	require.Zero(t, s.BytesPerSecond)
	require.False(t, s.Links[0].Connected)
	require.Zero(t, s.Latency.Writes.sum(), "that is long ago")
	require.Nil(t, s.Latency.WriteP50)
}

// Memory does not grow with time, groups or events.
func TestCollectorForgets(t *testing.T) {
	c := newCluster(3)
	for i := range 3 * maxEvents {
		c.nodes[1].Term++
		c.after(time.Second)
		c.State(context.Background(), uint64(i+1))
	}
	require.Len(t, c.watches, maxWatches)
	w := c.watches[1]
	require.NotNil(t, w, "group 1 stays")
	require.Len(t, w.events.all, maxEvents)
	require.LessOrEqual(t, len(w.ledger.past), int(latencyWindow/time.Second)+2)
}

func TestEventsAreDifferences(t *testing.T) {
	three, four := []uint64{1, 2, 3}, []uint64{1, 2, 3, 4}
	for name, k := range map[string]struct {
		change func(c *cluster)
		want   []string
	}{
		"nothing":  {func(*cluster) {}, nil},
		"down":     {func(c *cluster) { c.nodes[3] = nil }, []string{"node: node 3 does not answer"}},
		"election": {func(c *cluster) { c.nodes[2].Role, c.nodes[2].Leader, c.nodes[2].Term = "leader", 2, 3 }, []string{"election: node 2 leads in term 3"}},
		"leader down": {func(c *cluster) { c.nodes[1] = nil }, []string{
			"node: node 1 does not answer", "election: no leader is known",
		}},
		"restart": {func(c *cluster) { c.nodes[2].PID = 999 }, []string{"node: node 2 was started again, process 999"}},
		"learner": {func(c *cluster) { c.nodes[1].Learners, c.nodes[1].Applied = []uint64{4}, 51 }, []string{"member: node 4 is a learner"}},
		"voter":   {func(c *cluster) { c.nodes[1].Voters, c.nodes[1].Applied = four, 51 }, []string{"member: node 4 is a voter"}},
		"removed": {func(c *cluster) { c.nodes[1].Voters, c.nodes[1].Applied = three[:2], 51 }, []string{"member: node 3 was removed"}},
		"snapshots": {func(c *cluster) { c.nodes[1].Sent, c.nodes[2].Taken, c.nodes[3].Failed = 1, 1, 1 }, []string{
			"snapshot: node 1 has sent a snapshot", "snapshot: node 2 has installed a snapshot", "snapshot: a snapshot from node 3 has failed",
		}},
		"stall": {func(c *cluster) { c.nodes[2].Stalled, c.nodes[2].Stalls = "no space", 1 }, []string{"stall: node 2 cannot write: no space"}},
		"brief": {func(c *cluster) { c.nodes[2].Stalls = 1 }, []string{"stall: node 2 could not write for a moment"}},
		"roster": {func(c *cluster) {
			c.nodes[3].Leases = &Leases{Term: 2, Roster: 4, Named: []Span{{Nodes: []uint64{2, 3}}, {From: "a", Nodes: []uint64{1}}}}
		}, []string{"roster: roster 4 of term 2: nodes 2 3 answer reads of all keys; nodes 1 answer reads of keys a to the last"}},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(3)
			c.after(0)
			k.change(c)
			s := c.after(time.Second)
			require.Equal(t, k.want, texts(s))
			require.Equal(t, k.want, texts(c.after(time.Second)), "each is shown once")
		})
	}
}

func TestEventsOfWhatComesBack(t *testing.T) {
	c := newCluster(3)
	c.after(0)
	gone := c.nodes[1]
	c.nodes[1] = nil
	c.after(time.Second)
	c.nodes[1] = gone
	c.nodes[2].Stalled = "full"
	c.after(time.Second)
	c.nodes[2].Stalled = ""
	require.Equal(t, []string{
		"node: node 1 does not answer", "election: no leader is known", "node: node 1 answers", "stall: node 2 cannot write: full",
		"election: node 1 leads on in term 2", "stall: node 2 writes again",
	}, texts(c.after(time.Second)))
}

// A node that does not answer keeps its last figures, and says why; a paused one does not
// count as down.
func TestNodesThatDoNotAnswer(t *testing.T) {
	c := newCluster(3)
	c.after(0)
	c.nodes[2], c.nodes[3] = nil, nil
	c.SetPaused(3, true)
	c.nodes[1].Commit = 80
	s := c.after(time.Second)
	require.Equal(t, Down, s.Members[1].State)
	require.Equal(t, "gone", s.Members[1].Why)
	require.Equal(t, Paused, s.Members[2].State)
	require.EqualValues(t, 30, s.Members[1].Behind)
	require.Equal(t, []string{"node: node 2 does not answer"}, texts(s))

	c.nodes[1] = nil
	s = c.after(time.Second)
	require.Zero(t, s.Leader)
	require.Len(t, s.Members, 3, "members stay known")
	c.Note(EventCommand, "50% of nothing")
	require.Equal(t, "50% of nothing", c.after(time.Second).Events[0].Text)
}

// A member whose HTTP port is not known here is shown, and not as down.
func TestMembersThatAreNotAsked(t *testing.T) {
	c := newCluster(2)
	c.nodes[1].Voters, c.nodes[1].Applied, c.nodes[1].Addresses = []uint64{1, 2, 9}, 51, map[uint64]string{9: "h:1"}
	c.nodes[1].Role, c.nodes[1].Leader, c.nodes[2].Leader = "follower", 9, 9
	s := c.after(0)
	require.Equal(t, MemberState{ID: 9, Address: "h:1", Vote: "voter", State: Unasked}, s.Members[2])
	require.EqualValues(t, 9, s.Leader)
}

func TestEntriesOfAllMembers(t *testing.T) {
	c := newCluster(3)
	entry := func(index, term uint64, own, missing int) Entry {
		return Entry{Index: index, Term: term, Bytes: 6000, D: 6, Encoder: 1, Own: own, Missing: missing}
	}
	c.nodes[1].Entries = []Entry{entry(40, 2, 6, 0), entry(38, 2, 6, 0)}
	c.nodes[2].Entries = []Entry{entry(40, 2, 2, 3), entry(38, 2, 2, 0)}
	c.nodes[3].Entries = []Entry{entry(40, 1, 6, 0)} // of a leader before: to be replaced
	s := c.after(0)
	require.Equal(t, []EntryState{
		{Index: 40, Term: 2, Bytes: 6000, D: 6, Encoder: 1, Cells: []Cell{{1, 6, 0}, {2, 2, 3}}},
		{Index: 38, Term: 2, Bytes: 6000, D: 6, Encoder: 1, Cells: []Cell{{1, 6, 0}, {2, 2, 0}}},
	}, s.Entries)
	c.nodes[1].Entries = nil
	for i := range MaxEntries {
		c.nodes[1].Entries = append(c.nodes[1].Entries, entry(uint64(100-i), 2, 6, 0))
	}
	require.Len(t, c.after(time.Second).Entries, shownEntries)
}

func TestGossipLagAndDelay(t *testing.T) {
	c := newCluster(3)
	c.nodes[1].Commit = 55 // asked a little later than node 2
	c.nodes[2].Coding = &Coding{Policy: PolicyAdaptive, Completed: 44, Delayed: 10, DelayUs: 1000}
	s := c.after(0)
	require.EqualValues(t, 6, s.Members[1].Coding.Lag)
	require.Nil(t, s.Members[1].Coding.DelayMs)
	require.Nil(t, s.Members[0].Coding)
	c.nodes[2].Coding = &Coding{Policy: PolicyAdaptive, Completed: 60, Delayed: 12, DelayUs: 9000, Joined: 4000, StuckAt: 61}
	s = c.after(2 * time.Second)
	require.Equal(t, GossipState{Policy: PolicyAdaptive, DelayMs: s.Members[1].Coding.DelayMs, Joined: 2000, StuckAt: 61}, *s.Members[1].Coding)
	require.InDelta(t, 4, *s.Members[1].Coding.DelayMs, 1e-9)
}

// A report of another node with a value beyond its bounds is refused, and the error names the field.
func TestReportsAreChecked(t *testing.T) {
	many := make([]uint64, MaxMembers+1)
	for want, change := range map[string]func(n *Node){
		"voters: 65, want at most 64":        func(n *Node) { n.Voters = many },
		"links: 65":                          func(n *Node) { n.Links = make([]Link, MaxMembers+1) },
		"entries: 25":                        func(n *Node) { n.Entries = make([]Entry, MaxEntries+1) },
		"role: 301":                          func(n *Node) { n.Role = string(make([]byte, maxText+1)) },
		"groups: -1":                         func(n *Node) { n.Groups = -1 },
		"report of node 5":                   func(n *Node) { n.ID = 5 },
		"entry 3: D 0":                       func(n *Node) { n.Entries = []Entry{{Index: 3}} },
		"entry 4: D 6, 7 own":                func(n *Node) { n.Entries = []Entry{{Index: 4, D: 6, Own: 7}} },
		"leases.named: 65":                   func(n *Node) { n.Leases = &Leases{Named: make([]Span, MaxSpans+1)} },
		"leases.named: a span of 65 nodes":   func(n *Node) { n.Leases = &Leases{Named: []Span{{Nodes: many}}} },
		"look whether --http-peers has the ": func(n *Node) { n.Group = 2 },
	} {
		n := Node{ID: 2, Group: 1}
		require.NoError(t, n.check(2, Ask{Group: 1}))
		change(&n)
		require.ErrorContains(t, n.check(2, Ask{Group: 1}), want)
	}
	long := strings.Repeat("x", maxText-4) + "€€"
	require.Equal(t, strings.Repeat("x", maxText-4)+"…", Text(long), "a rune is not cut")
	require.Equal(t, "short", Text("short"))
}

// The state has the number of votes that a majority lacks. A node that is paused or down gives no
// vote; a node that the page does not ask may be up, so its vote counts.
func TestStateSaysThatAMajorityIsMissing(t *testing.T) {
	c := newCluster(5)
	missing := func(want int) {
		t.Helper()
		require.Equal(t, want, c.after(time.Second).Missing)
	}
	missing(0)
	c.nodes[2], c.nodes[3] = nil, nil
	missing(0)
	c.SetPaused(4, true)
	c.nodes[4] = nil
	missing(1)
	five := c.nodes[5]
	c.nodes[5] = nil
	missing(2)
	c.nodes[5] = five
	c.nodes[1].Voters, c.nodes[5].Voters = []uint64{1, 5, 6, 7, 8}, []uint64{1, 5, 6, 7, 8} // three that nobody asks
	missing(0)
	c.nodes[1], c.nodes[5] = nil, nil
	missing(0)

	c = newCluster(1)
	c.nodes[1] = nil
	missing(0)
}

// The history has the writes of each second or so, also while a node restarts, for two
// minutes.
func TestHistoryOfWrites(t *testing.T) {
	c := newCluster(3)
	require.Empty(t, c.after(0).History)
	write := func(id uint64, n int) {
		next := *c.nodes[id]
		next.Writes[3] += uint64(n)
		c.nodes[id] = &next
	}
	write(1, 100)
	require.Equal(t, []Sample{{1_001_000, 100}}, c.after(time.Second).History)
	write(2, 50)
	s := c.after(500 * time.Millisecond)
	require.Len(t, s.History, 1, "half a second is not counted by itself")
	write(1, 10)
	s = c.after(500 * time.Millisecond)
	require.Equal(t, Sample{1_002_000, 60}, s.History[1])
	c.nodes[1] = nil
	s = c.after(2 * time.Second)
	require.Equal(t, Sample{1_004_000, 0}, s.History[2])
	for range 200 {
		s = c.after(time.Second)
	}
	require.Len(t, s.History, 120)
	require.EqualValues(t, s.AtMs, s.History[119].AtMs)
}

// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package adaptive

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weftraft/weft/ecraft"
	"github.com/weftraft/weft/ecraft/internal/rounds"
)

// world is a leader's interface and four followers, without any error: bytes leave in order, at a
// rate, and are answered after a delay. The estimator gets the calls that a leader would make.
type world struct {
	a      *Policy
	now    time.Duration
	egress float64 // bytes a second
	busy   time.Duration
	links  []wire
	index  uint64
	events []happening
	r      *ecraft.Round
	units  []int
}

type wire struct {
	rate  float64       // bytes a second; 0: the interface is slower
	trip  time.Duration // there and back
	held  time.Duration // at the follower, which says so
	quiet bool          // does not report held
	dead  bool
	busy  time.Duration
}

type happening struct {
	at    time.Duration
	from  int
	index uint64 // 0: a heartbeat's answer
	held  time.Duration
}

func newWorld(n int, egress float64, links ...wire) *world {
	w := &world{egress: egress, links: links, r: rounds.Of(n, 0, 0), units: make([]int, n-1)}
	w.a = joined(w.r)
	return w
}

// run lets time pass.
func (w *world) run(until time.Duration) {
	for {
		next := -1
		for i, e := range w.events {
			if e.at <= until && (next < 0 || e.at < w.events[next].at) {
				next = i
			}
		}
		if next < 0 {
			w.now = until
			return
		}
		e := w.events[next]
		w.events = append(w.events[:next], w.events[next+1:]...)
		w.now = e.at
		id := w.r.Followers[e.from].ID
		if e.index == 0 {
			w.a.HeartbeatAnswered(id, w.now)
			continue
		}
		w.a.Acked(id, e.index, e.held, w.now)
	}
}

// beat sends heartbeats, which bypass the queue.
func (w *world) beat() {
	for i, l := range w.links {
		w.a.HeartbeatSent(w.r.Followers[i].ID, w.now)
		if !l.dead {
			w.events = append(w.events, happening{at: w.now + l.trip, from: i})
		}
	}
}

// propose has an entry assigned and sent, and returns the plan.
func (w *world) propose(size int) ecraft.Plan {
	w.index++
	w.a.Proposed(w.index, size, w.now)
	w.r.Index, w.r.Now, w.r.Size = w.index, w.now, size
	plan := w.a.Assign(w.r, w.units)
	for i := range w.links {
		w.send(i, w.units[i]*(size/w.r.Layout.D)+entryOverhead)
	}
	return plan
}

func (w *world) send(i, bytes int) {
	l := &w.links[i]
	w.a.Sent(w.r.Followers[i].ID, w.index, bytes, w.now)
	w.busy = max(w.busy, w.now) + inSeconds(float64(bytes)/w.egress)
	done := w.busy
	if l.rate > 0 {
		l.busy = max(l.busy, w.now) + inSeconds(float64(bytes)/l.rate)
		done = max(done, l.busy)
	}
	if l.dead {
		return
	}
	said := l.held
	if l.quiet {
		said = 0
	}
	w.events = append(w.events, happening{at: done + l.trip + l.held, from: i, index: w.index, held: said})
}

// load proposes entries at a steady pace for a while, and returns the last plan.
func (w *world) load(size int, every, span time.Duration) (p ecraft.Plan) {
	end := w.now + span
	for beat := w.now; w.now < end; {
		if w.now >= beat {
			w.beat()
			beat += 50 * time.Millisecond
		}
		p = w.propose(size)
		w.a.Committed(w.index - min(w.index, 4))
		w.run(w.now + every)
	}
	return p
}

func four(l wire) []wire { return []wire{l, l, l, l} }

const fast = 125e6 // bytes a second: 1 Gbit/s

var near = wire{trip: 200 * time.Microsecond}

// TestCostIsLearnt checks that the line's slope and base equal the world's, under any load, and
// that the prediction is right.
func TestCostIsLearnt(t *testing.T) {
	for _, busy := range []float64{0.5, 0.7, 0.9} {
		w := newWorld(5, fast, four(near)...)
		every := inSeconds(4 * (64 << 10) / 3 / fast / busy)
		p := w.load(64<<10, every, 2*time.Second)
		require.InEpsilon(t, 1/fast, w.a.nic.cost, 0.15, "at %v", busy)
		require.InDelta(t, near.trip.Seconds(), w.a.links[0].base, 60e-6)
		require.Equal(t, 3, p.Level, "at %v", busy)
		require.InDelta(t, (near.trip + inSeconds(4*(64<<10)/3/fast)).Seconds(), p.Predicted.Seconds(), 400e-6, "at %v", busy)
	}
}

// TestWhoLagsIsNotWaitedFor checks that the other followers can commit an entry without a follower
// that lags, which gets the entry after all missed entries; and that all followers get the whole
// payload where the others are too few.
func TestWhoLagsIsNotWaitedFor(t *testing.T) {
	w := newWorld(5, fast, four(near)...)
	w.load(64<<10, 10*time.Millisecond, time.Second)
	d := w.r.Layout.D
	for _, policy := range []ecraft.Policy{w.a, ecraft.Levelled{}} {
		w.r.Followers[1].Lags = true
		require.Equal(t, 2, policy.Assign(w.r, w.units).Level)
		require.Equal(t, []int{d / 2, 0, d / 2, d / 2}, w.units)
		for i := range w.r.Followers {
			w.r.Followers[i].Lags = true
		}
		require.Equal(t, 1, policy.Assign(w.r, w.units).Level)
		require.Equal(t, []int{d, d, d, d}, w.units)
		for i := range w.r.Followers {
			w.r.Followers[i].Lags = false
		}
		require.Equal(t, 3, policy.Assign(w.r, w.units).Level)
	}
}

// TestRoom checks that missed entries fill a round trip, and little more.
func TestRoom(t *testing.T) {
	w := newWorld(5, fast, four(near)...)
	w.load(64<<10, 10*time.Millisecond, time.Second)
	w.run(w.now + time.Second)
	want := near.trip.Seconds()*fast + paceSlack
	room := w.a.Room(2, w.index+3, time.Second)
	require.InEpsilon(t, want, room, 0.2)
	w.a.Sent(2, w.index+1, 1, w.now)
	require.InDelta(t, room-paceSlack, w.a.Room(2, w.index+3, time.Second), 1, "few bytes are a message, too")
	w.a.Sent(2, w.index+2, room-paceSlack-10_000, w.now)
	require.Zero(t, w.a.Room(2, w.index+3, time.Second), "what is left is too little for a message")
	require.Positive(t, w.a.Room(2, w.index+3, 10*time.Second), "it has taken long enough")
	require.Equal(t, room, w.a.Room(2, w.index+1, time.Second), "all of it was lost")
	w.a.Acked(2, w.index+2, 0, w.now+time.Millisecond)
	require.Positive(t, w.a.Room(2, w.index+3, time.Second))
	require.Positive(t, w.a.Room(99, 1, 0), "nobody knows it")
}

// TestSaturationIsNotDelay is pitfall 2: under saturation the base must not
// drift to "all delay, no bytes", which asks for full copies.
func TestSaturationIsNotDelay(t *testing.T) {
	w := newWorld(5, fast, four(near)...)
	every := inSeconds(4 * (64 << 10) / 3 / fast / 1.3) // more than fits
	p := w.load(64<<10, every, 600*time.Millisecond)
	require.Equal(t, 3, p.Level)
	require.Less(t, w.a.links[0].base, 0.001)
	require.InEpsilon(t, 1/fast, w.a.nic.cost, 0.15)
}

// TestSharedInterfaceCounts is pitfall 3: the first two full copies arrive as soon as three shares
// of a third would, but the other two copies delay later entries.
func TestSharedInterfaceCounts(t *testing.T) {
	w := newWorld(5, fast, four(near)...)
	p := w.load(64<<10, inSeconds(4*(64<<10)/3/fast/0.7), time.Second)
	require.Equal(t, 3, p.Level)
}

// TestSlowFollowerIsNotWaitedFor is pitfall 4: an entry that needs the slow follower would hold up
// all later entries. The slow follower gets only units that no entry waits for.
func TestSlowFollowerIsNotWaitedFor(t *testing.T) {
	links := four(near)
	links[3].rate = fast / 80
	w := newWorld(5, fast, links...)
	p := w.load(64<<10, inSeconds(1.5*(64<<10)/fast/0.6), 2*time.Second)
	require.NotEqual(t, 3, p.Level)
	require.Zero(t, w.units[3], "%v", w.units)
	require.True(t, w.a.links[3].private)
	require.InEpsilon(t, 80/fast, w.a.links[3].own, 0.5)
	// The link becomes fast again, and the probes show the change.
	w.links[3].rate = 0
	w.load(64<<10, inSeconds(1.5*(64<<10)/fast/0.6), 4*time.Second)
	require.Less(t, w.a.links[3].own, 10/fast)
}

// TestConnectionsSharePools is pitfall 5: whoever is sent more must not look
// faster. Two of four followers get everything for a while; the costs of the
// others must not become their own.
func TestConnectionsSharePools(t *testing.T) {
	w := newWorld(5, fast, four(near)...)
	w.load(64<<10, inSeconds(4*(64<<10)/3/fast/0.7), 300*time.Millisecond)
	for range 2000 {
		w.index++
		w.a.Proposed(w.index, 64<<10, w.now)
		for i := range w.links {
			bytes := entryOverhead
			if i < 2 {
				bytes += 64 << 10
			}
			w.send(i, bytes)
		}
		w.run(w.now + inSeconds(2*(64<<10)/fast/0.8))
	}
	for i, l := range w.a.links {
		require.Less(t, l.own, 6/fast, "follower %d", i)
	}
}

// TestHeldIsNotBytes is pitfall 6: a slow disk is not a slow link, if the follower reports the time
// of the disk. Without the report the disk is taken for a slow link.
func TestHeldIsNotBytes(t *testing.T) {
	cost := func(quiet bool) float64 {
		l := near
		l.held, l.quiet = 3*time.Millisecond, quiet
		w := newWorld(5, fast, four(l)...)
		w.load(4<<10, 5*time.Millisecond, 2*time.Second)
		return w.a.nic.cost
	}
	require.InEpsilon(t, 1/fast, cost(false), 0.35)
	require.Greater(t, cost(true), 2/fast, "the check sees it")
}

// TestGoneLate is pitfall 7: a late follower is not gone yet; a follower that stays silent is gone,
// and gets no units until its next answer.
func TestGoneLate(t *testing.T) {
	w := newWorld(5, fast, four(near)...)
	every := 5 * time.Millisecond
	w.load(64<<10, every, time.Second)
	before := w.a.lastLevel
	w.links[0].dead = true
	w.load(64<<10, every, 4*time.Millisecond)
	alive, known := w.a.look(w.r)
	require.True(t, known)
	require.Equal(t, 4, alive, "a few ms are no death")
	p := w.load(64<<10, every, time.Second)
	alive, _ = w.a.look(w.r)
	require.Equal(t, 3, alive)
	require.Zero(t, w.units[0])
	require.Less(t, p.Level, 3, "what the others can commit")
	require.True(t, ecraft.Enough(w.r, w.units))
	w.links[0].dead = false
	w.load(64<<10, every, 500*time.Millisecond)
	require.Positive(t, w.units[0])
	require.Equal(t, before, w.a.lastLevel)
	// The missed heartbeats are never answered, and the next answers belong to later heartbeats.
	require.InDelta(t, near.trip.Seconds(), w.a.links[0].base, 5e-6)
	require.InDelta(t, 1/fast, w.a.links[0].own, 0.1/fast)
}

// TestColdStartIsCareful is pitfall 8: before anything is known the choice is
// few bytes, for a new leader under load must not begin with a queue.
func TestColdStartIsCareful(t *testing.T) {
	w := newWorld(5, fast, four(near)...)
	require.Equal(t, 3, w.propose(64<<10).Level)
	p := w.load(64<<10, inSeconds(4*(64<<10)/3/fast/0.95), 20*time.Millisecond)
	require.Equal(t, 3, p.Level)
}

// TestFirstAnswersAreNotLate checks a new leader of a wide network, which knows no round trips.
// With hedges before the first answers can arrive, all entries would be sent twice.
func TestFirstAnswersAreNotLate(t *testing.T) {
	w := newWorld(5, fast, four(wire{trip: 30 * time.Millisecond})...)
	for w.now < 20*time.Millisecond {
		p := w.propose(4 << 10)
		require.Greater(t, ecraft.HedgeAfter(p), 100*time.Millisecond)
		require.Equal(t, 3, p.Level)
		w.run(w.now + 250*time.Microsecond)
	}
	w.run(35 * time.Millisecond)
	for _, l := range w.a.links {
		require.InDelta(t, 0.030, l.base, 0.003)
	}
	w.load(4<<10, 250*time.Microsecond, 100*time.Millisecond)
	require.Less(t, ecraft.HedgeAfter(w.propose(4<<10)), 300*time.Millisecond)
}

// TestUnheardOfIsNoSlowLink checks followers without an answer yet, while near followers have
// answered: an unknown link must not look like a slow link.
func TestUnheardOfIsNoSlowLink(t *testing.T) {
	links := four(near)
	links[2].trip, links[3].trip = 40*time.Millisecond, 40*time.Millisecond
	w := newWorld(5, fast, links...)
	w.load(64<<10, inSeconds(4*(64<<10)/3/fast/0.7), 20*time.Millisecond)
	require.True(t, w.a.links[0].seen)
	require.False(t, w.a.links[3].seen)
	for _, l := range w.a.links {
		require.False(t, l.private, "follower %d", l.id)
		require.Zero(t, l.alone())
	}
}

// TestSlowLinkBehindABusyInterface checks that a message on a slow link that also waited for the
// interface still shows the slowness of the link.
func TestSlowLinkBehindABusyInterface(t *testing.T) {
	links := four(near)
	links[3].rate = fast / 80
	w := newWorld(5, fast, links...)
	w.load(64<<10, inSeconds(1.5*(64<<10)/fast/0.6), time.Second)
	for range 20 { // mixed payloads, and small payloads for the slow link after them
		w.propose(1 << 20)
		w.index++
		w.a.Proposed(w.index, 32<<10, w.now)
		w.send(3, 32<<10)
		w.run(w.now + 60*time.Millisecond)
	}
	require.InEpsilon(t, 80/fast, w.a.links[3].own, 0.35)
}

// TestNic checks that answered bytes count as left, in the order of sending.
func TestNic(t *testing.T) {
	var n nic
	n.sent = 100
	n.reset(1)
	require.EqualValues(t, 100, n.leftBy(0))
	n.left(3, 300)
	n.left(2, 200) // known already to have left by 3; by 2 is not worth its place
	n.left(4, 250) // not news
	require.EqualValues(t, 100, n.leftBy(2.9))
	require.EqualValues(t, 300, n.leftBy(5))
	n.left(2.5, 400) // so all of 300 had left by then as well
	require.EqualValues(t, 400, n.leftBy(3))
	require.EqualValues(t, 100, n.leftBy(2.4))
	for i := range 10 * nicMarks {
		n.left(float64(10+i), float64(1000+i))
		require.LessOrEqual(t, n.marks.Len(), nicMarks)
		require.EqualValues(t, 1000+i, n.leftBy(float64(10+i)))
	}
	require.Equal(t, n.marks.Front().bytes, n.leftBy(1000), "older ones are forgotten")
}

// TestStallIsNoSlowLink checks that a single answer that is 50 ms late does not make a link look
// slow.
func TestStallIsNoSlowLink(t *testing.T) {
	w := newWorld(5, fast, four(near)...)
	w.load(64<<10, 2*time.Millisecond, time.Second)
	before := w.a.links[1].own
	w.links[1].trip = 50 * time.Millisecond
	w.propose(64 << 10)
	w.links[1].trip = near.trip
	w.run(w.now + 60*time.Millisecond)
	w.load(64<<10, 2*time.Millisecond, 10*time.Millisecond)
	require.Less(t, w.a.links[1].own, 2*before)
	require.False(t, w.a.links[1].private)
}

// TestHeartbeatsPassingByTeachNoCost checks a host that sends heartbeats on connections of their
// own: such heartbeats must not make bytes look free.
func TestHeartbeatsPassingByTeachNoCost(t *testing.T) {
	w := newWorld(5, fast, four(near)...)
	every := inSeconds(4 * (64 << 10) / 3 / fast / 0.9)
	w.load(64<<10, every, time.Second)
	for range 200 {
		w.propose(64 << 10)
		w.propose(64 << 10)
		w.beat()
		w.run(w.now + 2*every)
	}
	require.InEpsilon(t, 1/fast, w.a.nic.cost, 0.15)
}

// TestResendIsRecognized checks that entries sent again are in flight once, not twice.
func TestResendIsRecognized(t *testing.T) {
	a := New(Options{})
	a.Joined(2, true, 0)
	for i := range uint64(10) {
		a.Sent(2, i+1, 1000, time.Duration(i))
	}
	require.EqualValues(t, 10_000, a.links[0].flying)
	a.Sent(2, 6, 1000, 20)
	require.EqualValues(t, 6000, a.links[0].flying)
	a.Acked(2, 6, 0, time.Millisecond)
	require.Zero(t, a.links[0].flying)
	require.Zero(t, a.links[0].queue)
}

// TestManyInFlight: more messages than are told apart are still counted.
func TestManyInFlight(t *testing.T) {
	a := New(Options{})
	a.Joined(2, true, 0)
	for i := range uint64(3 * maxFlying) {
		a.Sent(2, i+1, 1000, time.Duration(i))
	}
	require.EqualValues(t, 3000*maxFlying, a.links[0].flying)
	a.Acked(2, 3*maxFlying, 0, time.Second)
	require.Zero(t, a.links[0].flying)
}

// TestChoiceAllocatesNothing checks that neither a choice nor the calls of an Observer allocate.
func TestChoiceAllocatesNothing(t *testing.T) {
	for _, n := range []int{3, 5, 9} {
		w := newWorld(n, fast, make([]wire, n-1)...)
		for i := range w.links {
			w.links[i] = near
		}
		w.load(64<<10, 2*time.Millisecond, 300*time.Millisecond)
		w.r.Size = 64 << 10
		require.Zero(t, testing.AllocsPerRun(200, func() { step(w) }), "N=%d", n)
	}
}

// step makes all calls of the policy for an entry.
func step(w *world) {
	w.index++
	w.now += time.Millisecond
	w.r.Now, w.r.Index = w.now, w.index
	w.a.Proposed(w.index, w.r.Size, w.now)
	w.a.Assign(w.r, w.units)
	for i, f := range w.r.Followers {
		w.a.Sent(f.ID, w.index, w.units[i]*1000, w.now)
		w.a.Acked(f.ID, w.index, 0, w.now+300*time.Microsecond)
	}
	w.a.Committed(w.index)
}

func BenchmarkAdaptive(b *testing.B) {
	for _, n := range []int{3, 5, 7, 9} {
		links := make([]wire, n-1)
		for i := range links {
			links[i] = near
		}
		w := newWorld(n, fast, links...)
		w.load(64<<10, 2*time.Millisecond, 300*time.Millisecond)
		b.Run(fmt.Sprintf("N=%d/choice", n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				w.a.Assign(w.r, w.units)
			}
		})
		b.Run(fmt.Sprintf("N=%d/entry", n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				step(w)
			}
		})
	}
}

func TestPolicyOfAGroupThatANodeDoesNotLeadIsSmall(t *testing.T) {
	m, policies := NewTrials(nil), make([]*Policy, 1000)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for i := range policies {
		policies[i] = New(Options{Trials: m})
	}
	runtime.ReadMemStats(&after)
	require.Less(t, (after.TotalAlloc-before.TotalAlloc)/uint64(len(policies)), uint64(2<<10))
}

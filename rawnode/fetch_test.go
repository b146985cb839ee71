// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package rawnode_test

import (
	"flag"
	"fmt"
	"io"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weftraft/weft/internal/wire"
	"github.com/weftraft/weft/internal/world"
	"github.com/weftraft/weft/rawnode"
)

// sentSnapshots is a recorder that keeps the snapshots that were sent.
type sentSnapshots struct {
	rawnode.Recorder
	mu   sync.Mutex
	sent []rawnode.SnapshotTimes
}

func (s *sentSnapshots) SnapshotSent(t rawnode.SnapshotTimes) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sent = append(s.sent, t)
}
func (*sentSnapshots) SnapshotRestored(rawnode.SnapshotTimes)                   {}
func (*sentSnapshots) Proposed(rawnode.CommandTimes)                            {}
func (*sentSnapshots) Read(rawnode.ReadPolicy, rawnode.ServedBy, time.Duration) {}

func (s *sentSnapshots) taken() []rawnode.SnapshotTimes {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]rawnode.SnapshotTimes(nil), s.sent...)
}

// behind is a group in which a follower needs a snapshot, of a hundred pieces and more.
type behind struct {
	net              *hub
	hosts            map[uint64]*rawnode.Host
	records          map[uint64]*sentSnapshots
	leader, far, lag uint64 // far is the other member that is complete
	chunks           []wire.Message
	offers           int
}

// lagging runs a group until a follower needs a snapshot. lose is called for each message; the
// messages about snapshots are kept.
func lagging(t *testing.T, takes wire.Kinds, lose func(*behind, wire.Message) bool, f func(*testing.T, *behind)) {
	b := &behind{records: map[uint64]*sentSnapshots{}}
	inBubble(t, 3, func(cfg *rawnode.Config) {
		b.records[cfg.Replica.ID] = &sentSnapshots{}
		cfg.Recorder = b.records[cfg.Replica.ID]
		cfg.Replica.RetainEntries, cfg.ChunkBytes = 5, 10
		cfg.Replica.Boot = 0 // from the clock
	}, func(t *testing.T, net *hub, hosts map[uint64]*rawnode.Host) {
		b.net, b.hosts = net, hosts
		must(t, hosts[1], "first")
		b.leader = hosts[1].Status().Lead
		b.lag = b.leader%3 + 1
		b.far = 6 - b.leader - b.lag
		net.mu.Lock()
		net.takes = takes
		net.lose = func(m wire.Message) bool {
			if c, ok := m.Body.(wire.Chunk); ok && c.Number == 0 {
				b.chunks = append(b.chunks, m)
			}
			if _, ok := m.Body.(wire.Offer); ok {
				b.offers++
			}
			return lose != nil && lose(b, m)
		}
		net.mu.Unlock()
		net.setCut(b.lag, true)
		for i := range 50 {
			must(t, hosts[b.leader], fmt.Sprint("command ", i))
		}
		require.Equal(t, b.leader, hosts[b.leader].Status().Lead)
		net.heal(b.lag)
		f(t, b)
		require.EqualValues(t, 1, hosts[b.lag].Status().Counters.SnapshotsInstalled)
		require.Equal(t, hosts[b.leader].Status().Applied, hosts[b.lag].Status().Applied)
	})
}

// caughtUp waits until the follower has the state.
func (b *behind) caughtUp(t *testing.T, within time.Duration) {
	t.Helper()
	for begin := time.Now(); b.hosts[b.lag].Status().Applied < b.hosts[b.leader].Status().Applied; time.Sleep(bubbleTick) {
		require.Less(t, time.Since(begin), within)
	}
	time.Sleep(time.Second) // the last words arrive
}

// A source ends the streams of a member's earlier life, which it knows by their lower numbers.
func TestStreamsOfSnapshotsAreNumberedFromTheClock(t *testing.T) {
	lagging(t, wire.AllKinds, nil, func(t *testing.T, b *behind) {
		b.caughtUp(t, 10*time.Second)
		const ofReceivers = 1 << 63
		stream := b.chunks[0].Body.(wire.Chunk).Stream
		require.NotZero(t, stream&ofReceivers)
		require.Greater(t, stream&^ofReceivers, uint64(time.Now().Add(-time.Hour).UnixNano()))
	})
}

// A follower fetches its snapshot from the other follower, and the leader sends none.
func TestFollowerFetchesItsSnapshotFromAnotherFollower(t *testing.T) {
	lagging(t, wire.AllKinds, nil, func(t *testing.T, b *behind) {
		b.caughtUp(t, 10*time.Second)
		require.Empty(t, b.records[b.leader].taken())
		sent := b.records[b.far].taken()
		require.Len(t, sent, 1)
		require.NoError(t, sent[0].Err)
		require.Equal(t, b.lag, sent[0].Peer)
		require.Greater(t, sent[0].Bytes, int64(500))
		require.EqualValues(t, 1, b.hosts[b.leader].Status().Counters.SnapshotsSent)
	})
}

// If the leader alone answers, the leader is the source.
func TestFollowerFetchesFromTheLeaderIfNobodyElseAnswers(t *testing.T) {
	lagging(t, wire.AllKinds, func(b *behind, m wire.Message) bool {
		_, fetches := m.Body.(wire.Fetch)
		return fetches && m.To == b.far
	}, func(t *testing.T, b *behind) {
		b.caughtUp(t, 10*time.Second)
		require.Len(t, b.records[b.leader].taken(), 1)
		require.Empty(t, b.records[b.far].taken())
	})
}

// A stream goes on behind the piece that came last, although all pieces of five seconds are lost.
func TestSnapshotIsResumedWhereItBrokeOff(t *testing.T) {
	var begin time.Time
	lost := 0
	lagging(t, wire.AllKinds, func(b *behind, m wire.Message) bool {
		c, ok := m.Body.(wire.Chunk)
		if !ok || c.Number < 40 {
			return false
		}
		if begin.IsZero() {
			begin = time.Now()
		}
		if time.Since(begin) < 5*time.Second {
			lost++
			return true
		}
		return false
	}, func(t *testing.T, b *behind) {
		b.caughtUp(t, 20*time.Second)
		require.NotZero(t, lost)
		require.Len(t, b.chunks, 1, "no second beginning")
		require.Len(t, b.records[b.far].taken(), 1)
	})
}

// The source dies in the middle of the body. The follower begins anew at the leader, and its state
// machine never sees a mixture.
func TestDeadSourceIsReplacedByTheLeader(t *testing.T) {
	dead := false
	lagging(t, wire.AllKinds, func(b *behind, m wire.Message) bool {
		c, ok := m.Body.(wire.Chunk)
		dead = dead || ok && m.From == b.far && c.Number == 40
		return dead && (m.From == b.far || m.To == b.far)
	}, func(t *testing.T, b *behind) {
		b.caughtUp(t, time.Minute)
		require.Len(t, b.chunks, 2)
		require.Equal(t, b.far, b.chunks[0].From)
		require.Equal(t, b.leader, b.chunks[1].From)
		require.EqualValues(t, 1, b.hosts[b.lag].Status().Counters.RestoresFailed)
	})
}

// earlierKinds are those of a version that does not fetch.
const earlierKinds = wire.AllKinds &^ (1<<wire.KindOffer | 1<<wire.KindFetch)

// A member of an earlier version gets its snapshot without being asked.
func TestSnapshotGoesToAnEarlierVersionAsBefore(t *testing.T) {
	lagging(t, earlierKinds, nil, func(t *testing.T, b *behind) {
		b.caughtUp(t, 10*time.Second)
		require.Zero(t, b.offers)
		require.Len(t, b.records[b.leader].taken(), 1)
	})
}

func aboutSnapshots(m wire.Message) bool {
	switch m.Body.(type) {
	case wire.Chunk, wire.ChunkStatus, wire.Offer, wire.Fetch:
		return true
	}
	return false
}

var twiceSeeds = flag.Uint64("twice-seeds", 10, "how many seeds TestSnapshotArrivesThoughItsFramesComeTwiceAndLate runs")

// Frames about snapshots come twice, and late, behind others that were sent after them, with fetching and without.
func TestSnapshotArrivesThoughItsFramesComeTwiceAndLate(t *testing.T) {
	again := 0
	for seed := range *twiceSeeds {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			d := world.NewDraws(seed, 1)
			takes, twice, late := wire.AllKinds, d.Scale(0.02, 0.5), d.Rate(0.5, 0.001, 0.05)
			if seed%2 == 1 {
				takes = earlierKinds
				late = 0 // a connection keeps order, and nobody asks for a piece again
			}
			l := links{out: map[uint64]time.Time{}, in: map[uint64]time.Time{}}
			comes := func(b *behind, m wire.Message, after time.Duration) {
				again++
				time.AfterFunc(after+d.Span(10*time.Microsecond, 5*time.Second), func() { b.hosts[m.To].Receive(m) })
			}
			lagging(t, takes, func(b *behind, m wire.Message) bool {
				b.net.paces = func(m wire.Message) time.Time {
					at := l.pace(m)
					if aboutSnapshots(m) && d.Chance(twice) {
						comes(b, m, time.Until(at))
					}
					return at
				}
				isLate := aboutSnapshots(m) && d.Chance(late)
				if isLate {
					comes(b, m, 0)
				}
				return isLate
			}, func(t *testing.T, b *behind) {
				b.caughtUp(t, time.Minute)
				time.Sleep(10 * time.Second)
				if late == 0 {
					require.Len(t, b.chunks, 1, "no second beginning")
					require.Zero(t, b.hosts[b.lag].Status().Counters.RestoresFailed)
				}
			})
		})
	}
	require.NotZero(t, again)
}

// slowRestore is a state whose Restore takes its time with each piece.
type slowRestore struct {
	*counts
	pause time.Duration
}

// Restore implements rawnode.StateMachine.
func (s slowRestore) Restore(meta rawnode.SnapshotMeta, body io.Reader) error {
	pieces := &slowReader{body, s.pause}
	return s.counts.Restore(meta, pieces)
}

type slowReader struct {
	io.Reader
	pause time.Duration
}

// Read implements io.Reader.
func (r *slowReader) Read(p []byte) (int, error) {
	time.Sleep(r.pause)
	return r.Reader.Read(p[:min(len(p), 10)])
}

// A state machine that takes a piece each second, for a minute and more, is waited for at both ends, and no
// more than a window of pieces is sent ahead of it.
func TestSlowRestoreIsWaitedForAndNotFlooded(t *testing.T) {
	b := &behind{records: map[uint64]*sentSnapshots{}}
	var mu sync.Mutex
	sent := uint64(0)
	inBubble(t, 3, func(cfg *rawnode.Config) {
		b.records[cfg.Replica.ID] = &sentSnapshots{}
		cfg.Recorder = b.records[cfg.Replica.ID]
		cfg.Replica.RetainEntries, cfg.ChunkBytes, cfg.SnapshotTimeout = 5, 10, 20*time.Second
		cfg.StateMachine = slowRestore{counts: newCounts(1), pause: time.Second}
	}, func(t *testing.T, net *hub, hosts map[uint64]*rawnode.Host) {
		must(t, hosts[1], "first")
		leader := hosts[1].Status().Lead
		lag := leader%3 + 1
		net.mu.Lock()
		net.takes = wire.AllKinds
		net.lose = func(m wire.Message) bool {
			if c, ok := m.Body.(wire.Chunk); ok {
				mu.Lock()
				sent = max(sent, c.Number+1)
				mu.Unlock()
			}
			return false
		}
		net.mu.Unlock()
		net.setCut(lag, true)
		for i := range 50 {
			must(t, hosts[leader], fmt.Sprint("command ", i))
		}
		net.heal(lag)
		begin := time.Now()
		for hosts[lag].Status().Counters.SnapshotsInstalled == 0 {
			time.Sleep(time.Second)
			synctest.Wait()
			mu.Lock()
			require.LessOrEqual(t, sent, uint64(time.Since(begin)/time.Second)+20)
			mu.Unlock()
			require.Less(t, time.Since(begin), 10*time.Minute)
		}
		require.Greater(t, time.Since(begin), time.Minute)
		require.Zero(t, hosts[lag].Status().Counters.RestoresFailed)
	})
}

// slowView is a state of which a view takes its time to open.
type slowView struct {
	*counts
	pause time.Duration
}

// Snapshot implements rawnode.StateMachine.
func (s slowView) Snapshot() (rawnode.Snapshot, error) {
	time.Sleep(s.pause)
	return s.counts.Snapshot()
}

// A large state in memory writes a checkpoint before each snapshot, for longer than the time after which a silent source is
// given up. The follower hears that its source lives, and does not go from one source to the next without end.
func TestSourceThatOpensItsStateForLongIsWaitedFor(t *testing.T) {
	inBubble(t, 3, func(cfg *rawnode.Config) {
		cfg.Replica.RetainEntries, cfg.SnapshotTimeout = 5, 20*time.Second
		cfg.StateMachine = slowView{counts: newCounts(1), pause: 2 * time.Minute}
	}, func(t *testing.T, net *hub, hosts map[uint64]*rawnode.Host) {
		must(t, hosts[1], "first")
		leader := hosts[1].Status().Lead
		lag := leader%3 + 1
		net.mu.Lock()
		net.takes = wire.AllKinds
		net.mu.Unlock()
		net.setCut(lag, true)
		for i := range 50 {
			must(t, hosts[leader], fmt.Sprint("command ", i))
		}
		net.heal(lag)
		for begin := time.Now(); hosts[lag].Status().Counters.SnapshotsInstalled == 0; time.Sleep(time.Second) {
			require.Less(t, time.Since(begin), 3*time.Minute)
		}
		require.Zero(t, hosts[lag].Status().Counters.RestoresFailed)
	})
}

// A connection between the leader and a follower that fetches its snapshot breaks, while the group goes on. The follower does
// not begin anew: a snapshot that takes longer than connections last would never arrive.
func TestFetchedSnapshotOutlivesABrokenConnectionToTheLeader(t *testing.T) {
	outlives(t, 5, func(t *testing.T, hosts map[uint64]*rawnode.Host, lead, _, lag uint64) {
		hosts[lead].Unreachable(lag)
		require.Zero(t, hosts[lead].Status().Counters.SnapshotsFailed)
	})
}

// Leadership moves, while the group goes on. The follower does not begin anew as long as the logs of the others go on from
// what it fetches.
func TestFetchedSnapshotOutlivesChangesOfLeaders(t *testing.T) {
	outlives(t, 40, func(t *testing.T, hosts map[uint64]*rawnode.Host, lead, other, _ uint64) {
		require.NoError(t, hosts[lead].TransferLeader(within(10*time.Second), other))
	})
}

// outlives has a follower fetch a snapshot that takes about a minute, and something happen each ten seconds, where other is the
// member that is complete beside the leader. The follower is to begin once.
func outlives(t *testing.T, retain uint64, happens func(t *testing.T, hosts map[uint64]*rawnode.Host, lead, other, lag uint64)) {
	var mu sync.Mutex
	begun := 0
	inBubble(t, 3, func(cfg *rawnode.Config) {
		cfg.Replica.RetainEntries, cfg.ChunkBytes = retain, 10
		cfg.StateMachine = slowRestore{counts: newCounts(1), pause: time.Second}
	}, func(t *testing.T, net *hub, hosts map[uint64]*rawnode.Host) {
		must(t, hosts[1], "first")
		lead := hosts[1].Status().Lead
		lag := lead%3 + 1
		net.mu.Lock()
		net.takes = wire.AllKinds
		net.lose = func(m wire.Message) bool {
			if c, ok := m.Body.(wire.Chunk); ok && c.Number == 0 {
				mu.Lock()
				begun++
				mu.Unlock()
			}
			return false
		}
		net.mu.Unlock()
		net.setCut(lag, true)
		for i := range 50 {
			must(t, hosts[lead], fmt.Sprint("command ", i))
		}
		net.heal(lag)
		for begin := time.Now(); hosts[lag].Status().Counters.SnapshotsInstalled == 0; time.Sleep(10 * time.Second) {
			lead = hosts[lead].Status().Lead
			must(t, hosts[lead], fmt.Sprint("later ", time.Since(begin)))
			happens(t, hosts, lead, 6-lead-lag, lag)
			require.Less(t, time.Since(begin), 10*time.Minute)
		}
		mu.Lock()
		defer mu.Unlock()
		require.Equal(t, 1, begun)
		require.Zero(t, hosts[lag].Status().Counters.RestoresFailed)
	})
}

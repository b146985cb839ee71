// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package rawnode_test

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/internal/wire"
	"github.com/weftraft/weft/rawnode"
	"github.com/weftraft/weft/storage"
)

// The world of a node that restarts: groups at three nodes, of which the third is a learner of most groups and a
// voter of the last, and groups with a load that are not at the third node. A link carries a million bytes a second into a
// node and out of it, in the order in which messages are sent.
const (
	manyGroups  = 48
	votedGroups = 8
	busyGroups  = 4
	restarts    = 3 // the node
	linkRate    = 1_000_000
	windowBytes = 16 * pieceBytes
	pieceBytes  = 4 << 10
	manyTick    = 103 * time.Millisecond
)

// links are the ends of nodes' links.
type links struct {
	mu      sync.Mutex
	out, in map[uint64]time.Time // when the link is free
}

// pace returns when a message arrives. Small messages pass the others.
func (l *links) pace(m wire.Message) time.Time {
	now := time.Now()
	if m.Class() == wire.ClassControl {
		return now.Add(time.Millisecond)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	takes := time.Duration(m.Size()) * time.Second / linkRate
	begins := latest(now, l.out[m.From])
	l.out[m.From] = begins.Add(takes)
	l.in[m.To] = latest(begins, l.in[m.To]).Add(takes)
	return latest(l.out[m.From], l.in[m.To]).Add(time.Millisecond)
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// manyNodes is the world.
type manyNodes struct {
	t       *testing.T
	links   links
	engines map[uint64]*storage.Engine
	budgets map[uint64]*rawnode.CatchUp
	hubs    []*hub // by group, from 0
	states  []map[uint64]*counts
	hosts   []map[uint64]*rawnode.Host
}

func newManyNodes(t *testing.T, budget int64) *manyNodes {
	w := &manyNodes{t: t, links: links{out: map[uint64]time.Time{}, in: map[uint64]time.Time{}}, engines: map[uint64]*storage.Engine{}, budgets: map[uint64]*rawnode.CatchUp{}}
	for id := uint64(1); id <= 3; id++ {
		var err error
		w.engines[id], err = storage.Open("log", storage.Options{FS: vfs.NewMem(), Identity: storage.Identity{Cluster: 9, Node: id}})
		require.NoError(t, err)
		if budget > 0 {
			w.budgets[id], err = rawnode.NewCatchUp(budget)
			require.NoError(t, err)
		}
	}
	for g := range manyGroups + busyGroups {
		w.hubs = append(w.hubs, newHub())
		w.hubs[g].takes = wire.AllKinds
		w.states = append(w.states, map[uint64]*counts{})
		w.hosts = append(w.hosts, map[uint64]*rawnode.Host{})
		for id := uint64(1); id <= 2; id++ {
			w.states[g][id] = newCounts(1)
			w.states[g][id].state.Extra = make([]byte, size(g))
			w.start(g, id)
		}
	}
	return w
}

// size is the size of a group's state: from one window to six.
func size(g int) int { return windowBytes * (1 + g*7%6) }

func votes(g int) bool { return g >= manyGroups-votedGroups && g < manyGroups }

// start starts a node's host of a group.
func (w *manyNodes) start(g int, id uint64) {
	log, err := w.engines[id].Group(uint64(g + 1))
	require.NoError(w.t, err)
	peers := []uint64{1, 2}
	if votes(g) {
		peers = append(peers, restarts)
	}
	if id == restarts && !votes(g) {
		peers = nil
	}
	if w.states[g][id] == nil {
		w.states[g][id] = newCounts(1)
	}
	w.hosts[g][id], err = rawnode.New(rawnode.Config{
		Replica:      rawnode.ReplicaConfig{ID: id, Group: uint64(g + 1), Log: log, Peers: peers, RetainEntries: 5},
		StateMachine: w.states[g][id], Transport: &plug{hub: w.hubs[g], id: id}, TickInterval: manyTick, ChunkBytes: pieceBytes,
		CatchUp: w.budgets[id],
	})
	require.NoError(w.t, err)
}

// fallBehind stops the node, and the others write more than they retain.
func (w *manyNodes) fallBehind() {
	for g := manyGroups; g < len(w.hosts); g++ {
		must(w.t, w.hosts[g][1], "a leader")
	}
	for g := range manyGroups {
		w.start(g, restarts)
		if !votes(g) {
			_, err := w.hosts[g][1].ProposeConfChange(within(time.Minute), &pb.ConfChange{Type: pb.ConfChangeAddLearnerNode.Enum(), NodeId: new(uint64(restarts))})
			require.NoError(w.t, err)
		}
	}
	for g := range manyGroups {
		must(w.t, w.hosts[g][1], "before")
		for begin := time.Now(); !w.complete(g); time.Sleep(manyTick) {
			require.Less(w.t, time.Since(begin), time.Minute, "group %d", g)
		}
		require.NoError(w.t, w.hosts[g][restarts].Stop(within(time.Minute)))
		w.states[g][restarts] = w.states[g][restarts].crashed()
		for i := range 20 {
			must(w.t, w.hosts[g][1], fmt.Sprint(i))
		}
	}
}

// complete reports whether the node has caught up in a group.
func (w *manyNodes) complete(g int) bool {
	return w.hosts[g][restarts].Status().Applied >= w.hosts[g][1].Status().Commit
}

// load calls the leaders of the busy groups until stop, and returns how long each call took.
func (w *manyNodes) load(stop <-chan struct{}) func() []time.Duration {
	var mu sync.Mutex
	var took []time.Duration
	var done sync.WaitGroup
	for g := manyGroups; g < manyGroups+busyGroups; g++ {
		done.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				case <-time.After(20 * time.Millisecond):
				}
				done.Go(func() { // a late call does not delay the next
					begin := time.Now()
					must(w.t, w.hosts[g][w.hosts[g][1].Status().Lead], fmt.Sprint(i))
					mu.Lock()
					took = append(took, time.Since(begin))
					mu.Unlock()
				})
			}
		})
	}
	return func() []time.Duration {
		done.Wait()
		slices.Sort(took)
		return took
	}
}

// outcome is what the restart of a node with many groups took.
type outcome struct {
	all, voted, learnt   time.Duration // until all groups, those with a vote, and half of the others have caught up
	calls, slow, slowest time.Duration // of the load: the median, 99 of 100, and all
	taken                int64         // the most bytes at a time
}

// restart restarts the node, and waits until it has caught up.
func (w *manyNodes) restart() (o outcome) {
	stop := make(chan struct{})
	ended := w.load(stop)
	begin := time.Now()
	for g := range manyGroups {
		w.start(g, restarts)
	}
	var learnt []time.Duration
	behind := map[int]bool{}
	for g := range manyGroups {
		behind[g] = true
	}
	for len(behind) > 0 {
		time.Sleep(20 * time.Millisecond)
		require.Less(w.t, time.Since(begin), time.Minute, "%d groups are behind", len(behind))
		for g := range behind {
			if !w.complete(g) {
				continue
			}
			delete(behind, g)
			o.all = time.Since(begin)
			if votes(g) {
				o.voted = o.all
			} else {
				learnt = append(learnt, o.all)
			}
		}
		if b := w.budgets[restarts]; b != nil {
			o.taken = max(o.taken, b.Taking().UsedBytes)
			for _, b := range w.budgets {
				for _, s := range []rawnode.CatchUpStats{b.Sending(), b.Taking()} {
					require.LessOrEqual(w.t, s.UsedBytes, s.LimitBytes)
					require.GreaterOrEqual(w.t, s.UsedBytes, int64(0))
				}
			}
		}
	}
	close(stop)
	took := ended()
	o.learnt, o.calls, o.slow, o.slowest = learnt[len(learnt)/2], took[len(took)/2], took[len(took)*99/100], took[len(took)-1]
	return o
}

func (w *manyNodes) stop() {
	for g := range w.hosts {
		for _, h := range w.hosts[g] {
			_ = h.Stop(within(0)) // what is under way is cut short
		}
	}
	for _, e := range w.engines {
		require.NoError(w.t, e.Close())
	}
	for _, b := range w.budgets {
		require.Zero(w.t, b.Sending().UsedBytes+b.Taking().UsedBytes)
		require.Zero(w.t, b.Sending().Waiting+b.Taking().Waiting)
	}
}

// restarted returns what a restart takes with a budget; 0 means none.
func restarted(t *testing.T, budget int64) (o outcome) {
	synctest.Test(t, func(t *testing.T) {
		w := newManyNodes(t, budget)
		w.fallBehind()
		for _, h := range w.hubs {
			h.mu.Lock()
			h.paces = w.links.pace
			h.mu.Unlock()
		}
		o = w.restart()
		w.stop()
		time.Sleep(2 * manyTick)
	})
	return o
}

// A node with 48 groups restarts while others write. With a budget, the groups that stop at the next failure are first,
// calls of other groups wait behind the budget at most, and the whole takes no longer.
func TestManyGroupsCatchUpWithinOneBudget(t *testing.T) {
	const budget = 4 * windowBytes
	without, with := restarted(t, 0), restarted(t, budget)
	t.Logf("without a budget %+v", without)
	t.Logf("with a budget    %+v", with)
	require.LessOrEqual(t, with.all, without.all)
	require.Less(t, with.voted, without.voted/2)
	require.Less(t, with.voted, with.learnt, "their hosts were started last")
	require.Less(t, with.slow, without.slow)
	require.Less(t, with.slowest, budget*time.Second/linkRate+200*time.Millisecond)
	require.Greater(t, with.taken, int64(budget/2), "the budget is used")
}

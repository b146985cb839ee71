// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package nodes

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	pb "go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"

	"github.com/weftraft/weft/internal/catchup"
	"github.com/weftraft/weft/internal/wire"
)

// underWay counts the bytes of entries on their way to a node that were committed before they left.
type underWay struct {
	s           *scenario
	to          uint64
	sent        map[[2]uint64][]sentEntries // by sender and group
	bytes, most map[uint64]int              // by sender
	all         int
}

// sentEntries is an append that has left, and is not acknowledged.
type sentEntries struct {
	last  uint64
	bytes int
}

func (s *scenario) watchMissed(to uint64) *underWay {
	u := &underWay{s: s, to: to, sent: map[[2]uint64][]sentEntries{}, bytes: map[uint64]int{}, most: map[uint64]int{}}
	s.net.watch = u.left
	return u
}

func (u *underWay) left(m wire.Message) {
	b, ok := m.RaftBody()
	switch {
	case !ok:
	case b.GetType() == pb.MsgApp && m.To == u.to && len(b.GetEntries()) > 0:
		e := b.GetEntries()
		if e[0].GetIndex() > u.s.node(m.From).members[m.Group].core.State().Commit {
			return
		}
		size := 0
		for i := range e {
			size += proto.Size(e[i])
		}
		u.all += size
		u.count(m.From, size)
		at := [2]uint64{m.From, m.Group}
		u.sent[at] = append(u.sent[at], sentEntries{e[len(e)-1].GetIndex(), size})
	case b.GetType() == pb.MsgAppResp && m.From == u.to && !b.GetReject():
		at := [2]uint64{m.To, m.Group}
		for len(u.sent[at]) > 0 && u.sent[at][0].last <= b.GetIndex() {
			u.count(m.To, -u.sent[at][0].bytes)
			u.sent[at] = u.sent[at][1:]
		}
	}
}

func (u *underWay) count(sender uint64, bytes int) {
	u.bytes[sender] += bytes
	u.most[sender] = max(u.most[sender], u.bytes[sender])
}

// TestMissedEntriesOfManyGroupsShareABudget has a node of many groups come back after it has missed entries in each.
// What is under way to it stays within the budget of each sender. Then another node dies, so that each group needs
// the one that is back: no group waits for the budget any more, and each has a leader and a majority with all
// that was committed within four election timeouts.
func TestMissedEntriesOfManyGroupsShareABudget(t *testing.T) {
	t.Parallel()
	const groups, budget, free, largest = 8, 32 << 10, 16 << 10, 16 << 10
	for seed := *firstSeed; seed < *firstSeed+*placingSeeds/2; seed++ {
		s := newScenario(t, seed, func(p *plan) {
			p.groups, p.think, p.deadline = groups, 10*time.Millisecond, 5*electionTime
			p.smallest, p.largest, p.costs.Sync = largest, largest+1, time.Millisecond
			p.appendBytes, p.catchUp, p.catchUpFree = 4<<10, budget, free
			p.segmentBytes, p.logBytes, p.logCache, p.keepEvery, p.retainBytes = 512<<10, 64<<20, 16<<20, 1000, 64<<20
		})
		for _, g := range s.groups {
			for range 2 {
				s.addClient(g)
			}
		}
		s.pass(2 * electionTime)
		away := s.node(3)
		away.crash(false)
		s.pass(10 * electionTime)
		u := s.watchMissed(away.id)
		away.start()
		s.pass(2 * electionTime)
		window := catchUpWindow * s.plan.appendBytes
		for sender, most := range u.most {
			require.LessOrEqual(t, most, budget+groups*free+(budget/window+1+groups)*(largest+200), "seed %d: under way from node %d", seed, sender)
		}
		var delayed uint64
		for _, n := range s.running() {
			delayed += n.catchUp.Statistics(catchup.Sending).Delayed
		}
		require.NotZero(t, delayed, "seed %d: the budget bounds nothing", seed)
		most, behind := fmt.Sprint(u.most), uint64(0)
		commits := map[*group]uint64{}
		for _, g := range s.groups {
			commits[g] = g.committed
			behind += g.committed - min(g.committed, away.members[g.id].core.State().Commit)
		}
		s.node(2).crash(false)
		died := s.Now()
		s.reaches(4*electionTime, "each group has caught up", func() bool {
			return !slices.ContainsFunc(s.groups, func(g *group) bool { return g.leading() == nil || away.members[g.id].core.State().Commit < commits[g] })
		})
		t.Logf("seed %d: %d KiB were missed, at most %s bytes under way by sender, %d waits; %d entries behind when another node died, all caught up %v later",
			seed, u.all>>10, most, delayed, behind, s.Now()-died)
		s.node(2).start()
		s.end()
	}
}

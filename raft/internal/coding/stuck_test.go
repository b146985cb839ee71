// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package coding

import (
	"fmt"
	"maps"
	"testing"

	"github.com/stretchr/testify/require"
	pb "go.etcd.io/raft/v3/raftpb"
	"go.etcd.io/raft/v3/tracker"

	"github.com/weftraft/weft/ecraft"
	"github.com/weftraft/weft/raft/internal/extend"
)

// A leader sends a member that is stuck a snapshot when it has applied what the member's
// log may have: what it was sent in this term, acknowledged or not, and at least the first
// entry of the term. Until then the member is sent entries up to there, and none behind. A
// member that is not there is sent nothing.
func TestSnapshotsForTheStuck(t *testing.T) {
	f := newFake(t)
	f.snapshot = &pb.Snapshot{Metadata: &pb.SnapshotMetadata{Index: new(uint64(9))}}
	l := f.leads()
	first := l.stuck.first
	f.proposes(text(8), text(8), text(8))
	f.committed = first
	l.sent(2, f.entries[first-1:first+1])
	l.accounts.account(2).stuck = true
	asked := func(applied uint64) (n int) {
		f.applied = applied
		l.stuck.serve(l.slots.members, l.forms.blocked)
		for _, e := range f.perform() {
			if e.Do == extend.Snapshot {
				require.Equal(t, uint64(2), e.To)
				n++
			}
		}
		return n
	}
	require.Zero(t, asked(first))
	require.Equal(t, first+1, l.stuck.mostFor(2))
	require.Equal(t, 1, asked(first+1))
	f.members.Progress[2].State = tracker.StateSnapshot
	require.Zero(t, asked(first+1), "it is on its way")
	f.members.Progress[2].State = tracker.StateProbe
	f.Unreachable(2)
	require.Zero(t, asked(first+1), "it is not there")
	f.heard(2)
	delete(l.stuck.sentTo, 2)
	require.Zero(t, asked(first-1))
	require.Equal(t, 1, asked(first))
}

// Entries are held back from a member that is stuck for half of the time, in spans that
// grow up to a bound.
func TestSpansOfHoldingBack(t *testing.T) {
	var spans []int
	for i, last := 0, false; i < 2000; i++ {
		held := holdsBack(i)
		if i == 0 || held != last {
			spans = append(spans, 0)
		}
		spans[len(spans)-1]++
		last = held
	}
	require.True(t, holdsBack(0))
	require.Equal(t, []int{1, 1, 2, 2, 4, 4, 8, 8, 16, 16, 32, 32, 64, 64, 64, 64}, spans[:16])
}

// A leader is to apply an entry that nobody has any more, and to complete many others,
// which nobody has either, for a member that lags. They are more than it may have on order
// at a time. It asks for its own all the same, so it finds that it is stuck, and can hand
// over.
func TestStuckLeaderKnowsThatItIs(t *testing.T) {
	for _, tt := range []struct{ memory, size int }{{8 << 10, 2000}, {64 << 20, 1 << 20}} {
		t.Run(fmt.Sprint(tt.memory), func(t *testing.T) {
			f := newFake(t, func(c *Config) { c.Memory = tt.memory })
			f.follow(2)
			e := coded(ecraft.ID{Term: 2, Index: 1}, make([]byte, tt.size))
			for i := uint64(1); i <= maxWanted+1; i++ {
				f.takes(i, named(ecraft.ID{Term: 2, Index: i}, e.GetData()))
			}
			f.applied = maxWanted
			f.Applied(maxWanted)
			f.leads()
			for tick := 0; ; tick++ {
				if _, stuck := f.wants.stuckAt(); stuck {
					break
				}
				require.Less(t, tick, 300)
				for _, m := range f.sent { // of the tick before, and nobody has anything
					if m.GetType() == MsgUnitsAsk {
						require.NoError(t, f.Step(f.nothingOf(m)))
					}
				}
				f.wants.wantAhead(f.entries[:maxWanted]) // as each append to the member that lags does
				f.sent = nil
				f.Tick()
				f.perform()
			}
			require.Len(t, f.payloads.wanted, maxWanted)
			at, _ := f.wants.stuckAt()
			require.Equal(t, uint64(maxWanted+1), at)
			asked := map[uint64]int{}
			for range f.cfg.ElectionTick {
				f.Tick()
				for _, e := range f.perform() {
					if e.Do == extend.Probe {
						asked[e.To]++
					}
				}
			}
			require.Equal(t, map[uint64]int{2: 1, 3: 1}, asked, "reports of those who may take over may be lost")
		})
	}
}

// nothingOf is the answer of a member that has nothing of what it is asked for.
func (f *fake) nothingOf(ask *pb.Message) *pb.Message {
	from := ask.GetTo()
	answer := &pb.Message{Type: MsgUnits.Enum(), From: &from, To: &f.id, Context: []byte{forAnswer}}
	for _, e := range ask.GetEntries() {
		answer.Entries = append(answer.Entries, named(idOf(e), nil))
	}
	return answer
}

// Many members lag, and their carriers need all that is wanted. The next entry for one of them is
// wanted all the same: nothing may come before it.
func TestNextEntryIsWantedHoweverManyAre(t *testing.T) {
	const n = 2*maxWanted + 2
	f := newFake(t)
	f.follow(2)
	for i := uint64(1); i <= n; i++ {
		f.takes(i, coded(ecraft.ID{Term: 2, Index: i}, text(80)))
	}
	f.applied = n
	f.Applied(n)
	f.leads()
	f.wants.wantAhead(f.entries[:maxWanted])
	f.wants.wantAhead(f.entries[maxWanted : n-2])
	f.wants.wantAhead(f.entries[n-2:])
	require.Len(t, f.payloads.wanted, n-1)
	require.NotContains(t, f.payloads.wanted, uint64(n))
}

// A stuck member is removed, and another comes under its id, which does not code and so never reports. Nothing is held
// back from it.
func TestNothingIsHeldBackFromTheNextMemberUnderAnId(t *testing.T) {
	f := newFake(t)
	f.join(4, true)
	l := f.leads()
	f.heard(4)
	l.accounts.account(4).stuck = true
	l.stuck.serve(l.slots.members, l.forms.blocked)
	require.NotEqual(t, uint64(noLimit), l.stuck.mostFor(4))
	with, without := f.members.Progress, maps.Clone(f.members.Progress)
	delete(without, 4)
	f.members.Progress = without
	f.Switched(with)
	f.members.Progress = with
	f.Switched(without)
	require.Equal(t, uint64(noLimit), l.stuck.mostFor(4))
}

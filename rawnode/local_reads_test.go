// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package rawnode_test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/internal/wire"
	"github.com/weftraft/weft/leases"
	"github.com/weftraft/weft/raft"
	"github.com/weftraft/weft/rawnode"
	"github.com/weftraft/weft/storage"
)

// bubbleClock is the time of a bubble of testing/synctest.
type bubbleClock struct{ start time.Time }

func (c bubbleClock) Now() time.Duration { return time.Since(c.start) }

// leaving looks at everything that leaves a host while a turn lasts.
type leaving struct {
	rawnode.Transport
	host atomic.Pointer[rawnode.Host]

	mu    sync.Mutex
	seen  map[string]int // of what left
	wrong []string       // what left before its permit was out
}

func (l *leaving) look(what string) {
	h := l.host.Load()
	if h == nil {
		return
	}
	current := h.PermitIsCurrent()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.seen[what]++
	if !current {
		l.wrong = append(l.wrong, what)
	}
}

func (l *leaving) Send(messages []wire.Message) {
	for _, m := range messages {
		b, ok := m.Body.(wire.Raft)
		if !ok {
			continue
		}
		what := fmt.Sprint(b.GetType())
		if c := b.GetContext(); b.GetType() == raft.MsgLeases && c[0] == 'l' {
			if q, err := leases.ParseMessage(c[1:]); err == nil && q.Confirm.Counter > 0 {
				what = "confirmation"
			}
		}
		l.look(what)
	}
	l.Transport.Send(messages)
}

// leavingLog is the part of leaving that is a log.
type leavingLog struct {
	*storage.Group
	l *leaving
}

func (g leavingLog) TryAppend(w storage.Write, done func(error)) error {
	g.l.look("write")
	return g.Group.TryAppend(w, done)
}

// An acknowledgement, a commit index, a vote or the confirmation of a revocation that is out
// before the permit is withdrawn or narrowed lets this node answer what others have changed
// since.
func TestNothingLeavesAHostBeforeItsPermit(t *testing.T) {
	all := map[uint64]*leaving{}
	inBubble(t, 3, func(cfg *rawnode.Config) {
		l := &leaving{Transport: cfg.Transport, seen: map[string]int{}}
		log, ok := cfg.Replica.Log.(*storage.Group)
		require.True(t, ok)
		all[cfg.Replica.ID], cfg.Transport, cfg.Replica.Log = l, l, leavingLog{log, l}
		cfg.Replica.Clock = bubbleClock{time.Now().Add(-time.Hour)}
		cfg.Replica.Leases = &raft.Leases{Lease: 300 * time.Millisecond, Fail: 100 * time.Millisecond,
			Wanted: []leases.Want{{Nodes: []leases.NodeID{leases.AllVoters}}}}
	}, func(t *testing.T, net *hub, hosts map[uint64]*rawnode.Host) {
		for id, h := range hosts {
			all[id].host.Store(h)
		}
		for round := range 20 {
			for id := uint64(1); id <= 3; id++ {
				_, err := hosts[id].Propose(within(time.Minute), fmt.Append(nil, round))
				require.NoError(t, err)
				_, err = hosts[id].Read(within(time.Minute))
				require.NoError(t, err)
			}
			lead := hosts[1].Status().Lead
			switch round % 4 {
			case 0: // a responder goes, and comes back in the next round
				require.NoError(t, hosts[lead].SetResponders(within(time.Minute), nil))
			case 1:
				require.NoError(t, hosts[lead].SetResponders(within(time.Minute), []leases.Want{{Nodes: []leases.NodeID{leases.AllVoters}}}))
			case 2:
				require.NoError(t, hosts[lead].TransferLeader(within(time.Minute), lead%3+1))
			case 3:
				net.setCut(lead, true)
				time.Sleep(50 * bubbleTick)
				net.setCut(lead, false)
			}
			time.Sleep(20 * bubbleTick)
		}
		var permitted uint64
		for _, h := range hosts {
			permitted += h.Status().Counters.ReadsByPermit
		}
		require.NotZero(t, permitted)
	})
	total := map[string]int{}
	for id, l := range all {
		require.Empty(t, l.wrong, "node %d", id)
		for what, n := range l.seen {
			total[what] += n
		}
	}
	for _, what := range []string{"write", "confirmation", pb.MsgApp.String(), pb.MsgAppResp.String(), pb.MsgVoteResp.String(), pb.MsgVote.String()} {
		require.NotZero(t, total[what], "%v", total)
	}
}

// A host that is told to stop, or has failed, answers nothing more, though its lease holds.
func TestHostThatEndsAnswersNoReads(t *testing.T) {
	var sent atomic.Int64
	members := leaseGroup(t, &sent)
	leader(t, members[1])
	stopped, failed := members[1], members[2]
	stable(t, stopped)
	stable(t, failed)
	require.NoError(t, stopped.host.Stop(within(20*time.Second)))
	_, err := stopped.host.Read(within(time.Second))
	require.ErrorIs(t, err, rawnode.ErrStopped)

	failed.sm.mu.Lock()
	failed.sm.fail = fmt.Errorf("the disk is gone")
	failed.sm.mu.Unlock()
	_, _ = failed.host.Propose(within(20*time.Second), []byte("x"))
	<-failed.host.Done()
	_, err = failed.host.Read(within(time.Second))
	require.ErrorIs(t, err, rawnode.ErrFailed)
}

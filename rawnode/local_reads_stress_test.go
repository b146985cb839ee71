// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package rawnode_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weftraft/weft/internal/wire"
	"github.com/weftraft/weft/leases"
	"github.com/weftraft/weft/raft"
	"github.com/weftraft/weft/rawnode"
)

// cuts are the nodes that nothing comes from or to.
type cuts [4]atomic.Bool

// cutTransport loses the messages of nodes that are cut off.
type cutTransport struct {
	rawnode.Transport
	cuts *cuts
}

func (c cutTransport) Send(messages []wire.Message) {
	var kept []wire.Message
	for _, m := range messages {
		if !c.cuts[m.From].Load() && !c.cuts[m.To].Load() {
			kept = append(kept, m)
		}
	}
	c.Transport.Send(kept)
}

// counter is what clients have seen of a command, whose results count 1, 2, 3 and so on. Such
// a history is linearizable if every operation returns no less than each operation that
// ended before it began, a write returns more than that, and nothing returns a count that no
// write can have reached.
type counter struct {
	name  string
	seen  atomic.Int64 // the highest result of an operation that has ended
	begun atomic.Int64 // writes
}

// check returns what is wrong with an operation, given what was seen when it began.
func (c *counter) check(what string, value, least int64) error {
	if most := c.begun.Load(); value < least || value > most {
		return fmt.Errorf("%s of %s returns %d; it has to see %d at least, and %d writes have begun", what, c.name, value, least, most)
	}
	for seen := c.seen.Load(); seen < value && !c.seen.CompareAndSwap(seen, value); seen = c.seen.Load() {
	}
	return nil
}

func (c *counter) write(h *rawnode.Host) error {
	least := c.seen.Load()
	c.begun.Add(1)
	res, err := h.Propose(within(2*time.Second), []byte(c.name))
	var call *rawnode.CallError
	if errors.As(err, &call) {
		return nil // nobody knows its result
	}
	if err != nil {
		return err
	}
	n, ok := res.Value.(int)
	if !ok {
		return fmt.Errorf("the result is %T", res.Value)
	}
	return c.check("a write", int64(n), least+1)
}

func (c *counter) read(m *member) error {
	least := c.seen.Load()
	o := rawnode.ReadOptions{Spans: []leases.Span{leases.KeySpan(c.name)}}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel() // at once: reads are so many that their contexts would take gigabytes until they end
	if _, err := m.host.ReadWith(ctx, o); err != nil {
		return nil // not answered in time
	}
	return c.check(fmt.Sprintf("a read at node %d", m.id), int64(m.sm.times(c.name)), least)
}

// Readers at all nodes, and writers, see one order of what happened, while responders come and
// go, leadership moves, and nodes are cut off for longer than their leases.
func TestReadsBetweenTurnsAreLinearizable(t *testing.T) {
	var cut cuts
	members := group(t, rawnode.Weft, 3, func(cfg *rawnode.Config) {
		cfg.Transport = cutTransport{cfg.Transport, &cut}
		cfg.Replica.Leases = &raft.Leases{Lease: 400 * time.Millisecond, Fail: 150 * time.Millisecond, Hold: 50 * time.Millisecond,
			Wanted: []leases.Want{{Nodes: []leases.NodeID{leases.AllVoters}}},
			Spans:  func(data []byte) []leases.Span { return []leases.Span{leases.KeySpan(string(data))} }}
	})
	leader(t, members[1])
	counters := []*counter{{name: "a"}, {name: "b"}, {name: "c"}}

	var stop atomic.Bool
	var clients sync.WaitGroup
	wrong := make(chan error, 100)
	run := func(do func(i int) error) {
		clients.Go(func() {
			for i := 0; !stop.Load(); i++ {
				if err := do(i); err != nil {
					wrong <- err
					return
				}
				runtime.Gosched() // two processors have all to do
			}
		})
	}
	for id, m := range members {
		run(func(i int) error { return counters[i%2].write(m.host) }) // nobody writes c for long
		for r := range 2 {
			run(func(i int) error { return counters[(i+r)%3].read(m) })
		}
		run(func(i int) error {
			if i%100 == 0 && id == 1 {
				return counters[2].write(m.host)
			}
			return counters[2].read(m)
		})
	}
	permitted := func(id uint64) uint64 { return members[id].host.Status().Counters.ReadsByPermit }
	for round := range uint64(8) {
		disturb(t, members, &cut, round, counters[0])
		for id := range members {
			want := permitted(id) + 10
			require.Eventually(t, func() bool { return permitted(id) >= want || len(wrong) > 0 }, time.Minute, time.Millisecond, "node %d answers no more", id)
		}
	}
	stop.Store(true)
	clients.Wait()
	close(wrong)
	for err := range wrong {
		t.Error(err)
	}
	var total rawnode.Counters
	for _, m := range members {
		c := m.host.Status().Counters
		total.ReadsByLease += c.ReadsByLease
		total.ReadsByRoster += c.ReadsByRoster
		total.ReadsByPermit += c.ReadsByPermit
		total.Reads += c.Reads
	}
	t.Logf("writes %d, %d and %d; reads %d, %d by permit, %d by roster, %d by lease", counters[0].seen.Load(), counters[1].seen.Load(), counters[2].seen.Load(),
		total.Reads, total.ReadsByPermit, total.ReadsByRoster, total.ReadsByLease)
	require.NotZero(t, total.ReadsByLease)
	require.NotZero(t, total.ReadsByRoster)
}

// disturb does one thing to a group under load, and ends when the group is well again.
func disturb(t *testing.T, members map[uint64]*member, cut *cuts, round uint64, watched *counter) {
	lead := members[1].host.Status().Lead
	if lead == 0 {
		return
	}
	follower := lead%3 + 1
	progress := func() {
		was := watched.seen.Load()
		require.Eventually(t, func() bool { return watched.seen.Load() > was+10 }, time.Minute, time.Millisecond, "no write ends")
	}
	off := follower
	switch round % 4 {
	case 0:
		_ = members[lead].host.SetResponders(within(time.Second), nil) // it may lead no more
		progress()
		require.Eventually(t, func() bool {
			at := members[members[1].host.Status().Lead]
			return at != nil && at.host.SetResponders(within(time.Second), []leases.Want{{Nodes: []leases.NodeID{leases.AllVoters}}}) == nil
		}, time.Minute, time.Millisecond)
		return
	case 1:
		_ = members[lead].host.TransferLeader(within(5*time.Second), follower)
		progress()
		return
	case 2:
		off = lead
	}
	cut[off].Store(true)
	progress() // without it: its lease has ended, or another leads
	cut[off].Store(false)
	progress()
}

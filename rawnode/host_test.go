// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package rawnode_test

import (
	"bytes"
	"context"
	"encoding/gob"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/internal/ports"
	"github.com/weftraft/weft/internal/replica"
	"github.com/weftraft/weft/rawnode"
	"github.com/weftraft/weft/rawnode/transport"
	"github.com/weftraft/weft/storage"
)

// counts is a StateMachine that counts how often each command was applied. Its durable index lags
// behind its applied index, as in a database that flushes at intervals.
type counts struct {
	mu      sync.Mutex
	state   countState
	flushed countState
	every   uint64 // indexes between two flushes
	fail    error  // the error of the next Apply
}

type countState struct {
	Index uint64
	Host  []byte
	N     map[string]int
	Extra []byte // to make snapshots large
}

func newCounts(every uint64) *counts {
	return &counts{every: every, state: countState{N: map[string]int{}}}
}

// crashed returns the state that survives a crash.
func (c *counts) crashed() *counts {
	c.mu.Lock()
	defer c.mu.Unlock()
	fresh := newCounts(c.every)
	fresh.state, fresh.flushed = c.flushed.clone(), c.flushed.clone()
	return fresh
}

func (s countState) clone() countState {
	n := map[string]int{}
	for k, v := range s.N {
		n[k] = v
	}
	s.N = n
	return s
}

func (c *counts) Load() (uint64, []byte, error) { return c.state.Index, c.state.Host, nil }

func (c *counts) Apply(b rawnode.Batch) ([]any, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.fail != nil {
		return nil, c.fail
	}
	var results []any
	for _, cmd := range b.Commands {
		c.state.N[string(cmd)]++
		results = append(results, c.state.N[string(cmd)])
	}
	c.state.Index, c.state.Host = b.Index, b.Host
	if b.Index >= c.flushed.Index+c.every {
		c.flushed = c.state.clone()
	}
	return results, nil
}

func (c *counts) Durable() (uint64, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.flushed.Index, nil
}

type countSnapshot struct {
	rawnode.SnapshotMeta
	io.Reader
}

func (s countSnapshot) Meta() rawnode.SnapshotMeta { return s.SnapshotMeta }
func (s countSnapshot) Close() error               { return nil }

func (c *counts) Snapshot() (rawnode.Snapshot, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var b bytes.Buffer
	err := gob.NewEncoder(&b).Encode(c.state)
	return countSnapshot{rawnode.SnapshotMeta{Index: c.state.Index, Host: c.state.Host}, &b}, err
}

func (c *counts) Restore(meta rawnode.SnapshotMeta, body io.Reader) error {
	b, err := io.ReadAll(body)
	if err != nil {
		return err
	}
	var s countState
	if err := gob.NewDecoder(bytes.NewReader(b)).Decode(&s); err != nil {
		return err
	}
	if s.Index != meta.Index || !bytes.Equal(s.Host, meta.Host) {
		return fmt.Errorf("the body is of index %d, its header of %d", s.Index, meta.Index)
	}
	if s.N == nil {
		s.N = map[string]int{}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.state, c.flushed = s, s.clone()
	return nil
}

func (c *counts) times(cmd string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.state.N[cmd]
}

func (c *counts) commands() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.state.N)
}

func (c *counts) extra() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.state.Extra)
}

// member is a whole node on a crashable file system.
type member struct {
	t         *testing.T
	id        uint64
	core      replica.NewCore
	addresses map[uint64]string
	peers     []uint64
	fs        *vfs.MemFS
	engine    *storage.Engine
	transport *transport.TCP
	sm        *counts
	host      *rawnode.Host
	killed    atomic.Bool
	up        sync.RWMutex
	adjust    func(*rawnode.Config)
}

const hostTick = 10 * time.Millisecond

func (m *member) start(listener net.Listener) {
	m.t.Helper()
	var err error
	m.killed.Store(false)
	m.engine, err = storage.Open("log", storage.Options{FS: m.fs, Identity: storage.Identity{Cluster: 9, Node: m.id}})
	require.NoError(m.t, err)
	group, err := m.engine.Group(1)
	require.NoError(m.t, err)
	m.transport, err = transport.New(transport.Config{Cluster: 9, Node: m.id, Listener: listener, Listen: m.addresses[m.id], Peers: m.addresses})
	require.NoError(m.t, err)
	cfg := rawnode.Config{
		Replica:      rawnode.ReplicaConfig{ID: m.id, Group: 1, Core: m.core, Log: group, Peers: m.peers, ElectionTick: 20},
		StateMachine: m.sm, Transport: m.transport, TickInterval: hostTick,
	}
	if m.adjust != nil {
		m.adjust(&cfg)
	}
	m.host, err = rawnode.New(cfg)
	require.NoError(m.t, err)
}

// stop ends the node in good order.
func (m *member) stop() {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	_ = m.host.Stop(ctx) // calls may be cut short
	_ = m.transport.Close()
	require.NoError(m.t, m.engine.Close())
}

// kill ends the node as a loss of power does.
func (m *member) kill(seed int64) {
	m.killed.Store(true)
	_ = m.transport.Close() // from here on the node sends nothing
	survivor := m.fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 50, RNG: newRand(seed)})
	state := m.sm.crashed()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_ = m.host.Stop(ctx)
	_ = m.engine.Close()
	m.fs, m.sm = survivor, state
}

// group starts members 1 to n.
func group(t *testing.T, core replica.NewCore, n uint64, adjust func(*rawnode.Config)) map[uint64]*member {
	addresses, listeners := map[uint64]string{}, map[uint64]net.Listener{}
	var ids []uint64
	free, err := ports.Free(int(n)) // a member that restarts needs its port again
	require.NoError(t, err)
	for id := uint64(1); id <= n; id++ {
		listeners[id], err = net.Listen("tcp", free[id-1])
		require.NoError(t, err)
		addresses[id] = free[id-1]
		ids = append(ids, id)
	}
	members := map[uint64]*member{}
	for _, id := range ids {
		m := &member{t: t, id: id, core: core, addresses: addresses, peers: ids, fs: vfs.NewCrashableMem(), sm: newCounts(10), adjust: adjust}
		m.start(listeners[id])
		members[id] = m
	}
	t.Cleanup(func() {
		for _, m := range members {
			if !m.killed.Load() {
				m.stop()
			}
		}
	})
	return members
}

func within(d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), d)
	time.AfterFunc(d+time.Minute, cancel) // long after ctx has ended by its deadline
	return ctx
}

// must proposes, and waits until the command is applied. A node that gets a snapshot while must
// waits does not see the result, but knows that the command was applied.
func must(t *testing.T, h *rawnode.Host, cmd string) {
	t.Helper()
	if _, err := h.Propose(within(20*time.Second), []byte(cmd)); !errors.Is(err, rawnode.ErrSuperseded) {
		require.NoError(t, err)
	}
}

// leader waits until a member knows the leader.
func leader(t *testing.T, m *member) uint64 {
	t.Helper()
	_, err := m.host.Read(within(20 * time.Second))
	require.NoError(t, err)
	return m.host.Status().Lead
}

func bothLibraries(t *testing.T, f func(t *testing.T, core replica.NewCore)) {
	t.Run("weft", func(t *testing.T) { f(t, rawnode.Weft) })
	t.Run("upstream", func(t *testing.T) { f(t, rawnode.Upstream) })
}

func TestHosts(t *testing.T) {
	bothLibraries(t, func(t *testing.T, core replica.NewCore) {
		members := group(t, core, 3, nil)
		var wg sync.WaitGroup
		for id, m := range members {
			for client := range 8 {
				wg.Go(func() {
					for i := range 20 {
						cmd := fmt.Sprintf("%d/%d/%d", id, client, i)
						res, err := m.host.Propose(within(20*time.Second), []byte(cmd))
						if err != nil || res.Value != 1 || res.Index == 0 {
							t.Errorf("propose %s: %v, %v", cmd, res, err)
						}
					}
				})
			}
		}
		wg.Wait()
		for id, m := range members {
			_, err := m.host.Read(within(20 * time.Second))
			require.NoError(t, err)
			require.Equal(t, 1, m.sm.times("1/7/19"), "node %d", id)
			require.Equal(t, 3*8*20, m.sm.commands())
		}
		old := members[leader(t, members[1])]
		require.NoError(t, old.host.Stop(within(10*time.Second)))
		_, err := old.host.Propose(context.Background(), []byte("late"))
		require.ErrorIs(t, err, rawnode.ErrStopped)
		require.ErrorIs(t, err, rawnode.ErrRefused)
		for id, m := range members {
			if m != old {
				must(t, m.host, fmt.Sprint("after ", id))
			}
		}
	})
}

// Nodes lose power, one after another, under load. No acknowledged command is lost or applied
// twice.
func TestHostsLosePower(t *testing.T) {
	bothLibraries(t, func(t *testing.T, core replica.NewCore) {
		members := group(t, core, 3, func(c *rawnode.Config) { c.Replica.RetainEntries = 40 })
		acked := sync.Map{}
		stop := make(chan struct{})
		var wg sync.WaitGroup
		for id := range members {
			for client := range 3 {
				wg.Go(func() {
					for i := 0; ; i++ {
						select {
						case <-stop:
							return
						default:
						}
						cmd := fmt.Sprintf("%d/%d/%d", id, client, i)
						members[id].up.RLock() // clients wait while their node is down
						h, down := members[id].host, &members[id].killed
						members[id].up.RUnlock()
						if _, err := h.Propose(within(2*time.Second), []byte(cmd)); err == nil && !down.Load() {
							acked.Store(cmd, true)
						}
					}
				})
			}
		}
		rounds := 6
		if testing.Short() {
			rounds = 2
		}
		for round := range rounds {
			must(t, members[1].host, fmt.Sprint("round ", round))
			victim := members[leader(t, members[2])]
			if round%2 == 1 {
				victim = members[uint64(round%3+1)]
			}
			victim.up.Lock()
			victim.kill(int64(round))
			other := members[victim.id%3+1]
			for i := range 50 {
				must(t, other.host, fmt.Sprintf("while %d is down %d", round, i))
			}
			victim.start(nil)
			victim.up.Unlock()
			must(t, victim.host, fmt.Sprint("back ", round))
		}
		close(stop)
		wg.Wait()
		must(t, members[1].host, "end")
		total := 0
		for _, m := range members {
			_, err := m.host.Read(within(20 * time.Second))
			require.NoError(t, err)
			acked.Range(func(cmd, _ any) bool {
				require.Equal(t, 1, m.sm.times(cmd.(string)), "node %d, %v", m.id, cmd)
				total++
				return true
			})
			require.Equal(t, 1, m.sm.times("while 0 is down 49"))
		}
		require.NotZero(t, total)
	})
}

// A node that was away for long gets the state as a snapshot, in pieces.
func TestSnapshotIsStreamed(t *testing.T) {
	bothLibraries(t, func(t *testing.T, core replica.NewCore) {
		members := group(t, core, 3, func(c *rawnode.Config) {
			c.Replica.RetainEntries, c.ChunkBytes = 5, 64<<10
		})
		leader(t, members[1])
		members[3].kill(1)
		for _, id := range []uint64{1, 2} {
			sm := members[id].sm
			sm.mu.Lock()
			sm.state.Extra = bytes.Repeat([]byte("large "), 1<<20)
			sm.mu.Unlock()
		}
		for i := range 60 {
			must(t, members[1].host, fmt.Sprint(i))
		}
		members[3].start(nil)
		must(t, members[3].host, "back")
		require.Equal(t, 1, members[3].sm.times("30"))
		require.Equal(t, uint64(1), members[3].host.Status().Counters.SnapshotsInstalled)
		require.Equal(t, 6<<20, members[3].sm.extra())
		var bulk uint64
		for _, classes := range members[3].transport.Stats().Peers {
			bulk += classes[2].ReceivedBytes
		}
		require.Greater(t, bulk, uint64(6<<20))
	})
}

func TestMembersChange(t *testing.T) {
	bothLibraries(t, func(t *testing.T, core replica.NewCore) {
		members := group(t, core, 3, nil)
		must(t, members[1].host, "x")
		l, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		addresses := map[uint64]string{4: l.Addr().String()}
		for id, m := range members {
			addresses[id] = m.addresses[id]
			m.transport.SetPeer(4, l.Addr().String())
		}
		for _, cc := range []pb.ConfChangeI{nil, (*pb.ConfChange)(nil), (*pb.ConfChangeV2)(nil), &pb.ConfChange{}} {
			_, err := members[2].host.ProposeConfChange(within(20*time.Second), cc)
			require.ErrorIs(t, err, rawnode.ErrConfChange)
		}
		_, err = members[2].host.ProposeConfChange(within(20*time.Second), &pb.ConfChange{Type: pb.ConfChangeAddNode.Enum(), NodeId: new(uint64(44))})
		require.ErrorIs(t, err, rawnode.ErrUnsafeChange)
		require.ErrorContains(t, err, "nodes [44] would get a vote and have not answered")

		m := &member{t: t, id: 4, core: core, addresses: addresses, fs: vfs.NewCrashableMem(), sm: newCounts(10)}
		m.start(l)
		members[4] = m
		conf, err := members[2].host.ProposeConfChange(within(20*time.Second), &pb.ConfChange{Type: pb.ConfChangeAddNode.Enum(), NodeId: new(uint64(4))})
		require.NoError(t, err)
		require.Equal(t, []uint64{1, 2, 3, 4}, conf.GetVoters())
		must(t, m.host, "from the new one")
		require.Equal(t, 1, m.sm.times("x"))
		leader(t, members[1])               // after this call member 1 has applied the change
		require.Eventually(t, func() bool { // on a busy machine another may lead a moment later
			return members[1].host.TransferLeader(within(20*time.Second), 4) == nil && members[1].host.Status().Lead == 4
		}, time.Minute, hostTick)
	})
}

// Calls at a node without a majority end at their deadline, and their errors give the reason.
func TestCallsAtMinorityEndAtDeadlineWithReason(t *testing.T) {
	members := group(t, rawnode.Weft, 3, nil)
	leader(t, members[1])
	members[2].kill(1)
	members[3].kill(1)
	h := members[1].host
	for h.Status().Lead != 0 { // until the host notices the silence
		_, _ = h.Read(within(5 * hostTick))
	}
	_, err := h.Propose(within(20*hostTick), []byte("x"))
	require.ErrorIs(t, err, rawnode.ErrNoLeader)
	require.ErrorIs(t, err, rawnode.ErrRefused)
	_, err = h.Read(within(20 * hostTick))
	require.ErrorIs(t, err, rawnode.ErrNoLeader)
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(errors.New("the user went away"))
	_, err = h.Propose(ctx, []byte("x"))
	require.ErrorContains(t, err, "the user went away")
}

// A state machine or a log that fails stops the host, and Err gives the reason.
func TestFailuresStopTheHost(t *testing.T) {
	members := group(t, rawnode.Weft, 1, nil)
	m := members[1]
	must(t, m.host, "x")
	m.sm.mu.Lock()
	m.sm.fail = errors.New("disk full")
	m.sm.mu.Unlock()
	_, err := m.host.Propose(within(20*time.Second), []byte("y"))
	require.ErrorIs(t, err, rawnode.ErrUnknown)
	require.ErrorIs(t, err, rawnode.ErrFailed)
	require.ErrorContains(t, err, "disk full")
	<-m.host.Done()
	_, err = m.host.Read(context.Background())
	require.ErrorIs(t, err, rawnode.ErrFailed)
	require.ErrorIs(t, m.host.Err(), rawnode.ErrFailed)

	members = group(t, rawnode.Upstream, 1, nil)
	must(t, members[1].host, "x")
	require.NoError(t, members[1].engine.Close())
	_, err = members[1].host.Propose(within(20*time.Second), []byte("y"))
	require.ErrorIs(t, err, rawnode.ErrFailed)
	require.ErrorIs(t, members[1].host.Err(), storage.ErrClosed)
	members[1].killed.Store(true)
	require.NoError(t, members[1].host.Stop(within(10*time.Second)))
	require.NoError(t, members[1].transport.Close())
}

// A call beyond the capacity of a group is refused at once or ends at its deadline, the memory of
// waiting calls stays within its bounds, and the group goes on.
func TestOverload(t *testing.T) {
	const bound = 32 << 10
	budget := rawnode.NewBudget(2 * bound)
	members := group(t, rawnode.Weft, 3, func(c *rawnode.Config) {
		c.Replica.MaxCalls, c.Replica.MaxQueueBytes, c.Replica.MaxCommandBytes = 50, bound, 4<<10
		if c.Replica.ID == 1 {
			c.Replica.Budget = budget
		}
	})
	h := members[1].host
	must(t, h, "before")
	var applied, refused, late, other atomic.Int64
	var wg sync.WaitGroup
	for client := range 200 {
		wg.Go(func() {
			for i := range 10 {
				const limit = 300 * time.Millisecond
				start := time.Now()
				_, err := h.Propose(within(limit), []byte(fmt.Sprintf("%d/%d/%0900d", client, i, 0)))
				if time.Since(start) > limit+10*time.Second {
					late.Add(1)
				}
				switch {
				case err == nil:
					applied.Add(1)
				case errors.Is(err, rawnode.ErrOverloaded) && errors.Is(err, rawnode.ErrRefused):
					refused.Add(1)
				case !errors.Is(err, rawnode.ErrTimeout):
					other.Add(1)
				}
				s := h.Status()
				if s.Queued > bound || s.Waiting > 50 || budget.Used() > budget.Limit() {
					other.Add(1)
				}
			}
		})
	}
	wg.Wait()
	t.Logf("%d applied, %d refused", applied.Load(), refused.Load())
	require.NotZero(t, applied.Load())
	require.NotZero(t, refused.Load())
	require.Zero(t, late.Load(), "calls that outlived their deadline")
	require.Zero(t, other.Load(), "other errors, or bounds that were passed")
	must(t, h, "after")
	require.NotZero(t, h.Status().Step.Refused+h.Status().Counters.Refused)
}

// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/weftraft/weft/cmd/kvdemo/internal/kv"
	"github.com/weftraft/weft/cmd/kvdemo/kvpb"
	"github.com/weftraft/weft/rawnode"
)

// startGroups runs one node with some groups and returns its client.
func startGroups(t *testing.T, groups int) kvpb.KVClient {
	cfg := testConfig(t)
	cfg.Groups = groups
	stop := start(t, cfg)
	t.Cleanup(func() { require.NoError(t, stop()) })
	return kvpb.NewKVClient(dial(t, cfg.ClientListen))
}

// patient is a context for calls to a node that has just been started.
func patient(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// A node of its own allows transactions when the first one comes, in each group, and
// after a restart. Their answers say what became of each action.
func TestTransactionsOverGRPC(t *testing.T) {
	cfg := testConfig(t)
	cfg.Groups = 3
	for round := range 2 {
		stop := start(t, cfg)
		c, ctx := kvpb.NewKVClient(dial(t, cfg.ClientListen)), patient(t)
		for i := range 6 {
			key := fmt.Sprint("counter", i)
			r, err := c.Txn(ctx, &kvpb.TxnRequest{Then: []*kvpb.Action{{Kind: kvpb.Action_ADD, Key: key, Delta: 1}, {Kind: kvpb.Action_TTL, Key: key}, {Kind: kvpb.Action_GET, Key: key}}}, grpc.WaitForReady(true))
			require.NoError(t, err)
			require.True(t, r.GetSucceeded())
			require.EqualValues(t, round+1, r.GetResults()[0].GetNumber())
			require.Equal(t, fmt.Sprint(round+1), string(r.GetResults()[2].GetValue()))
			require.Equal(t, kv.GroupOf(key, 3), r.GetPosition().GetGroup())
		}
		require.NoError(t, stop())
	}
}

func TestCompareAndSetOverGRPC(t *testing.T) {
	c := startGroups(t, 1)
	ctx := patient(t)
	session, err := c.OpenSession(ctx, &kvpb.OpenSessionRequest{Key: "k"}, grpc.WaitForReady(true))
	require.NoError(t, err)
	set := func(want *kvpb.Compare, value string, s *kvpb.Session) *kvpb.TxnResponse {
		want.Key = "k"
		r, err := c.Txn(ctx, &kvpb.TxnRequest{
			Compares: []*kvpb.Compare{want}, Then: []*kvpb.Action{{Kind: kvpb.Action_PUT, Key: "k", Value: []byte(value)}},
			Otherwise: []*kvpb.Action{{Kind: kvpb.Action_GET, Key: "k"}}, Session: s,
		})
		require.NoError(t, err)
		return r
	}
	value := func(v string) *kvpb.Compare {
		return &kvpb.Compare{Want: &kvpb.Compare_Value{Value: []byte(v)}}
	}
	require.True(t, set(&kvpb.Compare{Want: &kvpb.Compare_Exists{}}, "1", nil).GetSucceeded())
	require.True(t, set(value("1"), "2", &kvpb.Session{Id: session.GetId(), Sequence: 1}).GetSucceeded())
	require.True(t, set(value("1"), "2", &kvpb.Session{Id: session.GetId(), Sequence: 1}).GetSucceeded(), "a session's command is done once")
	no := set(value("1"), "3", nil)
	require.False(t, no.GetSucceeded())
	require.Equal(t, "2", string(no.GetResults()[0].GetValue()))
	digest := sha256.Sum256([]byte("2"))
	require.True(t, set(&kvpb.Compare{Want: &kvpb.Compare_Sha256{Sha256: digest[:]}}, "4", nil).GetSucceeded())

	// The first call that wants revisions raises the level: the key counts as changed then.
	get := func() uint64 {
		r, err := c.Get(ctx, &kvpb.GetRequest{Key: "k", Revision: true})
		require.NoError(t, err)
		stream, err := c.Read(ctx, &kvpb.ReadRequest{Key: "k", Revision: true})
		require.NoError(t, err)
		first, err := stream.Recv()
		require.NoError(t, err)
		require.Equal(t, first.GetRevision(), r.GetRevision())
		return r.GetRevision()
	}
	at := set(&kvpb.Compare{Want: &kvpb.Compare_Revision{Revision: get()}}, "5", nil)
	require.True(t, at.GetSucceeded())
	require.Equal(t, at.GetPosition().GetRevision(), get())
	require.False(t, set(&kvpb.Compare{Want: &kvpb.Compare_ChangedAfter{ChangedAfter: get()}}, "6", nil).GetSucceeded())
	require.True(t, set(&kvpb.Compare{Want: &kvpb.Compare_ChangedAfter{ChangedAfter: get() - 1}}, "6", nil).GetSucceeded())
	require.False(t, set(&kvpb.Compare{Want: &kvpb.Compare_Revision{Revision: at.GetPosition().GetRevision()}}, "7", nil).GetSucceeded())
}

func TestBadTransactionsOverGRPC(t *testing.T) {
	s, _ := testService(t)
	s.groups, s.proposers = append(s.groups, s.groups[0]), append(s.proposers, s.groups[0])
	get := func(keys ...string) (list []*kvpb.Action) {
		for _, key := range keys {
			list = append(list, &kvpb.Action{Kind: kvpb.Action_GET, Key: key})
		}
		return list
	}
	for want, req := range map[string]*kvpb.TxnRequest{
		"it names no key":               {},
		"want keys of one group":        {Then: get("a", "b", "c", "d", "e")},
		"revision or changed_after":     {Compares: []*kvpb.Compare{{Key: "a"}}},
		"sha256 of 1 bytes, want 32":    {Compares: []*kvpb.Compare{{Key: "a", Want: &kvpb.Compare_Sha256{Sha256: []byte("x")}}}},
		"condition 9, want 0 to 2":      {Then: []*kvpb.Action{{Kind: kvpb.Action_PUT, Key: "a", Condition: 9}}},
		"kind of action":                {Then: []*kvpb.Action{{Key: "a"}}},
		"want at most 3153600000000":    {Then: []*kvpb.Action{{Kind: kvpb.Action_PUT, Key: "a", TtlMs: 1 << 60}}},
		"key: it is empty, want 1 to 4": {Then: get("")},
		"transaction: 5000 comparisons": {Then: get(strings.Split(strings.Repeat("a ", 5000)[:9999], " ")...)},
	} {
		_, err := s.Txn(t.Context(), req)
		require.Equal(t, codes.InvalidArgument, status.Code(err), want)
		require.ErrorContains(t, err, want)
	}
}

// A key goes away after its time to live, at the leader's command, and so does one
// whose time passed while the node was down. Watchers hear of it.
func TestKeysExpire(t *testing.T) {
	cfg := testConfig(t)
	stop := start(t, cfg)
	c, ctx := kvpb.NewKVClient(dial(t, cfg.ClientListen)), patient(t)
	put := func(key string, ttl uint64) {
		_, err := c.Txn(ctx, &kvpb.TxnRequest{Then: []*kvpb.Action{{Kind: kvpb.Action_PUT, Key: key, Value: []byte("v"), TtlMs: ttl}}}, grpc.WaitForReady(true))
		require.NoError(t, err)
	}
	put("long", 1000*1000)
	put("short", 1)
	gone := func(key string) {
		require.Eventually(t, func() bool {
			_, err := c.Get(ctx, &kvpb.GetRequest{Key: key}, grpc.WaitForReady(true))
			return status.Code(err) == codes.NotFound
		}, time.Minute, 10*time.Millisecond)
	}
	gone("short")
	r, err := c.Txn(ctx, &kvpb.TxnRequest{Then: []*kvpb.Action{{Kind: kvpb.Action_TTL, Key: "long"}}})
	require.NoError(t, err)
	require.InDelta(t, time.Now().UnixMilli()+1000*1000, r.GetResults()[0].GetDeadlineMs(), 60_000)
	require.Zero(t, r.GetResults()[0].GetNumber())

	put("late", 1)
	require.NoError(t, stop())
	stop = start(t, cfg)
	c = kvpb.NewKVClient(dial(t, cfg.ClientListen))
	gone("late")
	_, err = c.Get(ctx, &kvpb.GetRequest{Key: "long"})
	require.NoError(t, err)
	require.NoError(t, stop())
}

// next returns the next response with events.
func next(t *testing.T, w grpc.ServerStreamingClient[kvpb.WatchResponse]) *kvpb.WatchResponse {
	for {
		r, err := w.Recv()
		require.NoError(t, err)
		if len(r.GetEvents()) > 0 {
			return r
		}
	}
}

func TestWatchSendsChangesOnceAndInOrder(t *testing.T) {
	c := startGroups(t, 2)
	ctx := patient(t)
	put := func(key, value string) {
		_, err := c.Put(ctx, &kvpb.PutRequest{Key: key, Value: []byte(value)}, grpc.WaitForReady(true))
		require.NoError(t, err)
	}
	put("a", "0")
	before, err := c.Get(ctx, &kvpb.GetRequest{Key: "a"})
	require.NoError(t, err)
	w, err := c.Watch(ctx, &kvpb.WatchRequest{Keys: &kvpb.WatchRequest_Key{Key: "a"}})
	require.NoError(t, err)
	r, err := w.Recv()
	require.NoError(t, err)
	require.Empty(t, r.GetEvents())
	require.LessOrEqual(t, before.GetPosition().GetRevision(), r.GetPosition().GetRevision())
	for i := range 20 {
		put("a", fmt.Sprint(i))
		put(fmt.Sprint("other", i), "x")
	}
	_, err = c.Delete(ctx, &kvpb.DeleteRequest{Key: "a"})
	require.NoError(t, err)
	var got []string
	for len(got) < 21 {
		for _, e := range next(t, w).GetEvents() {
			got = append(got, e.GetKind().String()+string(e.GetValue()))
		}
	}
	require.Equal(t, "PUT0", got[0])
	require.Equal(t, "PUT19", got[19])
	require.Equal(t, "DELETE", got[20])

	// All keys, from a position that the client has of each group.
	list, err := c.List(ctx, &kvpb.ListRequest{})
	require.NoError(t, err)
	put("a", "again")
	put("b", "again")
	put("c", "again")
	all, err := c.Watch(ctx, &kvpb.WatchRequest{Keys: &kvpb.WatchRequest_Prefix{}, After: list.GetPositions()})
	require.NoError(t, err)
	seen := map[string]bool{}
	for len(seen) < 3 {
		for _, e := range next(t, all).GetEvents() {
			require.Equal(t, "again", string(e.GetValue()))
			seen[e.GetKey()] = true
		}
	}
}

func TestWatchRefuses(t *testing.T) {
	s, _ := testService(t)
	for want, req := range map[string]*kvpb.WatchRequest{
		"no key and no prefix": {},
		"group 7, want 1 to 1": {Keys: &kvpb.WatchRequest_Key{Key: "a"}, After: []*kvpb.Position{{Group: 7}}},
		"invalid key":          {Keys: &kvpb.WatchRequest_Key{Key: strings.Repeat("x", 5000)}},
	} {
		err := s.Watch(req, &watchStream{ctx: t.Context()})
		require.Equal(t, codes.InvalidArgument, status.Code(err), want)
		require.ErrorContains(t, err, want)
	}
	s.watches.count.Store(maxWatches)
	err := s.Watch(&kvpb.WatchRequest{Keys: &kvpb.WatchRequest_Key{Key: "a"}}, &watchStream{ctx: t.Context()})
	require.Equal(t, codes.ResourceExhausted, status.Code(err))
	s.watches.count.Store(0)
	s.watches.parts.Store(maxParts)
	err = s.Watch(&kvpb.WatchRequest{Keys: &kvpb.WatchRequest_Key{Key: "a"}}, &watchStream{ctx: t.Context()})
	require.ErrorContains(t, err, "1 watches are open at this node, which are about 65537 groups, want at most 4096 and 65536")
	s.watches.parts.Store(0)
	s.watches.end()
	err = s.Watch(&kvpb.WatchRequest{Keys: &kvpb.WatchRequest_Key{Key: "a"}}, &watchStream{ctx: t.Context()})
	require.Equal(t, codes.Unavailable, status.Code(err))
	require.Zero(t, s.watches.count.Load())
}

// watchStream takes responses.
type watchStream struct {
	grpc.ServerStream
	ctx  context.Context
	take func(*kvpb.WatchResponse) // or nil
}

func (w *watchStream) Context() context.Context { return w.ctx }

func (w *watchStream) Send(r *kvpb.WatchResponse) error {
	if w.take != nil {
		w.take(r)
	}
	return nil
}

// After a restart a node remembers only what its log replays.
func TestWatchOfAForgottenRevisionSaysCompacted(t *testing.T) {
	cfg := testConfig(t)
	stop := start(t, cfg)
	ctx := patient(t)
	c := kvpb.NewKVClient(dial(t, cfg.ClientListen))
	for range 5 {
		_, err := c.Put(ctx, &kvpb.PutRequest{Key: "a"}, grpc.WaitForReady(true))
		require.NoError(t, err)
	}
	require.NoError(t, stop()) // the state is flushed, so nothing is replayed
	stop = start(t, cfg)
	c = kvpb.NewKVClient(dial(t, cfg.ClientListen))
	w, err := c.Watch(ctx, &kvpb.WatchRequest{Keys: &kvpb.WatchRequest_Key{Key: "a"}, After: []*kvpb.Position{{Group: 1, Revision: 1}}}, grpc.WaitForReady(true))
	require.NoError(t, err)
	for err == nil {
		_, err = w.Recv()
	}
	require.Equal(t, codes.OutOfRange, status.Code(err))
	require.ErrorContains(t, err, "compacted: revision 2 was asked for, the first that this node remembers is")
	require.NoError(t, stop())
}

// A client may come from a node that was ahead, but no node is ahead of what a read waits for: a position behind that is of another cluster.
// A watch from there would be silent, and miss changes, until the group has so many.
func TestWatchBehindAPositionOfAnotherClusterSaysSo(t *testing.T) {
	c := startGroups(t, 2)
	ctx := patient(t)
	var at *kvpb.Position
	for range 5 {
		r, err := c.Put(ctx, &kvpb.PutRequest{Key: "a"}, grpc.WaitForReady(true))
		require.NoError(t, err)
		at = r.GetPosition()
	}
	for ahead := range uint64(2) {
		w, err := c.Watch(ctx, &kvpb.WatchRequest{Keys: &kvpb.WatchRequest_Prefix{}, After: []*kvpb.Position{{Group: at.GetGroup(), Revision: at.GetRevision() + 1000*ahead}}})
		require.NoError(t, err)
		_, err = w.Recv()
		if ahead == 0 {
			require.NoError(t, err)
			continue
		}
		require.Equal(t, codes.OutOfRange, status.Code(err))
		require.ErrorContains(t, err, fmt.Sprintf("compacted: revision %d was asked for, and group %d has come to ", at.GetRevision()+1001, at.GetGroup()))
	}
}

// startNode runs a node and returns it, with level 1 in all groups.
func startNode(t *testing.T, groups int) (*node, kvpb.KVClient) {
	cfg := testConfig(t)
	cfg.Groups = groups
	n := newNode(cfg)
	require.NoError(t, n.open(t.Context()))
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- errors.Join(n.serve(ctx), n.close()) }()
	t.Cleanup(func() {
		cancel()
		require.NoError(t, <-ended)
	})
	for _, g := range n.groups {
		require.NoError(t, n.enable(patient(t), g, kv.NewestLevel))
	}
	return n, kvpb.NewKVClient(dial(t, cfg.ClientListen))
}

// A freeze that its node left behind is ended by the first write that meets it.
func TestFreezeThatWasLeftBehindEnds(t *testing.T) {
	n, c := startNode(t, 2)
	for _, g := range n.groups {
		require.NoError(t, g.freeze(patient(t), "17 gone"))
	}
	_, err := c.Put(patient(t), &kvpb.PutRequest{Key: "a"})
	require.NoError(t, err)
	system, _, err := n.groups[kv.GroupOf("a", 2)-1].store.System()
	require.NoError(t, err)
	require.NotContains(t, system, kv.FreezeKey)
}

func TestNothingChangesWhileFrozen(t *testing.T) {
	n, c := startNode(t, 2)
	wrote := make(chan error, 1)
	err := n.freeze(patient(t), func() error {
		short, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		_, err := c.Put(short, &kvpb.PutRequest{Key: "a"})
		require.Contains(t, []codes.Code{codes.Unavailable, codes.DeadlineExceeded}, status.Code(err)) // in or between attempts
		go func() {
			_, err := c.Put(patient(t), &kvpb.PutRequest{Key: "b"})
			wrote <- err
		}()
		return nil
	})
	require.NoError(t, err)
	require.NoError(t, <-wrote)
	_, err = c.Get(patient(t), &kvpb.GetRequest{Key: "a"})
	require.Equal(t, codes.NotFound, status.Code(err))

	err = n.freeze(patient(t), func() error { // somebody else ends it
		system, _, err := n.groups[0].store.System()
		require.NoError(t, err)
		_, err = thaw(patient(t), n.groups[0], string(system[kv.FreezeKey]))
		return err
	})
	require.ErrorIs(t, err, kv.ErrFrozen)
	require.ErrorContains(t, err, "ended before all groups were looked at")
}

// refusing refuses so many times, and then has a command swap what it names.
type refusing int

func (n *refusing) propose(context.Context, kv.Command) (uint64, kv.Result, error) {
	if *n--; *n >= 0 {
		return 0, kv.Result{}, &rawnode.CallError{Op: "propose", Verdict: rawnode.ErrRefused, Cause: errors.New("the disk is late")}
	}
	return 1, kv.Result{Swapped: true}, nil
}

// A group that somebody has frozen does not stay frozen because a disk is late for a moment.
func TestGroupIsThawedByANodeThatRefusesForAWhile(t *testing.T) {
	twice, always := refusing(2), refusing(1<<40)
	lasted, err := thaw(t.Context(), &twice, "mark")
	require.NoError(t, err)
	require.True(t, lasted)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = thaw(ctx, &always, "mark")
	require.ErrorIs(t, err, rawnode.ErrRefused)
}

// While a member has not said that it knows transactions, as one of the version before
// never does, they are refused, and other writes go on.
func TestTransactionsWaitForAllMembers(t *testing.T) {
	peers := map[uint64]string{1: freePort(t), 2: freePort(t), 3: freePort(t)}
	var clients []kvpb.KVClient
	run := func(id uint64) {
		cfg := testConfig(t)
		cfg.ID, cfg.Peers = id, peers
		stop := start(t, cfg)
		t.Cleanup(func() { require.NoError(t, stop()) })
		clients = append(clients, kvpb.NewKVClient(dial(t, cfg.ClientListen)))
	}
	run(1)
	run(2)
	ctx := patient(t)
	_, err := clients[0].Put(ctx, &kvpb.PutRequest{Key: "a"}, grpc.WaitForReady(true))
	require.NoError(t, err)
	add := &kvpb.TxnRequest{Then: []*kvpb.Action{{Kind: kvpb.Action_ADD, Key: "n", Delta: 1}}}
	require.Eventually(t, func() bool {
		short, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		_, err := clients[0].Txn(short, add)
		require.Error(t, err)
		return strings.Contains(err.Error(), "the members 3 have not said that they know transactions")
	}, time.Minute, time.Millisecond)
	_, err = clients[1].Put(ctx, &kvpb.PutRequest{Key: "a"}, grpc.WaitForReady(true))
	require.NoError(t, err)
	run(3)
	for _, c := range clients {
		_, err := c.Txn(ctx, add, grpc.WaitForReady(true))
		require.NoError(t, err)
	}
}

func TestLevelKeysAreReadAndRefused(t *testing.T) {
	table, err := parseTable(map[string][]byte{"groups": []byte("4 level 1"), "want-level": []byte("2"), "knows/3": []byte("1"), "knows/4": []byte("2"), "later": []byte("x")})
	require.NoError(t, err)
	require.Equal(t, 4, table.groups)
	require.Equal(t, levels{wanted: 2, knows: map[uint64]int{3: 1, 4: 2}, raised: 1}, table.levels)
	for key, value := range map[string]string{"groups": "4 level 4", "knows/x": "1"} {
		_, err := parseTable(map[string][]byte{key: []byte(value)})
		require.ErrorContains(t, err, "run the version that wrote it")
	}
}

// A backup of several groups first freezes all of them, and waits if another freeze is in force. A
// backup of one group freezes nothing.
func TestBackupOfSeveralGroupsFreezesAll(t *testing.T) {
	n, _ := startNode(t, 2)
	backup := func(timeout time.Duration) error {
		ctx, cancel := context.WithTimeout(t.Context(), timeout)
		defer cancel()
		stream, err := kvpb.NewAdminClient(dial(t, n.cfg.ClientListen)).Backup(ctx, &kvpb.BackupRequest{})
		for err == nil {
			_, err = stream.Recv()
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		return err
	}
	require.NoError(t, backup(time.Minute))
	mark := fmt.Sprintf("%d other", time.Now().Add(time.Hour).UnixMilli())
	for _, g := range n.groups {
		require.NoError(t, g.freeze(patient(t), mark))
		require.Error(t, backup(200*time.Millisecond), "group %d is frozen by another", g.id)
		lasted, err := thaw(patient(t), g, mark)
		require.NoError(t, err)
		require.True(t, lasted)
	}
	require.NoError(t, backup(time.Minute))
	for _, g := range n.groups {
		system, _, err := g.store.System()
		require.NoError(t, err)
		require.NotContains(t, system, kv.FreezeKey, "a backup leaves nothing frozen")
	}
}

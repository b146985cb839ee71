// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"crypto/sha256"
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/weftraft/weft/cmd/kvdemo/internal/client"
	"github.com/weftraft/weft/cmd/kvdemo/internal/kv"
	"github.com/weftraft/weft/cmd/kvdemo/kvpb"
)

// pipes is a listener whose connections are in memory.
type pipes struct {
	conns chan net.Conn
	once  sync.Once
	ended chan struct{}
}

func newPipes() *pipes { return &pipes{conns: make(chan net.Conn), ended: make(chan struct{})} }

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.ended:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error   { p.once.Do(func() { close(p.ended) }); return nil }
func (p *pipes) Addr() net.Addr { return &net.TCPAddr{} }

// mortal is a connection of a machine that may die: then nothing leaves it any more.
type mortal struct {
	net.Conn
	dead *atomic.Bool
}

func (m mortal) Write(b []byte) (int, error) {
	if m.dead.Load() {
		return len(b), nil
	}
	return m.Conn.Write(b)
}

// serveInMemory serves a client by pipes, until the returned function is called.
func serveInMemory(t *testing.T, s kvpb.KVServer, dead *atomic.Bool) (c kvpb.KVClient, end func()) {
	server := grpc.NewServer(clientBounds()...)
	kvpb.RegisterKVServer(server, s)
	at := newPipes()
	served := make(chan error, 1)
	go func() { served <- server.Serve(at) }()
	conn, err := grpc.NewClient("passthrough:///node", grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithContextDialer(func(context.Context, string) (net.Conn, error) {
		here, there := net.Pipe()
		at.conns <- here
		return mortal{there, dead}, nil
	}))
	require.NoError(t, err)
	return kvpb.NewKVClient(conn), func() {
		require.NoError(t, conn.Close())
		server.Stop()
		require.NoError(t, <-served)
	}
}

// A client whose machine died says nothing, also not that its connection has ended. Its watch makes room for others.
func TestWatchOfAClientThatDiedEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _ := testService(t)
		var dead atomic.Bool
		c, end := serveInMemory(t, s, &dead)
		w, err := c.Watch(t.Context(), &kvpb.WatchRequest{Keys: &kvpb.WatchRequest_Prefix{}})
		require.NoError(t, err)
		_, err = w.Recv()
		require.NoError(t, err)
		time.Sleep(time.Hour)
		require.EqualValues(t, 1, s.watches.count.Load(), "the client is there")
		dead.Store(true)
		time.Sleep(2 * time.Minute)
		require.Zero(t, s.watches.count.Load())
		end()
	})
}

// The state that a value is read from is given free if the client does not take the value.
func TestValueThatNobodyTakesIsClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _ := testService(t)
		const size = 3 * kv.PartBytes
		upload := make([]byte, 16)
		for i := range uint32(3) {
			_, err := s.PutPart(t.Context(), &kvpb.PutPartRequest{Key: "k", Upload: upload, Size: size, Part: i, Data: make([]byte, kv.PartBytes)})
			require.NoError(t, err)
		}
		sum := sha256.Sum256(make([]byte, size))
		_, err := s.Finish(t.Context(), &kvpb.FinishRequest{Key: "k", Upload: upload, Size: size, Sha256: sum[:]})
		require.NoError(t, err)
		c, end := serveInMemory(t, s, &atomic.Bool{})
		r, err := c.Read(t.Context(), &kvpb.ReadRequest{Key: "k"})
		require.NoError(t, err)
		time.Sleep(slowReader / 2)
		require.EqualValues(t, 1, s.open.Load())
		time.Sleep(slowReader)
		require.Zero(t, s.open.Load())
		for err == nil {
			_, err = r.Recv()
		}
		require.Equal(t, codes.DeadlineExceeded, status.Code(err))
		s.open.Store(maxOpen)
		r, err = c.Read(t.Context(), &kvpb.ReadRequest{Key: "k"})
		require.NoError(t, err)
		_, err = r.Recv()
		require.Equal(t, codes.ResourceExhausted, status.Code(err))
		end()
	})
}

// What a watch has to tell goes in messages that fit, however much it is, and what a command changed stays together.
func TestMessagesOfAWatchHaveABound(t *testing.T) {
	s, host := testService(t)
	for i := range 40 {
		_, err := s.Put(t.Context(), &kvpb.PutRequest{Key: fmt.Sprint("k", i%3), Value: make([]byte, 60<<10)})
		require.NoError(t, err)
	}
	_, _, err := host.propose(t.Context(), kv.Command{Op: kv.OpSystem, Key: kv.LevelKey, Value: []byte("1")})
	require.NoError(t, err)
	x := &kv.Txn{}
	for i := range 16 {
		x.Then = append(x.Then, kv.Action{Kind: kv.ActPut, Key: fmt.Sprint("t", i), Value: make([]byte, 60<<10)})
	}
	_, _, err = host.propose(t.Context(), kv.Command{Op: kv.OpTxn, Txn: x})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	w := &watchStream{ctx: ctx}
	sent, events := map[uint64]int{}, 0
	w.take = func(r *kvpb.WatchResponse) {
		revisions := map[uint64]bool{}
		for _, e := range r.GetEvents() {
			require.LessOrEqual(t, e.GetRevision(), r.GetPosition().GetRevision())
			require.True(t, len(sent) == 0 || sent[e.GetRevision()] == 0, "revision %d comes in two messages", e.GetRevision())
			revisions[e.GetRevision()] = true
		}
		require.True(t, proto.Size(r) <= watchBytes+1<<10 || len(revisions) == 1, "%d bytes, of %d revisions", proto.Size(r), len(revisions))
		require.Less(t, proto.Size(r), client.MaxReplyBytes)
		for revision := range revisions {
			sent[revision]++
		}
		if events += len(r.GetEvents()); events == 56 {
			cancel()
		}
	}
	err = s.Watch(&kvpb.WatchRequest{Keys: &kvpb.WatchRequest_Prefix{}, After: []*kvpb.Position{{Group: 1}}}, w)
	require.Equal(t, codes.Canceled, status.Code(err))
	require.Len(t, sent, 41)
}

// A page of long keys, and the pages of many groups together, fit a message.
func TestPagesHaveABoundInBytes(t *testing.T) {
	s, _ := testService(t)
	for range 3 {
		_, other := testService(t)
		s.groups, s.proposers = append(s.groups, other), append(s.proposers, other)
	}
	want := map[string]bool{}
	for i := range 900 {
		key := fmt.Sprint(strings.Repeat("long", 1000), i)
		_, err := s.Put(t.Context(), &kvpb.PutRequest{Key: key})
		require.NoError(t, err)
		want[key] = true
	}
	req := &kvpb.ListRequest{Limit: kv.MaxPage}
	for pages := 1; ; pages++ {
		r, err := s.List(t.Context(), req)
		require.NoError(t, err)
		require.LessOrEqual(t, proto.Size(r), kv.MaxPageBytes+kv.MaxKeyBytes+1<<10)
		for _, item := range r.GetItems() {
			require.True(t, want[item.GetKey()], "twice, or never put")
			delete(want, item.GetKey())
		}
		if req.After = r.GetNext(); req.GetAfter() == "" {
			require.Less(t, pages, 10)
			break
		}
	}
	require.Empty(t, want)
}

// What a transaction returns fits a message to the client.
func TestLargestResultsOfATransactionReachTheClient(t *testing.T) {
	_, c := startNode(t, 1)
	ctx := patient(t)
	for i := range 4 {
		_, err := c.Put(ctx, &kvpb.PutRequest{Key: fmt.Sprint(i), Value: make([]byte, kv.MaxInlineBytes)})
		require.NoError(t, err)
	}
	req := &kvpb.TxnRequest{}
	for i := range kv.MaxTxnItems {
		req.Then = append(req.Then, &kvpb.Action{Kind: kvpb.Action_GET, Key: fmt.Sprint(i)})
	}
	r, err := c.Txn(ctx, req, grpc.MaxCallRecvMsgSize(client.MaxReplyBytes))
	require.NoError(t, err)
	require.Len(t, r.GetResults()[3].GetValue(), kv.MaxInlineBytes)
}

// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/weftraft/weft/cmd/kvdemo/internal/kv"
	"github.com/weftraft/weft/cmd/kvdemo/kvpb"
	"github.com/weftraft/weft/internal/ports"
)

// fakeNode answers every call with the same. It opens as many sessions as are
// wanted.
type fakeNode struct {
	kvpb.UnimplementedKVServer
	calls    atomic.Int64
	opened   atomic.Uint64
	sessions sync.Map // what writes there were, *kvpb.Session, by number of the call
	// answer is the outcome of a call; nil waits for the deadline.
	answer func() error
}

func (n *fakeNode) call(ctx context.Context) error {
	n.calls.Add(1)
	if n.answer == nil {
		<-ctx.Done()
		return status.FromContextError(ctx.Err()).Err()
	}
	return n.answer()
}

func (n *fakeNode) OpenSession(context.Context, *kvpb.OpenSessionRequest) (*kvpb.OpenSessionResponse, error) {
	return &kvpb.OpenSessionResponse{Id: n.opened.Add(1), Group: 1, Groups: 1}, nil
}

func (n *fakeNode) Put(ctx context.Context, req *kvpb.PutRequest) (*kvpb.PutResponse, error) {
	n.sessions.Store(n.calls.Load()+1, req.GetSession())
	return &kvpb.PutResponse{Index: 7}, n.call(ctx)
}

// sent returns the session and sequence of a write.
func (n *fakeNode) sent(call int64) [2]uint64 {
	v, _ := n.sessions.Load(call)
	s, _ := v.(*kvpb.Session)
	return [2]uint64{s.GetId(), s.GetSequence()}
}

func (n *fakeNode) Get(ctx context.Context, _ *kvpb.GetRequest) (*kvpb.GetResponse, error) {
	return &kvpb.GetResponse{Value: []byte("v")}, n.call(ctx)
}

func (n *fakeNode) Status(ctx context.Context, _ *kvpb.StatusRequest) (*kvpb.StatusResponse, error) {
	return &kvpb.StatusResponse{Id: 1}, n.call(ctx)
}

func (n *fakeNode) serve(t *testing.T) (address string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	s := grpc.NewServer()
	kvpb.RegisterKVServer(s, n)
	go func() { _ = s.Serve(l) }() // ends with Stop
	t.Cleanup(s.Stop)
	return l.Addr().String()
}

// nobody is an address at which nobody listens.
func nobody(t *testing.T) string {
	t.Helper()
	free, err := ports.Free(1)
	require.NoError(t, err)
	return free[0]
}

func ok() error { return nil }

func failing(code codes.Code, v kvpb.Outcome_Verdict) func() error {
	return func() error {
		s, err := status.New(code, "the node's words").WithDetails(&kvpb.Outcome{Verdict: v})
		if err != nil {
			return err
		}
		return s.Err()
	}
}

func newClient(t *testing.T, cfg Config) *Client {
	t.Helper()
	c, err := New(cfg)
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// What follows from each answer of the first of two nodes, for a write and a
// read.
func TestVerdicts(t *testing.T) {
	for _, c := range []struct {
		name      string
		answer    func() error
		put, read error // nil: the second node's answer
	}{
		{"success", ok, nil, nil},
		{"refused", failing(codes.Unavailable, kvpb.Outcome_REFUSED), nil, nil},
		{"refused, timeout", failing(codes.DeadlineExceeded, kvpb.Outcome_REFUSED), nil, nil},
		{"overloaded", failing(codes.ResourceExhausted, kvpb.Outcome_REFUSED), nil, nil},
		{"unknown", failing(codes.Unavailable, kvpb.Outcome_UNKNOWN), nil, nil},
		{"no verdict", failing(codes.Unavailable, 0), nil, nil},
		{"broken", failing(codes.Internal, 0), nil, nil},
		{"invalid", failing(codes.InvalidArgument, 0), kv.ErrInvalid, kv.ErrInvalid},
		{"damaged", failing(codes.DataLoss, 0), kv.ErrDamaged, kv.ErrDamaged},
		{"not found", failing(codes.NotFound, 0), kv.ErrNotFound, kv.ErrNotFound},
	} {
		t.Run(c.name, func(t *testing.T) {
			first, second := &fakeNode{answer: c.answer}, &fakeNode{answer: ok}
			cl := newClient(t, Config{Endpoints: []string{first.serve(t), second.serve(t)}})
			_, err := cl.Put(t.Context(), "k", nil)
			require.ErrorIs(t, err, c.put)
			if c.put != nil {
				require.ErrorContains(t, err, "the node's words")
			} else if second.calls.Load() > 0 {
				require.Equal(t, first.sent(1), second.sent(1), "the same write")
			}
			cl.next.Store(0)
			_, err = cl.Get(t.Context(), &kvpb.GetRequest{Key: "k"})
			require.ErrorIs(t, err, c.read)
			require.EqualValues(t, 2, first.calls.Load())
		})
	}
}

// Writes one after the other share a session and count up; those at the same
// time do not.
func TestSessions(t *testing.T) {
	node := &fakeNode{answer: ok}
	c := newClient(t, Config{Endpoints: []string{node.serve(t)}})
	for i := range uint64(3) {
		_, err := c.Put(t.Context(), "k", nil)
		require.NoError(t, err)
		require.Equal(t, [2]uint64{1, i + 1}, node.sent(int64(i)+1))
	}
	busy := c.sessions.take("k")
	_, err := c.Put(t.Context(), "k", nil)
	require.NoError(t, err)
	require.Equal(t, [2]uint64{2, 1}, node.sent(4))
	require.EqualValues(t, 3, busy.sequence)
}

// A session that the nodes have forgotten is replaced, unless an earlier attempt
// may have been applied in it.
func TestForgottenSession(t *testing.T) {
	for _, c := range []struct {
		name  string
		first []error
		want  error
	}{
		{"no doubt", []error{failing(codes.Unavailable, kvpb.Outcome_REFUSED)(), failing(codes.Aborted, kvpb.Outcome_NO_SESSION)()}, nil},
		{"in doubt", []error{failing(codes.Unavailable, kvpb.Outcome_UNKNOWN)(), failing(codes.Aborted, kvpb.Outcome_NO_SESSION)()}, ErrUnknown},
	} {
		t.Run(c.name, func(t *testing.T) {
			answers := make(chan error, 3)
			for _, err := range append(c.first, nil) {
				answers <- err
			}
			node := &fakeNode{answer: func() error { return <-answers }}
			cl := newClient(t, Config{Endpoints: []string{node.serve(t)}})
			_, err := cl.Put(t.Context(), "k", nil)
			require.ErrorIs(t, err, c.want)
			if c.want == nil {
				require.Equal(t, [2]uint64{2, 1}, node.sent(3))
			}
		})
	}
}

// A node that cannot be reached has not got the write: the next is asked, and
// asked first the next time.
func TestUnreachable(t *testing.T) {
	node := &fakeNode{answer: ok}
	c := newClient(t, Config{Endpoints: []string{nobody(t), node.serve(t)}})
	at, err := c.Put(t.Context(), "k", nil)
	require.NoError(t, err)
	require.EqualValues(t, 7, at.Index)
	require.EqualValues(t, 1, c.next.Load())
}

// inMemory returns a client of one node, which are joined in memory, for virtual time: on a busy machine a short deadline may
// pass before the node is asked.
func inMemory(t *testing.T, timeout time.Duration, register func(*grpc.Server)) *Client {
	t.Helper()
	at := one{make(chan net.Conn, 1), make(chan struct{})}
	s := grpc.NewServer()
	register(s)
	served := make(chan error, 1)
	go func() { served <- s.Serve(at) }()
	c, err := open(Config{Endpoints: []string{"node:1"}, Timeout: timeout}, grpc.WithContextDialer(func(context.Context, string) (net.Conn, error) {
		here, there := net.Pipe()
		at.conn <- here
		return there, nil
	}))
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, c.Close())
		s.Stop()
		require.NoError(t, <-served)
	})
	return c
}

// Nobody takes the call: a definite error within the deadline.
func TestDeadline(t *testing.T) {
	for _, c := range []struct {
		name string
		node *fakeNode
		want error
	}{
		{"refusing", &fakeNode{answer: failing(codes.Unavailable, kvpb.Outcome_REFUSED)}, errUnavailable},
		{"silent", &fakeNode{}, ErrUnknown},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const timeout = 10*pause + pause/2 // no call begins as it ends
				cl := inMemory(t, timeout, func(s *grpc.Server) { kvpb.RegisterKVServer(s, c.node) })
				begin := time.Now()
				_, err := cl.Put(t.Context(), "k", nil)
				require.ErrorIs(t, err, c.want)
				require.Equal(t, timeout, time.Since(begin))
				_, err = cl.Get(t.Context(), &kvpb.GetRequest{Key: "k"})
				require.ErrorIs(t, err, errUnavailable, "a read has no unknown outcome")
				if c.node.answer != nil {
					require.ErrorContains(t, err, "the node's words")
					require.ErrorContains(t, err, "name more of them with --endpoints", "a node may refuse alone, as its disk is full")
				}
			})
		})
	}
	cl := newClient(t, Config{Endpoints: []string{nobody(t)}, Timeout: 100 * time.Millisecond})
	_, err := cl.Put(t.Context(), "k", nil)
	require.ErrorIs(t, err, errUnavailable)
	require.ErrorContains(t, err, "cannot connect")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = cl.Put(ctx, "k", nil)
	require.ErrorIs(t, err, context.Canceled)
}

func TestStatus(t *testing.T) {
	node := &fakeNode{answer: ok}
	c := newClient(t, Config{Endpoints: []string{node.serve(t), nobody(t)}})
	all := c.Status(t.Context())
	require.NoError(t, all[0].Err)
	require.EqualValues(t, 1, all[0].Response.GetId())
	require.ErrorContains(t, all[1].Err, "cannot connect")
}

// A call with impossible arguments is refused before the client sends the call.
func TestInvalid(t *testing.T) {
	_, err := New(Config{Endpoints: []string{"host", "h:0", "h:70000", "a\xffb:1"}, Timeout: -1})
	for _, want := range []string{`"host": want host:port`, `port "0", want 1 to 65535`, `port "70000"`, `host "a\xffb", want an IP address`, "timeout: -1ns"} {
		require.ErrorContains(t, err, want)
	}
	_, err = New(Config{})
	require.ErrorContains(t, err, "endpoints: none given")
	c := newClient(t, Config{Endpoints: []string{nobody(t)}})
	_, err = c.Put(t.Context(), "k", make([]byte, kv.MaxValueBytes+1))
	require.ErrorIs(t, err, kv.ErrInvalid)
	_, _, err = c.Delete(t.Context(), "")
	require.ErrorIs(t, err, kv.ErrInvalid)
}

// sessionless is a node of a minority, which opens no session.
type sessionless struct{ fakeNode }

func (n *sessionless) OpenSession(context.Context, *kvpb.OpenSessionRequest) (*kvpb.OpenSessionResponse, error) {
	return nil, failing(codes.DeadlineExceeded, kvpb.Outcome_REFUSED)()
}

// An error says which call it is about: a write for which no session could be opened
// was not sent.
func TestWriteWithoutSessionWasNotSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := &sessionless{fakeNode{answer: ok}}
		c := inMemory(t, time.Second, func(s *grpc.Server) { kvpb.RegisterKVServer(s, n) })
		_, err := c.Put(t.Context(), "k", nil)
		require.ErrorIs(t, err, errUnavailable)
		require.NotErrorIs(t, err, ErrUnknown)
		require.ErrorContains(t, err, "the write was not sent, as no session could be opened for it: no node could take the request in time")
		require.ErrorContains(t, err, "the node's words")
		require.Zero(t, n.calls.Load())
	})
}

// busyAdmin is a node of a minority that is asked to change the members.
type busyAdmin struct{ kvpb.UnimplementedAdminServer }

func (busyAdmin) RemoveMember(context.Context, *kvpb.RemoveMemberRequest) (*kvpb.MembersResponse, error) {
	return nil, failing(codes.DeadlineExceeded, kvpb.Outcome_UNKNOWN)()
}

// A change of the members that was begun and not carried through may take effect yet.
func TestChangeThatWasBegunIsInDoubt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := inMemory(t, time.Second, func(s *grpc.Server) { kvpb.RegisterAdminServer(s, busyAdmin{}) })
		_, err := Admin(t.Context(), c, kvpb.AdminClient.RemoveMember, &kvpb.RemoveMemberRequest{Id: 3})
		require.ErrorIs(t, err, ErrUnknown)
		require.NotErrorIs(t, err, errUnavailable)
		require.ErrorContains(t, err, "ask for it again to complete it")
	})
}

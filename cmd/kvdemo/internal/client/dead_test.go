// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"net"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/status"

	"github.com/weftraft/weft/cmd/kvdemo/kvpb"
)

// watched is a node with nothing to tell.
type watched struct{ kvpb.UnimplementedKVServer }

func (watched) Watch(_ *kvpb.WatchRequest, stream grpc.ServerStreamingServer[kvpb.WatchResponse]) error {
	if err := stream.Send(&kvpb.WatchResponse{}); err != nil {
		return err
	}
	<-stream.Context().Done()
	return stream.Context().Err()
}

// one is a listener with one connection.
type one struct {
	conn  chan net.Conn
	ended chan struct{}
}

func (o one) Accept() (net.Conn, error) {
	select {
	case c := <-o.conn:
		return c, nil
	case <-o.ended:
		return nil, net.ErrClosed
	}
}

func (o one) Close() error { close(o.ended); return nil }
func (one) Addr() net.Addr { return &net.TCPAddr{} }

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

// A watch is silent for as long as nothing changes, and must not wait for a node whose machine died.
func TestWatchNoticesANodeThatDied(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := grpc.NewServer(grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: PingTime / 3}))
		kvpb.RegisterKVServer(server, watched{})
		at := one{make(chan net.Conn, 1), make(chan struct{})}
		served := make(chan error, 1)
		go func() { served <- server.Serve(at) }()
		var dead atomic.Bool
		conn, err := grpc.NewClient("passthrough:///node", append(bounds(), grpc.WithTransportCredentials(insecure.NewCredentials()),
			grpc.WithContextDialer(func(context.Context, string) (net.Conn, error) {
				if dead.Load() {
					return nil, net.ErrClosed
				}
				here, there := net.Pipe()
				at.conn <- mortal{here, &dead}
				return there, nil
			}))...)
		require.NoError(t, err)
		w, err := kvpb.NewKVClient(conn).Watch(t.Context(), &kvpb.WatchRequest{})
		require.NoError(t, err)
		_, err = w.Recv()
		require.NoError(t, err)
		time.AfterFunc(time.Hour, func() { dead.Store(true) })
		begun := time.Now()
		_, err = w.Recv()
		require.Equal(t, codes.Unavailable, status.Code(err))
		took := time.Since(begun) - time.Hour
		require.Greater(t, took, time.Duration(0))
		require.LessOrEqual(t, took, PingTime+PingTimeout)
		require.NoError(t, conn.Close())
		server.Stop()
		require.NoError(t, <-served)
	})
}

// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package transport

import (
	"context"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weftraft/weft/internal/wire"
)

// quietListener is a listener to which nobody connects.
type quietListener chan struct{}

func (l quietListener) Accept() (net.Conn, error) {
	<-l
	return nil, net.ErrClosed
}

func (l quietListener) Close() error {
	close(l)
	return nil
}

func (quietListener) Addr() net.Addr { return &net.TCPAddr{} }

// A peer takes each connection and ends it at once, for what it is sent, as where Config.Allow of two nodes differs. Each end
// is told to all groups, of which a node may have thousands: so the pauses between dials grow, as for a peer that is down.
func TestPausesGrowWhileThePeerEndsEachConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dials := 0
		dial := func(context.Context, string) (net.Conn, error) {
			dials++
			here, there := net.Pipe()
			go func() {
				defer func() { _ = there.Close() }()
				if _, err := wire.ReadHello(there); err == nil {
					_ = (wire.Answer{Kinds: wire.AllKinds}).Write(there)
				}
			}()
			return here, nil
		}
		tr, err := New(Config{Cluster: 5, Node: 1, Listener: make(quietListener), Peers: map[uint64]string{2: "peer:1"}, Dial: dial})
		require.NoError(t, err)
		box := newInbox()
		require.NoError(t, tr.Join(1, box))
		for range 60 * 100 { // a minute
			tr.Send([]wire.Message{heartbeat(1, 2)})
			time.Sleep(10 * time.Millisecond)
		}
		synctest.Wait()
		require.Greater(t, dials, 50)
		require.Less(t, dials, 80)
		require.NoError(t, tr.Close())
	})
}

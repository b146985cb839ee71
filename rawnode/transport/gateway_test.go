// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package transport

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weftraft/weft/internal/certs"
	"github.com/weftraft/weft/internal/wire"
)

// gatewayOf starts a gateway of a node.
func gatewayOf(t *testing.T, node *TCP, id uint64) (*TCP, *inbox) {
	l := listen(t)
	return start(t, Config{Node: id, Listener: l, Gateway: l.Addr().String(), Peers: map[uint64]string{node.cfg.Node: node.Addr().String()}})
}

func message(from, to uint64, body wire.Body) []wire.Message {
	return []wire.Message{{Group: 1, From: from, To: to, Body: body}}
}

// A gateway is known while it is connected, at the address that it has given.
func TestGatewayIsKnownWhileItIsConnected(t *testing.T) {
	a, boxA := start(t, Config{Node: 1, Listen: "127.0.0.1:0"})
	g, boxG := gatewayOf(t, a, 9)
	require.False(t, a.HasAddress(9))
	g.Send(message(9, 1, wire.Attach{Life: 1, Number: 1}))
	require.Equal(t, wire.Attach{Life: 1, Number: 1}, boxA.next(t).Body)
	a.Send(message(1, 9, wire.Report{Life: 1, Number: 1, Closed: "no"}))
	require.Equal(t, "no", boxG.next(t).Body.(wire.Report).Closed)
	require.NoError(t, g.Close())
	require.Eventually(t, func() bool { return !a.HasAddress(9) }, patience, time.Millisecond)

	// A node of the same number comes in the gateway's place.
	g, _ = gatewayOf(t, a, 9)
	g.Send(message(9, 1, wire.Attach{Life: 2, Number: 1}))
	boxA.next(t)
	a.SetPeer(9, "127.0.0.1:1")
	require.False(t, a.peer(9).gateway)
}

func TestGatewayMaySendLittle(t *testing.T) {
	for name, m := range map[string]wire.Message{
		"heartbeat": heartbeat(9, 1),
		"change":    {Group: 1, From: 9, To: 1, Body: wire.Proposal{ID: wire.CommandID{Origin: 9, Boot: 1, Sequence: 1}, ConfChange: true}},
		"report":    {Group: 1, From: 9, To: 1, Body: wire.Report{Closed: "x"}},
	} {
		t.Run(name, func(t *testing.T) {
			a, _ := start(t, Config{Node: 1, Listen: "127.0.0.1:0"})
			c, answer := connect(t, a, wire.Hello{Cluster: 5, Node: 9, Peer: 1, Class: m.Class(), Kinds: wire.AllKinds, Address: "127.0.0.1:7"})
			require.Empty(t, answer.Refused)
			require.Equal(t, wire.GatewayKinds, answer.Kinds)
			var f wire.Frame
			f.AppendMessage(m)
			_, err := f.WriteMessages(c)
			require.NoError(t, err)
			require.Eventually(t, func() bool { return a.Stats().BadFrames == 1 }, patience, time.Millisecond)
			require.Eventually(t, func() bool { return a.peer(9) == nil }, patience, time.Millisecond)
		})
	}
}

// With TLS a gateway is who its certificate says, like a node.
func TestGatewayProvesItsIdentity(t *testing.T) {
	dir := generate(t, certs.ValidFor(time.Hour), 1, 9, 10)
	a, box := start(t, Config{Node: 1, Listen: "127.0.0.1:0", TLS: certs.NodeFiles(dir, 1)})
	open := func(id, certificate uint64) (*TCP, error) {
		l := listen(t)
		return New(Config{Cluster: 5, Node: id, Listener: l, Gateway: l.Addr().String(), Peers: map[uint64]string{1: a.Addr().String()}, TLS: certs.NodeFiles(dir, certificate)})
	}
	g, err := open(9, 9)
	require.NoError(t, err)
	deliver(t, g, box, message(9, 1, wire.Attach{Life: 1, Number: 1})[0])
	require.NoError(t, g.Close())
	_, err = open(9, 10)
	require.ErrorContains(t, err, "this is node 9 of cluster 5")
}

func TestGatewaysAreBoundedAndNoNodes(t *testing.T) {
	a, _ := start(t, Config{Node: 1, Listen: "127.0.0.1:0", Peers: map[uint64]string{2: "127.0.0.1:1"}, MaxGateways: 2})
	hello := func(id uint64, address string) string {
		_, answer := connect(t, a, wire.Hello{Cluster: 5, Node: id, Peer: 1, Kinds: wire.AllKinds, Address: address})
		return answer.Refused
	}
	for id := uint64(9); id < 11; id++ {
		require.Empty(t, hello(id, fmt.Sprintf("127.0.0.1:%d", id)))
	}
	require.Contains(t, hello(11, "127.0.0.1:11"), "the bound is 2")
	require.Contains(t, hello(2, "127.0.0.1:11"), "node 2 is known here as a node")
	require.Contains(t, hello(9, ""), "node 9 is not known here")
	require.Contains(t, hello(9, ":0"), "has the address")
	g, _ := gatewayOf(t, a, 12)
	_, answer := connect(t, g, wire.Hello{Cluster: 5, Node: 1, Peer: 12, Kinds: wire.AllKinds, Address: "127.0.0.1:8"})
	require.Contains(t, answer.Refused, "this is a gateway")
	none, _ := start(t, Config{Node: 1, Listen: "127.0.0.1:0", MaxGateways: -1})
	_, answer = connect(t, none, wire.Hello{Cluster: 5, Node: 9, Peer: 1, Kinds: wire.AllKinds, Address: "127.0.0.1:8"})
	require.Contains(t, answer.Refused, "the bound is 0")
}

// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package rawnodetest_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"github.com/weftraft/weft/internal/wire"
	"github.com/weftraft/weft/rawnode"
	"github.com/weftraft/weft/rawnode/rawnodetest"
	"github.com/weftraft/weft/rawnode/transport"
)

func networks(bug string) rawnodetest.TransportFactory {
	return rawnodetest.TransportFactory{Patience: 300 * time.Millisecond, Open: func(n int) ([]rawnode.Transport, error) {
		network := rawnodetest.NewNetwork()
		var all []rawnode.Transport
		for id := range uint64(n) {
			all = append(all, network.Transport(id+1))
		}
		if bug == "" {
			return all, nil
		}
		for i := range all {
			all[i] = &crooked{Transport: all[i].(*rawnodetest.Transport), bug: bug, nodes: n}
		}
		return all, nil
	}}
}

func TestNetworkKeepsTheContract(t *testing.T) {
	f := networks("")
	f.Patience = 0
	rawnodetest.TestTransport(t, f)
}

func TestTCPKeepsTheContract(t *testing.T) {
	rawnodetest.TestTransport(t, rawnodetest.TransportFactory{Open: func(n int) (all []rawnode.Transport, err error) {
		peers, listeners := map[uint64]string{}, map[uint64]net.Listener{}
		for id := range uint64(n) {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				return nil, err
			}
			peers[id+1], listeners[id+1] = l.Addr().String(), l
		}
		for id := range uint64(n) {
			tcp, err := transport.New(transport.Config{Cluster: 5, Node: id + 1, Listener: listeners[id+1], Peers: peers})
			if err != nil {
				return all, err
			}
			all = append(all, tcp)
		}
		return all, nil
	}})
}

// crooked is a transport with a bug.
type crooked struct {
	*rawnodetest.Transport
	bug   string
	nodes int

	mu   sync.Mutex
	kept []rawnode.Message
	n    int
}

func (c *crooked) Send(messages []rawnode.Message) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, m := range messages {
		c.one(m)
	}
}

func (c *crooked) one(m rawnode.Message) {
	c.n++
	isAppend := m.Class() == wire.ClassAppend
	switch {
	case c.bug == "mixes up the order" && isAppend:
		c.kept = append(c.kept, m)
		if len(c.kept) == 2 {
			c.Transport.Send([]rawnode.Message{c.kept[1], c.kept[0]})
			c.kept = nil
		}
		return
	case c.bug == "sends twice" && c.n%10 == 0:
		c.Transport.Send([]rawnode.Message{m})
	case c.bug == "loses some" && c.n%50 == 0:
		return
	case c.bug == "waits in Send":
		_ = c.SendWait(context.Background(), m)
		return
	case c.bug == "tells everybody":
		for id := range uint64(c.nodes) {
			if id+1 != m.From && id+1 != m.To {
				m := m
				m.To = id + 1
				c.Transport.Send([]rawnode.Message{m})
			}
		}
	case c.bug == "forgets the class":
		m.Background = false
	case c.bug == "cuts payloads":
		if b, ok := m.Body.(wire.Chunk); ok && len(b.Data) > 4096 {
			b.Data = b.Data[:4096]
			m.Body = b
		}
	case c.bug == "changes what it sends":
		if b, ok := m.Body.(wire.Raft); ok {
			b.Commit = new(b.GetCommit() + 1)
		}
	}
	c.Transport.Send([]rawnode.Message{m})
}

func (c *crooked) SendWait(ctx context.Context, m rawnode.Message) error {
	switch c.bug {
	case "does not wait in SendWait":
		c.Transport.Send([]rawnode.Message{m})
		return nil
	case "takes all in SendWait":
		_ = c.Transport.SendWait(ctx, m)
		return nil
	case "hides the context's error":
		if c.Transport.SendWait(ctx, m) != nil {
			return io.ErrUnexpectedEOF
		}
		return nil
	}
	return c.Transport.SendWait(ctx, m)
}

func (c *crooked) Join(group uint64, r rawnode.Receiver) error {
	if c.bug == "joins over another" {
		c.Transport.Leave(group)
	}
	return c.Transport.Join(group, &crookedReceiver{Receiver: r, c: c, group: group})
}

func (c *crooked) Leave(group uint64) {
	if c.bug != "goes on after Leave" || group != 1 {
		c.Transport.Leave(group)
	}
}

type crookedReceiver struct {
	rawnode.Receiver
	c     *crooked
	group uint64
	mu    sync.Mutex
}

func (r *crookedReceiver) Receive(m rawnode.Message) {
	switch r.c.bug {
	case "has one queue":
		r.mu.Lock()
		defer r.mu.Unlock()
	case "forgets the group":
		if r.group == 2 {
			m.Group = 1
		}
	}
	r.Receiver.Receive(m)
}

func (r *crookedReceiver) Unreachable(peer uint64) {
	switch {
	case r.c.bug == "drops in silence" && peer <= 9, r.c.bug == "hides strangers" && peer > 9:
		return
	}
	r.Receiver.Unreachable(peer)
}

func TestTransportSuiteFindsBugs(t *testing.T) {
	for bug, rule := range map[string]string{
		"mixes up the order":        "messages of a class keep their order, and come once",
		"sends twice":               "messages of a class keep their order, and come once",
		"loses some":                "messages of a class keep their order, and come once",
		"forgets the class":         "messages of a class keep their order, and come once",
		"cuts payloads":             "messages arrive as they were sent",
		"changes what it sends":     "messages arrive as they were sent",
		"forgets the group":         "messages go to their node and group alone",
		"tells everybody":           "messages go to their node and group alone",
		"waits in Send":             "a receiver that waits holds up neither Send nor control messages",
		"has one queue":             "a receiver that waits holds up neither Send nor control messages",
		"drops in silence":          "what is dropped is reported",
		"does not wait in SendWait": "SendWait waits for room, and loses nothing",
		"takes all in SendWait":     "SendWait ends with its context",
		"hides the context's error": "SendWait ends with its context",
		"hides strangers":           "a node that is not known is reported",
		"joins over another":        "a group has one receiver at a time",
		"goes on after Leave":       "nothing comes after Leave",
	} {
		t.Run(bug, func(t *testing.T) {
			t.Parallel()
			err := rawnodetest.CheckTransport(networks(bug))
			require.Contains(t, rawnodetest.Broken(err), rule, "%v", err)
		})
	}
}

// Hosts run on logs and a network in memory, in a bubble of virtual time; a log survives
// a crash.
func TestHostsOnPartsInMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network, peers := rawnodetest.NewNetwork(), []uint64{1, 2, 3}
		hosts, logs := map[uint64]*rawnode.Host{}, map[uint64]*rawnodetest.Log{}
		start := func(id uint64, log *rawnodetest.Log) *rawnodetest.Transport {
			tr := network.Transport(id)
			sm, err := networked()
			require.NoError(t, err)
			h, err := rawnode.New(rawnode.Config{
				Replica:      rawnode.ReplicaConfig{ID: id, Group: 1, Log: log, Peers: peers, Boot: uint64(time.Now().UnixNano())},
				StateMachine: sm, Transport: tr, TickInterval: 13 * time.Millisecond,
			})
			require.NoError(t, err)
			hosts[id], logs[id] = h, log
			return tr
		}
		transports := map[uint64]*rawnodetest.Transport{}
		for _, id := range peers {
			transports[id] = start(id, rawnodetest.NewLog(t, id, 1))
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		for i := range 10 {
			got, err := hosts[uint64(i%3)+1].Propose(ctx, []byte("a"))
			require.NoError(t, err)
			require.Equal(t, i+1, got.Value)
		}
		network.SetLink(1, 2, rawnodetest.Link{Delay: 30 * time.Millisecond})
		network.SetLink(1, 3, rawnodetest.Link{Cut: true})
		// A node ends, and starts again from its log.
		require.NoError(t, hosts[3].Stop(ctx))
		require.NoError(t, transports[3].Close())
		network.SetLink(1, 3, rawnodetest.Link{})
		transports[3] = start(3, logs[3].Crashed(false))
		got, err := hosts[3].Propose(ctx, []byte("a"))
		require.NoError(t, err)
		require.Equal(t, 11, got.Value)
		for _, id := range peers {
			require.NoError(t, hosts[id].Stop(ctx))
			require.NoError(t, transports[id].Close())
		}
		time.Sleep(time.Second) // in virtual time: the ticker shared by the hosts ends
	})
}

// networked is a ledger without its file: the log has all commands.
func networked() (rawnode.StateMachine, error) {
	d := rawnodetest.Dir{FS: vfs.NewMem(), Path: ""}
	return openLedger("")(d)
}

func ExampleNetwork() {
	network := rawnodetest.NewNetwork()
	one, two := network.Transport(1), network.Transport(2)
	network.SetLink(1, 2, rawnodetest.Link{Cut: true})
	fmt.Println(one.HasAddress(2), one.HasAddress(3))
	fmt.Println(one.Close(), two.Close())
	// Output:
	// true false
	// <nil> <nil>
}

// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package transport_test

import (
	"fmt"
	"log"
	"os"
	"time"

	"github.com/weftraft/weft/internal/certs"
	"github.com/weftraft/weft/internal/wire"
	"github.com/weftraft/weft/rawnode/transport"
)

// printer is a group at a node: it prints what it is told.
type printer struct{ done chan struct{} }

func (p printer) Receive(m wire.Message) {
	fmt.Printf("group %d: a %v from node %d: %s\n", m.Group, m.Kind(), m.From, m.Body.(wire.Proposal).Data)
	close(p.done)
}

func (p printer) Unreachable(peer uint64) {
	fmt.Println("unreachable: node", peer)
	close(p.done)
}

// Two nodes that know each other by their certificates, and one that has none.
func ExampleNew() {
	dir, err := os.MkdirTemp("", "certs")
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = os.RemoveAll(dir) }() // it is a temporary directory
	// An authority and two certificates; operators keep ca-key.pem elsewhere.
	err = certs.Generate(dir, certs.ValidFor(24*time.Hour), certs.Subject{Cluster: 42, Node: 1}, certs.Subject{Cluster: 42, Node: 2})
	if err != nil {
		log.Fatal(err)
	}
	var nodes []*transport.TCP
	for id := uint64(1); id <= 2; id++ {
		t, err := transport.New(transport.Config{
			Cluster: 42, Node: id, Listen: "127.0.0.1:0",
			TLS: certs.NodeFiles(dir, id),
		})
		if err != nil {
			log.Fatal(err)
		}
		nodes = append(nodes, t)
	}
	nodes[0].SetPeer(2, nodes[1].Addr().String())
	nodes[1].SetPeer(1, nodes[0].Addr().String())

	p := printer{done: make(chan struct{})}
	if err := nodes[1].Join(7, p); err != nil {
		log.Fatal(err)
	}
	nodes[0].Send([]wire.Message{{Group: 7, From: 1, To: 2, Body: wire.Proposal{Data: []byte("hello")}}})
	<-p.done
	s := nodes[1].Stats().Peers[1][wire.ClassAppend]
	fmt.Println("messages received:", s.ReceivedMessages)

	// A node without a certificate is refused, and told why.
	stranger, err := transport.New(transport.Config{Cluster: 42, Node: 1, Listen: "127.0.0.1:0",
		Peers: map[uint64]string{2: nodes[1].Addr().String()}})
	if err != nil {
		log.Fatal(err)
	}
	nobody := printer{done: make(chan struct{})}
	if err := stranger.Join(7, nobody); err != nil {
		log.Fatal(err)
	}
	stranger.Send([]wire.Message{{Group: 7, From: 1, To: 2, Body: wire.Proposal{Data: []byte("hello")}}})
	<-nobody.done
	fmt.Println("refused, because of: plain or TLS", nodes[1].Stats().Refusals["plain or TLS"])
	for _, t := range append(nodes, stranger) {
		if err := t.Close(); err != nil {
			log.Fatal(err)
		}
	}
	// Output:
	// group 7: a proposal from node 1: hello
	// messages received: 1
	// unreachable: node 2
	// refused, because of: plain or TLS 1
}

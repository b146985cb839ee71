// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package transport

import (
	"fmt"
	"testing"
	"time"

	"github.com/weftraft/weft/internal/certs"
	"github.com/weftraft/weft/internal/wire"
)

// counting is a receiver that says when so much has arrived.
type counting struct{ left chan int }

func (c *counting) Receive(wire.Message) {
	n := <-c.left - 1
	c.left <- n
}

func (*counting) Unreachable(uint64) {}

// BenchmarkLink carries appends of one entry from one node to another, both in
// this process, a window of 16 at a time.
func BenchmarkLink(b *testing.B) {
	dir := b.TempDir()
	if err := certs.Generate(dir, certs.ValidFor(time.Hour), certs.Subject{Cluster: 5, Node: 1}, certs.Subject{Cluster: 5, Node: 2}); err != nil {
		b.Fatal(err)
	}
	for _, secure := range []bool{false, true} {
		for _, size := range []int{16, 1 << 10, 64 << 10, 1 << 20} {
			b.Run(fmt.Sprintf("tls=%t/size=%d", secure, size), func(b *testing.B) { benchmarkLink(b, dir, secure, size) })
		}
	}
}

func benchmarkLink(b *testing.B, dir string, secure bool, size int) {
	nodes := map[uint64]*TCP{}
	for id := uint64(1); id <= 2; id++ {
		cfg := Config{Cluster: 5, Node: id, Listen: "127.0.0.1:0"}
		if secure {
			cfg.TLS = certs.NodeFiles(dir, id)
		}
		t, err := New(cfg)
		if err != nil {
			b.Fatal(err)
		}
		defer func() { _ = t.Close() }() // of no interest here
		nodes[id] = t
	}
	nodes[1].SetPeer(2, nodes[2].Addr().String())
	nodes[2].SetPeer(1, nodes[1].Addr().String())
	box := &counting{left: make(chan int, 1)}
	if err := nodes[2].Join(1, box); err != nil {
		b.Fatal(err)
	}
	const window = 16
	index := uint64(0)
	messages := make([]wire.Message, window)
	payload := appends(1, 2, 0, size).Body.(wire.Raft).Entries[0].Data
	send := func() {
		for i := range messages {
			index++
			messages[i] = appends(1, 2, index, 0)
			messages[i].Body.(wire.Raft).Entries[0].Data = payload
		}
		box.left <- window
		nodes[1].Send(messages)
		for { // a turn's messages, then the next turn
			n := <-box.left
			if n == 0 {
				return
			}
			box.left <- n
			time.Sleep(10 * time.Microsecond)
		}
	}
	send()
	b.SetBytes(int64(window * size))
	b.ReportAllocs()
	for b.Loop() {
		send()
	}
}

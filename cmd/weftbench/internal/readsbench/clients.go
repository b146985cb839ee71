// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package readsbench

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/weftraft/weft/raft"
)

// op is a read or a write of a client.
type op struct {
	id    uint64
	node  uint64 // the node near the client
	key   int
	write bool
	// begun is the time at which the client asked, sent the time of the last request to the node,
	// done the time of the client's answer.
	begun, sent, done time.Duration
	// floor is the newest version in any answer before the op began, version the version in this
	// op's answer. A version is the index of a write.
	floor, version uint64
}

func (o *op) latency() time.Duration { return o.done - o.begun }

// retryAfter is the time after which a client asks again.
const retryAfter = 3 * time.Second

// begin makes an op of a client near a node.
func (g *group) begin(node uint64, key int, write bool) *op {
	g.lastOp++
	o := &op{id: g.lastOp, node: node, key: key, write: write, begun: g.c.Now(), floor: g.check.seen[key]}
	g.open[o.id] = o
	g.send(o)
	return o
}

// send asks the node near the client.
func (g *group) send(o *op) {
	o.sent = g.c.Now()
	g.c.After(g.net.Client/2, func() {
		// A node that is down does not answer, and the client asks again.
		if o.write {
			_ = g.c.Do(o.node, 0, func(rn *raft.RawNode) { _ = rn.Propose(g.payload(o)) })
			return
		}
		_ = g.c.Do(o.node, g.read, func(rn *raft.RawNode) { g.policy.read(g.node(o.node), rn, o) })
	})
}

// sweep repeats the requests of clients that have waited for retryAfter.
func (g *group) sweep() {
	g.c.After(retryAfter/4, func() {
		for _, id := range slices.Sorted(maps.Keys(g.open)) {
			if o := g.open[id]; g.c.Now()-o.sent >= retryAfter {
				g.send(o)
			}
		}
		g.sweep()
	})
}

// answer sends the answer of an op to the client.
func (r *replica) answer(o *op, version uint64) {
	g := r.g
	if g.open[o.id] != o {
		return // an earlier answer has arrived, after a retry or by another way
	}
	delete(g.open, o.id)
	g.c.After(g.net.Client/2, func() {
		o.version, o.done = version, g.c.Now()
		g.check.told(o)
		if g.done != nil {
			g.done(o)
		}
	})
}

// load makes the clients of every node ask one op after another, until stop returns true. next
// draws the next op.
func (g *group) load(clients int, stop func() bool, next func(node uint64) (key int, write bool)) {
	again := func(node uint64) {
		if !stop() {
			key, write := next(node)
			g.begin(node, key, write)
		}
	}
	before := g.done
	g.done = func(o *op) {
		if before != nil {
			before(o)
		}
		again(o.node)
	}
	for i := range g.nodes {
		for range clients {
			// Clients that all began at once would ask in step.
			g.c.After(time.Duration(g.rng.Int64N(int64(g.net.Client)+1)), func() { again(uint64(i) + 1) })
		}
	}
}

// checker checks the answers to clients. Writes are ordered by the log, so a history is
// linearizable if no answer has a version older than any answer before the op began, and every
// version in an answer is in the log.
type checker struct {
	// seen is the newest version of each key in an answer.
	seen []uint64
	// log is the key of the write at each index that any node has applied; read is the key by
	// version, for versions in answers.
	log, read map[uint64]int
	stale     int
	first     string // the first stale answer
}

func newChecker(keys int) checker {
	return checker{seen: make([]uint64, keys), log: map[uint64]int{}, read: map[uint64]int{}}
}

func (c *checker) committed(index uint64, key int) { c.log[index] = key }

func (c *checker) told(o *op) {
	if o.version > c.seen[o.key] {
		c.read[o.version] = o.key
	}
	if o.version < o.floor {
		c.stale++
		if c.first == "" {
			c.first = fmt.Sprintf("at %v node %d answered a read of key %d with version %d, and version %d had been told before it began at %v",
				o.done, o.node, o.key, o.version, o.floor, o.begun)
		}
	}
	c.seen[o.key] = max(c.seen[o.key], o.version)
}

// wrong returns the number of wrong answers. wrong must be called after all versions in answers may
// be applied.
func (c *checker) wrong() int {
	n := c.stale
	for index, key := range c.read {
		if k, ok := c.log[index]; !ok || k != key {
			n++
		}
	}
	return n
}

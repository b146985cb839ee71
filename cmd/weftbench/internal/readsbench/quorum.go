// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package readsbench

import "github.com/weftraft/weft/raft"

// messageSize is the bytes of a message between hosts.
const messageSize = 48

// readByQuorum asks all voters for the last write of the key on their disks. An acknowledged write
// is on the disks of a majority, and so on the disk of a voter that answers.
func readByQuorum(r *replica, _ *raft.RawNode, o *op) {
	g := r.g
	answers, index := 0, uint64(0)
	take := func(i uint64) {
		answers++
		index = max(index, i)
		if answers == g.majority() {
			r.answerAt(index, o)
		}
	}
	for _, v := range g.nodes[:len(g.nodes)-g.learners] {
		if v == r {
			take(r.disk.last[o.key])
			continue
		}
		g.c.Tell(r.id, v.id, messageSize, func() {
			i := v.disk.last[o.key]
			g.c.Tell(v.id, r.id, messageSize, func() { take(i) })
		})
	}
}

// A responder of Quorum Leases gives up its lease on a key when the responder takes a write of the
// key, and reads of the key go to the leader meanwhile. All other parts, for example the
// acknowledgements that a write needs, are parts of roster leases, which this driver uses.

// grant is a lease on a key that a node has granted again.
type grant struct {
	key  int
	from uint64
}

func readByQuorumLease(passive bool) func(r *replica, rn *raft.RawNode, o *op) {
	return func(r *replica, rn *raft.RawNode, o *op) {
		last := r.log.last[o.key]
		lead := r.g.lead(rn)
		holds := last <= r.commit && (passive || r.isGranted(o.key, last))
		if holds || lead == nil || lead == r || !r.g.responds(r.id) {
			readByCore(r, rn, o)
			return
		}
		r.redirect(lead, o, func(rn *raft.RawNode, answer func(version uint64)) {
			lead.ask(rn, o.key, func(index uint64) {
				lead.when(index, func() { answer(lead.latest[o.key]) })
			})
		})
	}
}

// redirect makes the leader answer a read, with the value.
func (r *replica) redirect(lead *replica, o *op, read func(rn *raft.RawNode, answer func(version uint64))) {
	g := r.g
	g.c.Tell(r.id, lead.id, messageSize, func() {
		_ = g.c.Do(lead.id, g.read, func(rn *raft.RawNode) {
			read(rn, func(version uint64) {
				g.c.Tell(lead.id, r.id, messageSize+g.value, func() { r.answer(o, version) })
			})
		})
	})
}

// isGranted reports whether a majority has granted the lease on a key after its last write.
func (r *replica) isGranted(key int, last uint64) bool {
	if last == 0 {
		return true
	}
	count := 0
	for _, v := range r.g.nodes[:len(r.g.nodes)-r.g.learners] {
		if v == r || r.grants[grant{key, v.id}] >= last {
			count++
		}
	}
	return count >= r.g.majority()
}

// grantAgain makes a node grant the leases on keys again after the node knows that their writes are
// committed.
func grantAgain(r *replica, from, to uint64) {
	g := r.g
	for i := from + 1; i <= to; i++ {
		key, ok := r.log.key(i)
		if !ok {
			continue
		}
		for _, p := range g.nodes {
			if p == r || !g.responds(p.id) {
				continue
			}
			g.c.Tell(r.id, p.id, messageSize, func() {
				x := grant{key, r.id}
				p.grants[x] = max(p.grants[x], i)
			})
		}
	}
}

// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"fmt"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/internal/silent"
)

// node is a RawNode of either library.
type node interface {
	Campaign() error
	Tick()
	Propose([]byte) error
	Step(*pb.Message) error
	HasReady() bool
	status()
	work() (messages []*pb.Message, committed int)
	compact()
	storageCalls() int
}

// loop is a Node of either library.
type loop interface {
	Propose(context.Context, []byte) error
	Stop()
	work() (committed int)
	storageCalls() int
}

// library makes nodes of one library.
type library struct {
	name    string
	newNode func(id uint64, voters []uint64) node
	newLoop func() loop
}

var libraries = []library{
	{"upstream", newUpstreamNode, newUpstreamLoop},
	{"weft", newWeftNode, newWeftLoop},
}

// row is one kind of operation.
type row struct {
	name  string
	bytes int64 // of payload per operation
	start func(library) *subject
}

// subject is a row made ready for one library.
type subject struct {
	op           func()
	between      func()     // done before every batch of operations and not counted, or nil
	storageCalls func() int // so far
	stop         func()     // or nil
}

// batch is how many operations run from one between to the next.
const batch = 64

func rows() []row {
	var rs []row
	for _, voters := range []int{1, 3, 5} {
		for _, size := range []int{16, 1 << 10, 64 << 10, 1 << 20} {
			rs = append(rs, row{fmt.Sprintf("Propose/voters=%d/size=%d", voters, size), int64(size), proposing(voters, size)})
		}
	}
	rs = append(rs, row{"FollowerHeartbeat", 0, heartbeat}, row{"FollowerAppend64", 64 * 128, append64})
	for _, voters := range []int{1, 3, 5} {
		rs = append(rs, row{fmt.Sprintf("Status/voters=%d", voters), 0, status(voters)})
	}
	return append(rs,
		row{"IdleTick/role=follower", 0, idleTick(false)},
		row{"IdleTick/role=leader", 0, idleTick(true)},
		row{"NodeOneMember", 128, oneNode},
	)
}

// cluster is nodes that hear each other at once.
type cluster []node

func newCluster(lib library, voters int) cluster {
	ids := make([]uint64, voters)
	for i := range ids {
		ids[i] = uint64(i + 1)
	}
	var c cluster
	for _, id := range ids {
		c = append(c, lib.newNode(id, ids))
	}
	check(c[0].Campaign())
	c.settle()
	return c
}

// settle delivers messages and does work until there is none, and returns what
// the first node committed.
func (c cluster) settle() int {
	committed := 0
	for busy := true; busy; {
		busy = false
		for i, n := range c {
			for n.HasReady() {
				busy = true
				messages, k := n.work()
				if i == 0 {
					committed += k
				}
				for _, m := range messages {
					check(c[m.GetTo()-1].Step(m))
				}
			}
		}
	}
	return committed
}

func (c cluster) storageCalls() (calls int) {
	for _, n := range c {
		calls += n.storageCalls()
	}
	return calls
}

func proposing(voters, size int) func(library) *subject {
	return func(lib library) *subject {
		c, payload := newCluster(lib, voters), make([]byte, size)
		op := func() {
			check(c[0].Propose(payload))
			if c.settle() != 1 {
				panic("the proposal was not committed")
			}
		}
		between := func() {
			for _, n := range c {
				n.compact()
			}
		}
		return &subject{op: op, between: between, storageCalls: c.storageCalls}
	}
}

// newFollower returns a follower of node 2 at term 1.
func newFollower(lib library) node {
	n := lib.newNode(1, []uint64{1, 2, 3})
	check(n.Step(&pb.Message{Type: pb.MsgHeartbeat.Enum(), From: new(uint64(2)), To: new(uint64(1)), Term: new(uint64(2))}))
	n.work()
	return n
}

func heartbeat(lib library) *subject {
	n := newFollower(lib)
	m := &pb.Message{Type: pb.MsgHeartbeat.Enum(), From: new(uint64(2)), To: new(uint64(1)), Term: new(uint64(2)), Commit: new(uint64(1))}
	op := func() {
		check(n.Step(m))
		n.work()
	}
	return &subject{op: op, storageCalls: n.storageCalls}
}

func append64(lib library) *subject {
	n, last, data := newFollower(lib), entryID{term: 1, index: 1}, make([]byte, 128)
	var messages []*pb.Message
	between := func() {
		for range batch {
			m := &pb.Message{
				Type: pb.MsgApp.Enum(), From: new(uint64(2)), To: new(uint64(1)), Term: new(uint64(2)),
				LogTerm: new(last.term), Index: new(last.index), Commit: new(last.index + 64),
			}
			for range 64 {
				last = entryID{term: 2, index: last.index + 1}
				m.Entries = append(m.Entries, &pb.Entry{Term: new(last.term), Index: new(last.index), Data: data})
			}
			messages = append(messages, m)
		}
	}
	op := func() {
		check(n.Step(messages[0]))
		n.work()
		n.compact() // so that what a growing slice costs does not blur the rest
		messages = messages[1:]
	}
	return &subject{op: op, between: between, storageCalls: n.storageCalls}
}

type entryID struct{ term, index uint64 }

func status(voters int) func(library) *subject {
	return func(lib library) *subject {
		c := newCluster(lib, voters)
		return &subject{op: c[0].status, storageCalls: c.storageCalls}
	}
}

func idleTick(leader bool) func(library) *subject {
	return func(lib library) *subject {
		c := newCluster(lib, 3)
		n := c[1]
		if leader {
			n = c[0]
		}
		return &subject{op: n.Tick, storageCalls: n.storageCalls}
	}
}

func oneNode(lib library) *subject {
	l, ctx, payload := lib.newLoop(), context.Background(), make([]byte, 128)
	for l.work() == 0 { // until it leads
	}
	proposals := make(chan struct{})
	go func() {
		for range proposals {
			check(l.Propose(ctx, payload))
		}
	}()
	op := func() {
		proposals <- struct{}{}
		for l.work() == 0 {
		}
	}
	return &subject{op: op, storageCalls: l.storageCalls, stop: func() {
		close(proposals)
		l.Stop()
	}}
}

// seed is the snapshot that a group of the voters starts from.
func seed(voters []uint64) *pb.Snapshot {
	return &pb.Snapshot{Metadata: &pb.SnapshotMetadata{
		Index: new(uint64(1)), Term: new(uint64(1)), ConfState: &pb.ConfState{Voters: voters},
	}}
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}

// quiet is the logger of all cores here.
type quiet = silent.Logger

// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package vnet

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"time"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/internal/silent"
	"github.com/weftraft/weft/internal/world"
	"github.com/weftraft/weft/raft"
)

// node is a core with its surroundings.
type node struct {
	c        *Cluster
	id       uint64
	index    int // in Cluster.nodes
	hardware Node
	rn       *raft.RawNode
	store    *raft.MemoryStorage
	disk     disk
	card     port
	wires    []*wire // by index of the other node; nil to itself
	draws    world.Draws

	// applied is the index of the state machine, digest its state: a checksum
	// of all applied entries.
	applied uint64
	digest  uint32

	// mark is the applied index at the last compaction of the log, sinceMark
	// the bytes of payload applied since.
	mark      uint64
	sinceMark int

	role   raft.StateType
	commit uint64
	dead   bool
	paused bool
	held   []func() // calls for the end of the pause
	// life numbers the node's processes: plans of an earlier process are void.
	life int
	cpu  cpu
	// flushing says that a look at the core is planned for the present instant.
	flushing bool
	// wakeAt is when the core wants to be polled; wakes numbers the plans.
	wakeAt time.Duration
	wakes  uint64
}

// start makes the core from what the disk has.
func (n *node) start() error {
	cfg := &raft.Config{
		ID:                       n.id,
		ElectionTick:             electionTicks,
		HeartbeatTick:            1,
		Storage:                  storage{n.store, n},
		Applied:                  n.applied,
		AsyncStorageWrites:       true,
		MaxSizePerMsg:            maxMessageSize,
		MaxCommittedSizePerReady: 64 << 20,
		MaxInflightMsgs:          maxInflight,
		CheckQuorum:              true,
		PreVote:                  true,
		Logger:                   silent.Logger{},
		Rand:                     n.draws,
		Clock:                    clock{n.c},
	}
	if n.c.opts.Configure != nil {
		n.c.opts.Configure(n.id, cfg)
	}
	rn, err := raft.NewRawNode(cfg)
	if err != nil {
		return fmt.Errorf("vnet: node %d: %w", n.id, err)
	}
	n.rn, n.role, n.commit = rn, raft.StateFollower, n.applied
	n.life++
	n.ticker(n.draws.Within(0, n.c.opts.Tick))
	return nil
}

// clock tells a core the virtual time.
type clock struct{ c *Cluster }

func (k clock) Now() time.Duration { return k.c.Now() }

// later plans a call of the node's present process: nothing if the process has
// ended by then, and after the pause if there is a pause.
func (n *node) later(d time.Duration, run func()) {
	life := n.life
	n.c.After(d, func() {
		if n.life == life {
			n.do(run)
		}
	})
}

// do lets something happen at the node and looks at the core afterwards.
func (n *node) do(run func()) {
	switch {
	case n.dead:
	case n.paused:
		n.held = append(n.held, run)
	default:
		run()
		n.touch()
	}
}

func (n *node) ticker(first time.Duration) {
	n.later(first, func() {
		n.rn.Tick()
		n.ticker(n.c.opts.Tick)
	})
}

// arrive takes a message from the network.
func (n *node) arrive(m *pb.Message) {
	if n.dead {
		n.notice(m)
		return
	}
	n.spend(n.hardware.Work, func() {
		if n.c.opts.OnArrive != nil {
			n.c.opts.OnArrive(n.id, m)
		}
		n.step(m)
	})
}

// notice tells the sender of a message that nobody is here.
func (n *node) notice(m *pb.Message) {
	from := n.c.node(m.GetFrom())
	if n.c.opts.Notice == 0 || from.dead {
		return
	}
	from.later(n.c.opts.Notice, func() {
		from.rn.ReportUnreachable(n.id)
		if m.GetType() == pb.MsgSnap {
			from.rn.ReportSnapshot(n.id, raft.SnapshotFailure)
		}
	})
}

func (n *node) step(m *pb.Message) {
	// An error says that the core refused the message, as is its right.
	if err := n.rn.Step(m); err != nil {
		n.c.refused++
	}
	if m.GetType() == pb.MsgSnap {
		n.c.node(m.GetFrom()).reported(n.id)
	}
}

// reported hears of the arrival of a snapshot.
func (n *node) reported(to uint64) {
	n.do(func() { n.rn.ReportSnapshot(to, raft.SnapshotFinish) })
}

// touch plans to look at the core after all events of the instant: messages
// that arrive together are handled together.
func (n *node) touch() {
	if n.flushing {
		return
	}
	n.flushing = true
	life := n.life
	n.c.After(0, func() {
		if n.life != life {
			return
		}
		n.flushing = false
		if !n.dead && !n.paused {
			n.flush()
		}
	})
}

// flush does the core's requests.
func (n *node) flush() {
	for n.rn.HasReady() {
		rd := n.rn.Ready()
		if rd.SoftState != nil && rd.RaftState != n.role {
			n.role = rd.RaftState
			n.c.changed(n)
		}
		if commit := rd.HardState.GetCommit(); commit > n.commit {
			n.commit = commit
			if n.c.opts.OnCommit != nil {
				n.c.opts.OnCommit(n.id, commit)
			}
		}
		for _, rs := range rd.ReadStates {
			if n.c.opts.OnRead != nil {
				n.c.opts.OnRead(n.id, rs)
			}
		}
		for _, m := range rd.Messages {
			switch m.GetTo() {
			case raft.LocalAppendThread:
				if n.c.opts.OnLog != nil && len(m.GetEntries()) > 0 {
					n.c.opts.OnLog(n.id, m.GetEntries())
				}
				n.disk.write(m)
			case raft.LocalApplyThread:
				n.apply(m)
			default:
				n.send(m)
			}
		}
	}
	n.planWake()
}

// send sends a message to a peer.
func (n *node) send(m *pb.Message) {
	to := n.c.node(m.GetTo())
	if to == nil || to == n {
		n.c.fail(fmt.Errorf("vnet: node %d sends %v to %d, which is no peer", n.id, m.GetType(), m.GetTo()))
		return
	}
	n.charge(n.hardware.Work)
	n.wires[to.index].send(m)
}

// deliver sends the responses of a storage thread whose work is done: to this core, or to other nodes.
func (n *node) deliver(responses []*pb.Message) {
	for _, m := range responses {
		if m.GetTo() == n.id {
			n.step(m)
		} else {
			n.send(m)
		}
	}
}

// planWake wakes the core at its next deadline.
func (n *node) planWake() {
	at, ok := n.rn.NextDeadline()
	if !ok {
		n.wakes++ // earlier plans are void
		n.wakeAt = 0
		return
	}
	if at = max(at, n.c.Now()+1); at == n.wakeAt {
		return
	}
	n.wakeAt = at
	n.wakes++
	wake := n.wakes
	n.later(at-n.c.Now(), func() {
		if n.wakes == wake {
			n.wakeAt = 0
			n.rn.Poll()
		}
	})
}

// apply lets the state machine take entries.
func (n *node) apply(m *pb.Message) {
	for _, e := range m.GetEntries() {
		n.applied = e.GetIndex()
		n.digest = digest(n.digest, e)
		n.sinceMark += len(e.GetData())
		n.c.compare(n)
		n.c.onApply(n, e)
	}
	n.compact()
	n.deliver(m.GetResponses())
}

// digestEnds is how much of each end of a payload a digest takes.
const digestEnds = 256

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// digest folds an entry into a checksum, of a large payload only the ends: the runs
// are measurements, and cores check whole payloads.
func digest(sum uint32, e *pb.Entry) uint32 {
	var id [16]byte
	binary.LittleEndian.PutUint64(id[:8], e.GetTerm())
	binary.LittleEndian.PutUint64(id[8:], e.GetIndex())
	sum = crc32.Update(sum, castagnoli, id[:])
	data := e.GetData()
	if len(data) > 2*digestEnds {
		sum = crc32.Update(sum, castagnoli, data[:digestEnds])
		data = data[len(data)-digestEnds:]
	}
	return crc32.Update(sum, castagnoli, data)
}

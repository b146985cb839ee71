// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package rafttest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	pb "go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"

	"github.com/weftraft/weft/internal/silent"
	"github.com/weftraft/weft/internal/world"
	"github.com/weftraft/weft/raft"
	"github.com/weftraft/weft/rafttest/internal/holdings"
)

// scriptNode is a node of a script: a disk, a core, and a host that does at
// once what it is not told to hold back.
type scriptNode struct {
	s    *script
	id   uint64
	disk *disk
	rn   *raft.RawNode // nil: down
	// plain says that it runs without coding.
	plain bool

	// held and appends are the log writer, heldApply and applies the state
	// machine.
	held, heldApply  bool
	appends, applies []*pb.Message

	applied uint64
	names   []string // what was applied, from the checkpoint on
	conf    *pb.ConfState
}

// scriptRand always draws the same, so that only campaigns asked for happen.
type scriptRand struct{}

// IntN implements [raft.Rand].
func (scriptRand) IntN(int) int { return 0 }

func (n *scriptNode) start() {
	n.disk.recover()
	n.disk.sync(len(n.disk.pending))
	cp := n.disk.live.checkpoint
	n.applied, n.conf, n.names = cp.GetMetadata().GetIndex(), cp.GetMetadata().GetConfState(), nil
	n.appends, n.applies, n.held, n.heldApply = nil, nil, false, false
	cfg := &raft.Config{
		ID: n.id, ElectionTick: 10, HeartbeatTick: 1, Storage: n.disk, Applied: n.applied, AsyncStorageWrites: true,
		MaxSizePerMsg: 1 << 20, MaxInflightMsgs: 256, Logger: silent.Logger{Die: die}, Rand: scriptRand{},
	}
	if !n.plain {
		cfg.Coding = &raft.Coding{Threshold: n.s.threshold, Memory: n.s.memory, Policy: &n.s.policy, Recorder: &n.s.events}
	}
	rn, err := raft.NewRawNode(cfg)
	if err != nil {
		n.s.rules.breaks("node %d does not start: %v", n.id, err)
		return
	}
	n.rn = rn
}

// payloadOf returns the payload of a name: the name, and bytes that follow from
// it.
func payloadOf(name string, size int) []byte {
	data := append([]byte(name), ' ')
	rng := rand.New(rand.NewPCG(world.Mix(world.HashBegin, data), uint64(size)))
	for len(data) < size {
		data = append(data, byte(rng.Uint32()))
	}
	return data
}

// nameOf returns the name of a payload, or an error if it is not the payload of
// any.
func nameOf(data []byte) (string, error) {
	end := slices.Index(data, ' ')
	if end < 0 {
		return "", fmt.Errorf("a payload of %d bytes without a name", len(data))
	}
	name := string(data[:end])
	if want := payloadOf(name, len(data)); string(want) != string(data) {
		return "", fmt.Errorf("the payload of %q is wrong", name)
	}
	return name, nil
}

// command does what a command about this node says.
func (n *scriptNode) command(cmd string, a scriptArgs) error {
	switch cmd {
	case "propose":
		if len(a.words) != 1 {
			return errors.New("propose takes a name and a size")
		}
		return n.rn.Propose(payloadOf(a.words[0], int(a.number("size", 60))))
	case "change":
		return n.change(a)
	case "leave":
		return n.rn.ProposeConfChange(&pb.ConfChangeV2{})
	case "campaign":
		return n.rn.Campaign()
	case "densify":
		n.rn.Densify(true)
	case "transfer":
		n.rn.TransferLeader(a.number("to", 0))
	case "snapshot":
		n.s.send(&pb.Message{Type: pb.MsgSnap.Enum(), From: &n.id, To: new(a.number("to", 0)), Term: new(n.rn.BasicStatus().GetTerm()),
			Snapshot: n.disk.live.checkpoint})
	case "tick":
		for range a.number("n", 1) {
			n.rn.Tick()
			n.work()
		}
	case "hold":
		n.held = true
	case "write":
		n.held = false
	case "hold-apply":
		n.heldApply = true
	case "apply":
		n.heldApply = false
	default:
		return n.machine(cmd, a)
	}
	return nil
}

// change proposes a change of the members.
func (n *scriptNode) change(a scriptArgs) error {
	changes, err := pb.ConfChangesFromString(strings.Join(a.words, " "))
	if err != nil {
		return err
	}
	cc := &pb.ConfChangeV2{Changes: changes}
	switch how := a.named["transition"]; how {
	case "":
	case "joint":
		cc.Transition = pb.ConfChangeTransitionJointImplicit.Enum()
	case "explicit":
		cc.Transition = pb.ConfChangeTransitionJointExplicit.Enum()
	default:
		return fmt.Errorf("transition is %q; joint and explicit are known", how)
	}
	return n.rn.ProposeConfChange(cc)
}

// machine does what happens to a machine and its disk.
func (n *scriptNode) machine(cmd string, a scriptArgs) error {
	switch cmd {
	case "crash":
		had := len(n.disk.pending)
		keep := min(int(a.number("keep", 0)), had)
		torn := n.disk.crash(keep)
		n.rn = nil
		fmt.Fprintf(&n.s.out, "%d of %d records stay, torn %v, log ends at %d, commit %d\n", keep, had, torn, n.disk.live.last(), n.disk.live.state.commit)
	case "restart":
		if n.rn != nil {
			return fmt.Errorf("node %d is up", n.id)
		}
		n.plain = slices.Contains(a.words, "plain")
		n.start()
	case "compact":
		n.compact(min(a.number("to", n.applied), n.applied))
	case "applied":
		fmt.Fprintf(&n.s.out, "%d: %v\n", n.applied, n.names)
	default:
		return fmt.Errorf("there is no command %q", cmd)
	}
	return nil
}

// compact writes a checkpoint and, when that is durable, cuts the log.
func (n *scriptNode) compact(to uint64) {
	n.checkpoint()
	n.disk.sync(len(n.disk.pending))
	n.disk.write(record{cut: to})
	n.disk.sync(len(n.disk.pending))
}

// checkpoint writes what is applied. A leader's host does so when the members
// change, as an older snapshot is of no use to a new one.
func (n *scriptNode) checkpoint() {
	term, ok := n.disk.live.term(n.applied)
	if !ok {
		n.s.rules.breaks("node %d applied entry %d, which is not written there", n.id, n.applied)
		return
	}
	n.disk.write(record{checkpoint: &pb.Snapshot{Metadata: &pb.SnapshotMetadata{
		Index: new(n.applied), Term: &term, ConfState: proto.Clone(n.conf).(*pb.ConfState)}}})
}

// work does what the core asks for, until it asks for nothing more.
func (n *scriptNode) work() {
	for n.rn != nil {
		switch {
		case n.rn.HasReady():
			for _, m := range n.rn.Ready().Messages {
				switch m.GetTo() {
				case raft.LocalAppendThread:
					n.writeAppend(m)
				case raft.LocalApplyThread:
					n.applies = append(n.applies, m)
				default:
					n.send(m)
				}
			}
		case !n.held && len(n.appends) > 0:
			n.disk.sync(len(n.disk.pending))
			done := n.appends
			n.appends = nil
			for _, m := range done {
				n.restored(m.GetSnapshot())
				n.respond(m)
			}
		case !n.heldApply && len(n.applies) > 0:
			m := n.applies[0]
			n.applies = n.applies[1:]
			n.apply(m.GetEntries())
			n.respond(m)
		default:
			return
		}
	}
}

// writeAppend writes, record by record, what is not durable before the log
// writer syncs.
func (n *scriptNode) writeAppend(m *pb.Message) {
	n.disk.writeAll(m.GetSnapshot(), m.GetEntries(), stateIn(m), false)
	n.appends = append(n.appends, m)
}

// send sends a message, which must vouch for nothing that is not durable.
func (n *scriptNode) send(m *pb.Message) {
	if err := vouchedUnits(n.disk, m); err != nil {
		n.s.rules.breaks("node %d %v", n.id, err)
	}
	n.s.send(m)
}

func (n *scriptNode) respond(m *pb.Message) {
	for _, r := range m.GetResponses() {
		if r.GetTo() != n.id {
			n.send(r)
			continue
		}
		_ = n.rn.Step(r) // refused only if it is out of date
	}
}

// restored takes a snapshot's state.
func (n *scriptNode) restored(snap *pb.Snapshot) {
	if raft.IsEmptySnap(snap) {
		return
	}
	if snap.GetMetadata().GetIndex() < n.applied {
		n.s.rules.breaks("node %d restores the state at %d after it applied %d", n.id, snap.GetMetadata().GetIndex(), n.applied)
	}
	n.applied, n.conf, n.names = snap.GetMetadata().GetIndex(), snap.GetMetadata().GetConfState(), []string{"..."}
}

// apply applies entries, and compares them with what others applied.
func (n *scriptNode) apply(ents []*pb.Entry) {
	for _, e := range ents {
		i, what := e.GetIndex(), "-"
		if i != n.applied+1 {
			n.s.rules.breaks("node %d applies entry %d after %d", n.id, i, n.applied)
		}
		n.applied = i
		switch {
		case e.GetType() != pb.EntryNormal:
			cc, err := holdings.Change(e)
			if err != nil {
				n.s.rules.breaks("node %d, entry %d: %v", n.id, i, err)
				return
			}
			n.conf = n.rn.ApplyConfChange(cc)
			n.s.truth.configured(i, n.conf)
			if n.rn.BasicStatus().RaftState == raft.StateLeader {
				n.checkpoint()
			}
			what = confString(n.conf)
		case len(e.GetData()) > 0:
			name, err := nameOf(e.GetData())
			if err != nil {
				n.s.rules.breaks("node %d, entry %d: %v", n.id, i, err)
			}
			what = name
		}
		if had, ok := n.s.rules.applied[i]; ok && had != what {
			n.s.rules.breaks("node %d applies %s at %d; another applied %s", n.id, what, i, had)
		}
		n.s.rules.applied[i] = what
		n.names = append(n.names, what)
	}
}

// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package exhaust

import (
	"fmt"
	"hash/maphash"
	"slices"
	"time"

	pb "go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"

	"github.com/weftraft/weft/ecraft"
	"github.com/weftraft/weft/internal/silent"
	"github.com/weftraft/weft/leases"
	"github.com/weftraft/weft/raft"
	"github.com/weftraft/weft/rafttest/internal/holdings"
)

// core is a process: a RawNode on a disk, and a host that does at once what the core
// asks for, unless the host is slow.
type core struct {
	s     *scenario
	id    uint64
	clock *clock
	store store
	rn    *raft.RawNode
	host  host
	disk  image
	edge  *edge // of the input under way
	// tear is the number of entries that the next write leaves on disk, because power
	// fails in that write; -1: power does not fail.
	tear int
	// slow says that the host applies no change of the members now, hung that the disk hangs.
	slow, hung bool
}

// host is what the host of a core knows beside the disk.
type host struct {
	boots   int
	applied uint64
	conf    *pb.ConfState
	// queue is the entries that the core handed out and the host has not applied.
	queue []*pb.Entry
	// applies is the messages that brought them to the state machine's thread.
	applies []*pb.Message
	// appends is the messages to the thread that writes, while the disk hangs.
	appends []*pb.Message
	// unreported says that Advance has not followed a Ready.
	unreported bool
}

// store is a disk, with a snapshot of what the host has applied by the time that the core
// asks.
type store struct {
	*raft.MemoryStorage
	c *core
}

// Snapshot implements [raft.Storage].
func (s store) Snapshot() (*pb.Snapshot, error) {
	h := &s.c.host
	if h.applied > s.c.disk.last() {
		return nil, raft.ErrSnapshotTemporarilyUnavailable
	}
	return &pb.Snapshot{Metadata: &pb.SnapshotMetadata{Index: new(h.applied), Term: new(s.c.disk.termAt(h.applied)), ConfState: pb.EnsureConfState(h.conf)}}, nil
}

// clock tells the time of the world, from an origin of its own.
type clock struct{ now time.Duration }

// Now implements [raft.Clock].
func (c *clock) Now() time.Duration { return c.now }

// patience draws election timeouts: a node's number, so that timeouts differ.
type patience uint64

// IntN implements [raft.Rand].
func (p patience) IntN(n int) int { return int(p-1) % n }

// level assigns units so that any so many followers restore an entry, and expects answers
// at once.
type level int

// Assign implements [ecraft.Policy].
func (l level) Assign(r *ecraft.Round, units []int) ecraft.Plan {
	most := (r.Voters + 1) / 2
	for i := range units {
		units[i] = r.Layout.UnitsAt(min(int(l), most))
	}
	return ecraft.Plan{Level: int(l), Predicted: tick / 100, Silence: tick / 10}
}

// start begins a process on what a disk has.
func start(s *scenario, id uint64, boots int, d *image, now time.Duration) (*core, error) {
	c := &core{s: s, id: id, clock: &clock{now}, disk: *d, tear: -1}
	c.store = store{d.storage(), c}
	c.host = host{boots: boots, applied: d.base, conf: d.conf}
	cfg := &raft.Config{
		ID: id, ElectionTick: s.ElectionTick, HeartbeatTick: 1, Storage: c.store, Applied: d.base,
		MaxSizePerMsg: 1 << 20, MaxInflightMsgs: 256, PreVote: true, StepDownOnRemoval: true, AsyncStorageWrites: s.Host == threads, ConfChangesFirst: s.Host == appliesFirst, CheckQuorum: s.CheckQuorum || s.Leases,
		Logger: silent.Logger{}, Rand: patience(id),
	}
	if s.Level > 0 {
		cfg.Coding = &raft.Coding{Threshold: threshold, Policy: level(s.Level)}
	}
	if s.Early {
		cfg.MaxEarlyApplySize = 1 << 20
	}
	if s.Clock {
		cfg.Clock = c.clock
	}
	if s.Leases {
		cfg.Clock = c.clock
		cfg.Leases = &raft.Leases{Tick: tick, Boot: uint64(boots), Lease: time.Duration(s.ElectionTick) * tick, Fail: 4 * tick, Resolution: time.Microsecond, Notes: s.Notes}
		if len(s.Responders) > 0 {
			cfg.Leases.Wanted = []leases.Want{{Nodes: s.Responders}}
		}
	}
	rn, err := raft.NewRawNode(cfg)
	c.rn = rn
	return c, err
}

// The settings that all scenarios share.
const (
	threshold = 16 // bytes, from which payloads are coded
	tick      = 200 * time.Millisecond
)

// take gives the core an input, and does what the core then asks for.
func (c *core) take(in input) (e *edge) {
	c.edge = &edge{}
	e = c.edge
	defer func() {
		if x := recover(); x != nil {
			e.broken = fmt.Sprintf("node %d panics: %v", c.id, x)
		}
	}()
	c.clock.now, c.slow, c.hung = in.at, in.slow, in.hung
	c.tear = -1
	switch in.kind {
	case inStep:
		c.step(in.msg.pb)
	case inTorn:
		c.tear = in.arg
		c.step(in.msg.pb)
	case inTick:
		c.rn.Tick()
	case inCampaign:
		_ = c.rn.Campaign() // refused: nothing happens
	case inPropose:
		_ = c.rn.Propose(payload(in.arg))
	case inChange:
		_ = c.rn.ProposeConfChange(c.s.Changes[in.arg].V2())
	case inTransfer:
		c.rn.TransferLeader(uint64(in.arg))
	case inSnapshotDone:
		c.rn.ReportSnapshot(uint64(in.arg), raft.SnapshotFinish)
	case inSnapshotLost:
		c.rn.ReportSnapshot(uint64(in.arg), raft.SnapshotFailure)
	case inCompact:
		c.compact()
	case inRead:
		c.rn.ReadIndex([]byte{byte(in.arg)})
	case inSync:
		list := c.host.appends
		c.host.appends = nil
		for _, m := range list {
			c.thread(m)
		}
	}
	c.work()
	return e
}

func (c *core) step(m *pb.Message) {
	switch m.GetType() {
	case pb.MsgProp, pb.MsgReadIndex, pb.MsgTransferLeader:
		m = proto.CloneOf(m) // a core changes what it passes on, and this may arrive again
	}
	if err := c.rn.Step(m); err != nil && !acceptable(err) {
		c.wrong("node %d refuses %v of node %d: %v", c.id, m.GetType(), m.GetFrom(), err)
	}
}

func (c *core) wrong(format string, args ...any) {
	if c.edge.broken == "" {
		c.edge.broken = fmt.Sprintf(format, args...)
	}
}

// work does what the core asks for until it asks for nothing more, or the host is slow.
func (c *core) work() {
	for {
		switch {
		case c.mayApply():
			c.apply()
		case c.host.unreported && (c.s.Host == reportsFirst || len(c.host.queue) == 0):
			c.host.unreported = false
			c.rn.Advance(raft.Ready{})
		case !c.host.unreported && c.rn.HasReady():
			if c.ready(c.rn.Ready()); c.tear >= 0 {
				return
			}
		default:
			return
		}
	}
}

// ready does what a Ready asks for, apart from what is to be applied.
func (c *core) ready(rd raft.Ready) {
	for _, r := range rd.ReadStates {
		c.edge.reads = append(c.edge.reads, answer{int(r.RequestCtx[0]), r.Index})
	}
	if c.s.Host == threads {
		for _, m := range rd.Messages {
			c.thread(m)
		}
		return
	}
	c.host.unreported = true
	if c.write(rd.Snapshot, rd.Entries, rd.HardState); c.tear >= 0 {
		return
	}
	c.edge.sent = append(c.edge.sent, rd.Messages...)
	c.hand(rd.CommittedEntries)
}

// thread takes a message of a host with a thread for writes and another for the state machine.
func (c *core) thread(m *pb.Message) {
	switch m.GetTo() {
	case raft.LocalAppendThread:
		if c.hung && c.tear < 0 {
			c.host.appends = append(slices.Clip(c.host.appends), m)
			return
		}
		if c.tear >= 0 && len(m.GetEntries()) == 0 {
			c.tear = -1
		}
		if c.write(m.GetSnapshot(), m.GetEntries(), &pb.HardState{Term: m.Term, Vote: m.Vote, Commit: m.Commit}); c.tear < 0 {
			c.respond(m)
		}
	case raft.LocalApplyThread:
		if c.tear < 0 {
			c.host.applies = append(c.host.applies, m)
			c.hand(m.GetEntries())
		}
	default:
		c.edge.sent = append(c.edge.sent, m)
	}
}

// respond delivers the responses that a message to a thread has.
func (c *core) respond(m *pb.Message) {
	for _, r := range m.GetResponses() {
		if r.GetTo() != c.id {
			c.edge.sent = append(c.edge.sent, r)
		} else {
			_ = c.rn.Step(r) // refused only if it is out of date
		}
	}
}

// hand takes entries to be applied.
func (c *core) hand(ents []*pb.Entry) {
	c.host.queue = append(c.host.queue, ents...)
	for _, e := range ents {
		payload := len(e.GetData()) > 0 && e.GetType() == pb.EntryNormal
		c.edge.handed = append(c.edge.handed, handed{e.GetIndex(), hashOf(uint64(e.GetType()), e.GetData()), payload})
	}
}

// mayApply reports whether the next step of the host is to apply an entry.
func (c *core) mayApply() bool {
	if len(c.host.queue) == 0 || c.s.Host == reportsFirst && c.host.unreported {
		return false
	}
	return !c.slow || c.host.queue[0].GetType() == pb.EntryNormal
}

func (c *core) apply() {
	e := c.host.queue[0]
	c.host.queue = slices.Clone(c.host.queue[1:])
	if e.GetIndex() != c.host.applied+1 {
		c.wrong("node %d is handed entry %d behind entry %d", c.id, e.GetIndex(), c.host.applied)
	}
	c.host.applied = e.GetIndex()
	if cc := changeOf(e); cc != nil {
		c.host.conf = c.rn.ApplyConfChange(cc)
		c.edge.changes = true
	}
	if c.s.Host != threads {
		return
	}
	if m := c.host.applies[0]; m.GetEntries()[len(m.GetEntries())-1].GetIndex() == e.GetIndex() {
		c.host.applies = slices.Clone(c.host.applies[1:])
		c.respond(m)
	}
}

// write makes durable what a core asks for. If power fails, so many of the entries are on
// disk, and the hard state is not.
func (c *core) write(snap *pb.Snapshot, ents []*pb.Entry, hs *pb.HardState) {
	if !raft.IsEmptySnap(snap) {
		meta := snap.GetMetadata()
		must(c.store.ApplySnapshot(snap))
		c.disk = image{base: meta.GetIndex(), baseTerm: meta.GetTerm(), conf: meta.GetConfState(), term: c.disk.term, vote: c.disk.vote, commit: c.disk.commit}
		c.host.applied, c.host.conf, c.host.queue, c.host.applies = meta.GetIndex(), meta.GetConfState(), nil, nil
	}
	if c.tear >= 0 {
		c.append(ents[:min(c.tear, len(ents))])
		return
	}
	c.append(ents)
	if raft.IsEmptyHardState(hs) {
		return
	}
	d := &c.disk
	if hs.GetTerm() < d.term || hs.GetTerm() == d.term && d.vote != 0 && hs.GetVote() != d.vote || hs.GetCommit() < d.commit {
		c.wrong("node %d goes from hard state %d/%d/%d to %v", c.id, d.term, d.vote, d.commit, hs)
	}
	must(c.store.SetHardState(hs))
	d.term, d.vote, d.commit = hs.GetTerm(), hs.GetVote(), hs.GetCommit()
}

// append writes entries, which must be consecutive and behind what is committed.
func (c *core) append(ents []*pb.Entry) {
	if len(ents) == 0 {
		return
	}
	first, last := ents[0].GetIndex(), c.disk.last()
	if first > last+1 || first <= c.disk.commit {
		c.wrong("node %d writes entries from %d on behind a log that ends at %d and is committed up to %d", c.id, first, last, c.disk.commit)
		return
	}
	for i, e := range ents {
		if e.GetIndex() != first+uint64(i) {
			c.wrong("one Ready of node %d has entry %d (%v) where entry %d belongs: %s", c.id, e.GetIndex(), e.GetType(), first+uint64(i), raft.DescribeEntries(ents, short))
			return
		}
	}
	must(c.store.Append(ents))
	log := slices.Clip(c.disk.log[:first-c.disk.base-1])
	for _, e := range ents {
		log = append(log, read(c.id, e))
	}
	c.disk.log = log
}

// compact writes a checkpoint of what is applied, and cuts the log there.
func (c *core) compact() {
	to := min(c.host.applied, c.disk.last()) // rule E4 of early applies
	if to <= c.disk.base || to < c.host.applied {
		return
	}
	_, err := c.store.CreateSnapshot(to, c.host.conf, nil)
	must(err)
	must(c.store.Compact(to))
	c.disk.log = slices.Clone(c.disk.log[to-c.disk.base:])
	c.disk.base, c.disk.baseTerm, c.disk.conf = to, must2(c.store.Term(to)), c.host.conf
}

func changeOf(e *pb.Entry) *pb.ConfChangeV2 {
	if e.GetType() == pb.EntryNormal {
		return nil
	}
	return must2(holdings.Change(e))
}

// payload returns the payload of a name: coded if the name is positive.
func payload(name int) []byte {
	if name < 0 {
		return fmt.Appendf(nil, "p%d", -name)
	}
	return fmt.Appendf(nil, "coded payload %d of some length", name)
}

func short(data []byte) string { return fmt.Sprintf("%d bytes", len(data)) }

// seed makes all hashes of a process.
var seed = maphash.MakeSeed()

func hashOf(kind uint64, data []byte) uint64 { return mix(mix(0, kind), maphash.Bytes(seed, data)) }

// mix puts a word into a hash.
func mix(h, x uint64) uint64 {
	h ^= x + 0x9e3779b97f4a7c15
	h = (h ^ h>>30) * 0xbf58476d1ce4e5b9
	h = (h ^ h>>27) * 0x94d049bb133111eb
	return h ^ h>>31
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

func must2[T any](x T, err error) T {
	must(err)
	return x
}

// willBe returns the disk as it will be when all that waits is written.
func (c *core) willBe() image {
	d := c.disk
	for _, m := range c.host.appends {
		if meta := m.GetSnapshot().GetMetadata(); !raft.IsEmptySnap(m.GetSnapshot()) {
			d = image{base: meta.GetIndex(), baseTerm: meta.GetTerm(), conf: meta.GetConfState()}
		}
		if ents := m.GetEntries(); len(ents) > 0 {
			log := slices.Clip(d.log[:ents[0].GetIndex()-d.base-1])
			for _, e := range ents {
				log = append(log, read(c.id, e))
			}
			d.log = log
		}
	}
	return d
}

// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package coding

import (
	"bytes"
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"go.etcd.io/raft/v3/quorum"
	pb "go.etcd.io/raft/v3/raftpb"
	"go.etcd.io/raft/v3/tracker"

	"github.com/weftraft/weft/ecraft"
	"github.com/weftraft/weft/raft/internal/extend"
)

// fake is the Raft of one node, as far as its coder sees it: node 1 of {1, 2, 3}.
// A test changes the fields and tells the coder.
type fake struct {
	t *testing.T
	*Coder
	entries                       []*pb.Entry // from index 1 on
	committed, applied, snapshots uint64
	compacted                     uint64 // as the log says; the entries are there
	term, lead                    uint64
	role                          extend.Role
	members                       tracker.ProgressTracker
	changes                       []uint64
	newest                        map[uint64]struct{}
	sent                          []*pb.Message // since this was last looked at
	snapshot                      *pb.Snapshot
	heir                          uint64
}

func newFake(t *testing.T, edit ...func(*Config)) *fake {
	t.Helper()
	f := &fake{t: t, term: 1, members: tracker.MakeProgressTracker(8, 0)}
	f.members.Voters[0] = quorum.MajorityConfig{}
	for id := uint64(1); id <= 3; id++ {
		f.join(id, false)
	}
	cfg := Config{
		Threshold: 1, Policy: ecraft.Levelled{}, Memory: 1 << 20, GossipDelay: 1, ElectionTick: 10, HeartbeatTick: 1, MaxSizePerMsg: noLimit,
		Record: func(Event) {}, Logger: testLogger{t},
	}
	for _, e := range edit {
		e(&cfg)
	}
	f.Coder = New(1, cfg, fakeLog{f}, fakeView{f})
	return f
}

func (f *fake) join(id uint64, learner bool) {
	if !learner {
		f.members.Voters[0][id] = struct{}{}
	}
	f.members.Progress[id] = &tracker.Progress{Next: 1, State: tracker.StateReplicate, IsLearner: learner, RecentActive: true}
}

// follow has the node follow another, leads has it lead members that read envelopes.
func (f *fake) follow(leader uint64) {
	f.term++
	f.role, f.lead = extend.Follower, leader
	f.Turned(f.role, f.term, leader)
}

func (f *fake) leads() *leading {
	f.term++
	f.role, f.lead = extend.Leader, f.id
	f.Turned(f.role, f.term, f.lead)
	for id := range f.members.Progress {
		if id != f.id {
			a := f.accounts.account(id)
			a.setCapable(true)
			a.known = true
		}
	}
	return f.Coder.leads
}

// takes has a follower take entries, and do what follows.
func (f *fake) takes(commit uint64, ents ...*pb.Entry) {
	f.t.Helper()
	require.NoError(f.t, f.Accept(ents))
	f.entries = append(f.entries, ents...)
	f.Appended(ents)
	f.committed = max(f.committed, commit)
	f.Handled(&pb.Message{Type: pb.MsgApp.Enum(), Commit: &commit})
	f.perform()
}

// proposes has a leader append entries with these payloads.
func (f *fake) proposes(payloads ...[]byte) {
	for _, p := range payloads {
		e := named(ecraft.ID{Term: f.term, Index: f.log.Last().Index + 1}, p)
		e.Type = pb.EntryNormal.Enum()
		f.Seal([]*pb.Entry{e})
		f.entries = append(f.entries, e)
		f.Appended([]*pb.Entry{e})
	}
}

// perform carries out what the coder asks for: messages are kept, entries appended,
// and the rest is let go of.
func (f *fake) perform() (asked []extend.Effect) {
	asked = f.Asked()
	for _, e := range asked {
		switch e.Do {
		case extend.Send, extend.Vouch:
			f.sent = append(f.sent, e.Msg)
		case extend.Append:
			e.Ent.Index = new(f.log.Last().Index + 1)
			f.entries = append(f.entries, e.Ent)
			f.Appended([]*pb.Entry{e.Ent})
		}
	}
	return asked
}

type testLogger struct{ *testing.T }

func (l testLogger) Warningf(format string, args ...any) { l.Logf(format, args...) }

type fakeLog struct{ f *fake }

func (l fakeLog) First() uint64                { return l.f.compacted + 1 }
func (l fakeLog) Committed() uint64            { return l.f.committed }
func (l fakeLog) Applied() uint64              { return l.f.applied }
func (l fakeLog) Released(uint64) uint64       { return 0 }
func (l fakeLog) Stored() (first, last uint64) { return 1, l.Last().Index }

func (l fakeLog) Last() ecraft.ID {
	if n := len(l.f.entries); n > 0 {
		return idOf(l.f.entries[n-1])
	}
	return ecraft.ID{}
}

func (l fakeLog) Term(i uint64) (uint64, error) {
	if i == 0 || i > uint64(len(l.f.entries)) {
		return 0, errNone
	}
	return l.f.entries[i-1].GetTerm(), nil
}

func (l fakeLog) Slice(lo, hi, most uint64) ([]*pb.Entry, error) {
	return extend.Limit(l.f.entries[lo-1:hi-1], most), nil
}

func (l fakeLog) Snapshot() (*pb.Snapshot, error) {
	l.f.snapshots++
	if l.f.snapshot == nil {
		return nil, errNone
	}
	return l.f.snapshot, nil
}

type fakeView struct{ f *fake }

func (v fakeView) Term() uint64                  { return v.f.term }
func (v fakeView) Lead() uint64                  { return v.f.lead }
func (v fakeView) Role() extend.Role             { return v.f.role }
func (v fakeView) Electorate() extend.Electorate { return v }
func (v fakeView) Transferee() (uint64, bool)    { return v.f.heir, false }
func (v fakeView) Held() *extend.Change          { return nil }

func (v fakeView) Progress(id uint64) (tracker.Progress, bool) {
	if pr := v.f.members.Progress[id]; pr != nil {
		return *pr, true
	}
	return tracker.Progress{}, false
}

func (v fakeView) Sets() []quorum.MajorityConfig   { return v.f.members.Voters[:] }
func (v fakeView) Coming() []quorum.MajorityConfig { return nil }
func (v fakeView) Torn() bool                      { return false }
func (v fakeView) Smallest() int                   { return len(v.f.members.Voters[0]) }
func (v fakeView) Expects(uint64) bool             { return false }
func (v fakeView) Config() tracker.Config          { return v.f.members.Config }
func (v fakeView) Brings() []uint64                { return nil }
func (v fakeView) InForceTo(applied uint64) uint64 { return applied }
func (v fakeView) MayFollow() error                { return nil }
func (v fakeView) Everyone() []uint64              { return slices.Sorted(maps.Keys(v.f.members.Progress)) }

func (v fakeView) Settled(uint64) (*pb.ConfState, uint64, bool) { return nil, 0, false }

func (v fakeView) FirstPending() uint64 {
	if len(v.f.changes) == 0 {
		return 0
	}
	return v.f.changes[0]
}

func (v fakeView) Heirs() (ids []uint64, since uint64) {
	if v.f.newest == nil {
		return slices.Sorted(maps.Keys(v.f.members.Voters.IDs())), 0
	}
	return slices.Sorted(maps.Keys(v.f.newest)), slices.Max(v.f.changes)
}

// codedFor is the header of an entry of node 2 with a unit for each of 1 and 3.
func codedFor(payload []byte) *ecraft.Header {
	return &ecraft.Header{
		Kind: ecraft.Coded, PayloadLen: len(payload), PayloadCRC: ecraft.Checksum(payload),
		Layout: ecraft.NewLayout(3, 2), Encoder: 2, Members: []uint64{1, 3}, Units: []uint8{1, 1},
	}
}

// coded is an entry of node 2, as node 1 stores it.
func coded(id ecraft.ID, payload []byte) *pb.Entry {
	h := codedFor(payload)
	e := named(id, ecraft.Seal(nil, h, 1, 0, ecraft.NewCodeword(h, payload), nil))
	e.Type = pb.EntryNormal.Enum()
	return e
}

func text(n int) []byte { return bytes.Repeat([]byte("payload "), n/8) }

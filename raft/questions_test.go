// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package raft

import (
	"fmt"
	"hash/crc32"
	"math/rand/v2"
	"reflect"
	"sort"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.etcd.io/raft/v3/tracker"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/ecraft"
	"github.com/weftraft/weft/internal/silent"
	"github.com/weftraft/weft/raft/internal/electorate"
)

// A question changes nothing: whoever asks it twice gets the same answer, and the
// state before and after is the same, down to every unexported field. The nodes are
// those of a group that codes and loses messages, in whatever state chance leads to.
func TestQuestionsChangeNothing(t *testing.T) {
	for seed := range uint64(6) {
		g := newAsked(t, seed)
		roles := map[string]int{}
		for step := range 1500 {
			g.act()
			if step%25 == 0 {
				rn := g.nodes[1+g.rng.IntN(3)]
				roles[fmt.Sprintf("%T", rn.raft.role)]++
				checkQuestions(t, rn)
			}
		}
		require.NotZero(t, roles["*raft.leader"])
		require.NotZero(t, roles["*raft.follower"])
		require.NotZero(t, roles["*raft.candidate"])
	}
}

// checkQuestions asks a node everything that is named as a question.
func checkQuestions(t *testing.T, rn *RawNode) {
	t.Helper()
	r := rn.raft
	next, last := r.log.committed+1, r.log.last()
	payload := &pb.Entry{Data: make([]byte, 300)}
	leave := &pb.ConfChangeV2{}
	add := &pb.ConfChangeV2{Changes: []*pb.ConfChangeSingle{{Type: pb.ConfChangeAddNode.Enum(), NodeId: new(uint64(4))}}}
	vote := &pb.Message{Type: pb.MsgVote.Enum(), From: new(uint64(2)), Term: new(r.term + 1)}
	questions := map[string]func() any{
		"HasReady":     func() any { return rn.HasReady() },
		"offer":        func() any { return deepText(rn.offer()) },
		"Status":       func() any { return rn.Status().String() },
		"BasicStatus":  func() any { return deepText(rn.BasicStatus()) },
		"CodingStatus": func() any { return deepText(rn.CodingStatus()) },
		"NextDeadline": func() any { at, ok := rn.NextDeadline(); return fmt.Sprint(at, ok) },
		"WithProgress": func() any {
			var b strings.Builder
			rn.WithProgress(func(id uint64, _ ProgressType, pr tracker.Progress) {
				fmt.Fprintln(&b, id, pr.Match, pr.Next, pr.State)
			})
			return b.String()
		},
		"expects":     func() any { return rn.expects(vote) },
		"releasable":  func() any { return fmt.Sprint(r.log.releasable(true), r.log.releasable(false)) },
		"nextCommit":  func() any { return deepText(r.log.nextCommitted(true)) },
		"unapplied":   func() any { return r.log.anyUnappliedConfChange() },
		"promotable":  func() any { return r.promotable() },
		"mayCampaign": func() any { return r.mayCampaign() },
		"mayVote":     func() any { return r.mayVote(vote) },
		"refuses":     func() any { return r.refusesCampaigns() },
		"electorate": func() any {
			e := r.members
			_, brings, err := e.After(add)
			heirs, since := e.Heirs()
			return fmt.Sprint(e.Sets(), e.Voters(), e.Everyone(), e.Expects(4), e.Tally(map[uint64]bool{1: true}), e.Committable(), e.Active(),
				e.IsAlone(1), e.MayWin(1, true), e.Brings(), heirs, since, e.MayFollow(), e.MustLeave(), e.InForceTo(last.Index), e.HoldsChange(), brings, err)
		},
		"MayCampaign": func() any { return r.extension.MayCampaign() },
		"MayRestore":  func() any { return r.extension.MayRestore(ecraft.ID{Term: last.Term, Index: last.Index}) },
		"MayLead":     func() any { return r.extension.MayLead() },
		"Committable": func() any { return r.extension.Committable(last.Index) },
		"Releasable":  func() any { return r.extension.Releasable(last.Index) },
		"ShownMatch":  func() any { return fmt.Sprint(r.extension.ShownMatch(2, next), r.extension.ShownMatch(3, next)) },
		"MayVote":     func() any { return fmt.Sprint(r.extension.MayVote(vote, false), r.extension.MayVote(vote, true)) },
		"MayRun":      func() any { return r.extension.MayRun() },
		"LeaderIndex": func() any { return r.extension.LeaderIndex(&pb.Message{}) },
		"CommittableBy": func() any {
			return r.extension.CommittableBy(last.Index, func(id uint64) uint64 { return next - 1 + id })
		},
		"LeaseStatus": func() any { return deepText(rn.LeaseStatus()) },
		"Claims":      func() any { return r.extension.Claims(vote) },
		"shown": func() any {
			return fmt.Sprint(shownLog{r.log}.Released(1), shownLog{r.log}.Last(), shownRaft{r}.Held())
		},
	}
	if _, ok := r.role.(*recoverer); ok {
		questions["Recovered"] = func() any { cut, done := r.extension.Recovered(); return fmt.Sprint(cut, done) }
	}
	if l := r.leading(); l != nil {
		questions["Room"] = func() any { return fmt.Sprint(l.extension.Room(2, next), l.extension.Room(3, last.Index+1)) }
		questions["MayPropose"] = func() any { return l.extension.MayPropose(payload) }
		questions["MayHandTo"] = func() any { return fmt.Sprint(l.extension.MayHandTo(2), l.extension.MayHandTo(3)) }
		questions["MayChange"] = func() any {
			return fmt.Sprint(l.extension.MayChange(l.change(add)), l.extension.MayChange(l.change(leave)), l.extension.MayChange(l.leave()))
		}
		questions["committable"] = func() any { return l.committable() }
		questions["objection"] = func() any { return l.objection(add) + l.objection(leave) }
		questions["heldChange"] = func() any { return fmt.Sprint(deepText(l.heldChange()), l.mustLeaveJoint()) }
	}
	for name, ask := range questions {
		before := deepText(rn)
		first := ask()
		require.Equal(t, first, ask(), "%s, asked twice", name)
		if after := deepText(rn); before != after {
			i := 0
			for i < len(before) && i < len(after) && before[i] == after[i] {
				i++
			}
			t.Fatalf("%s changed the state of a %T:\n%.300s\nbecame\n%.300s", name, rn.raft.role, before[max(0, i-150):], after[max(0, i-150):])
		}
	}
}

// asked is a group of three that code, whose messages are lost and delayed by chance.
type asked struct {
	t     *testing.T
	rng   *rand.Rand
	nodes map[int]*RawNode
	disks map[int]*MemoryStorage
	wire  []*pb.Message
}

func newAsked(t *testing.T, seed uint64) *asked {
	g := &asked{t: t, rng: rand.New(rand.NewPCG(seed, 1)), nodes: map[int]*RawNode{}, disks: map[int]*MemoryStorage{}}
	for id := 1; id <= 3; id++ {
		ms := NewMemoryStorage()
		require.NoError(t, ms.ApplySnapshot(&pb.Snapshot{Metadata: &pb.SnapshotMetadata{
			Index: new(uint64(1)), Term: new(uint64(1)), ConfState: &pb.ConfState{Voters: []uint64{1, 2, 3}},
		}}))
		g.disks[id] = ms
		g.boot(id)
	}
	return g
}

func (g *asked) boot(id int) {
	rn, err := NewRawNode(&Config{
		ID: uint64(id), ElectionTick: 10, HeartbeatTick: 1, Storage: g.disks[id], MaxInflightMsgs: 8, MaxSizePerMsg: 1 << 14,
		CheckQuorum: true, PreVote: g.rng.IntN(2) == 0, Rand: g.rng, Logger: silent.Logger{},
		Coding: &Coding{Threshold: 64, Memory: 1 << 16, Policy: ecraft.Levelled{}},
	})
	require.NoError(g.t, err)
	g.nodes[id] = rn
}

// act does one thing at random, and has every node work.
func (g *asked) act() {
	id := 1 + g.rng.IntN(3)
	rn := g.nodes[id]
	switch n := g.rng.IntN(100); {
	case n < 30:
		rn.Tick()
	case n < 40:
		_ = rn.Propose(make([]byte, 200+g.rng.IntN(400)))
	case n < 41:
		_ = rn.Campaign()
	case n < 42:
		g.boot(id)
	case n < 43:
		typ := [...]pb.ConfChangeType{pb.ConfChangeAddLearnerNode, pb.ConfChangeRemoveNode}[g.rng.IntN(2)]
		_ = rn.ProposeConfChange(&pb.ConfChangeV2{Changes: []*pb.ConfChangeSingle{{Type: typ.Enum(), NodeId: new(uint64(4))}}})
	default:
		if len(g.wire) > 0 {
			i := g.rng.IntN(min(4, len(g.wire)))
			m := g.wire[i]
			g.wire = append(g.wire[:i:i], g.wire[i+1:]...)
			if to := g.nodes[int(m.GetTo())]; to != nil && g.rng.IntN(12) > 0 {
				_ = to.Step(m)
			}
		}
	}
	for id := 1; id <= 3; id++ {
		g.work(id)
	}
}

func (g *asked) work(id int) {
	rn, ms := g.nodes[id], g.disks[id]
	for rn.HasReady() {
		rd := rn.Ready()
		if rd.HardState != nil {
			require.NoError(g.t, ms.SetHardState(rd.HardState))
		}
		if rd.Snapshot != nil {
			require.NoError(g.t, ms.ApplySnapshot(rd.Snapshot))
		}
		require.NoError(g.t, ms.Append(rd.Entries))
		g.wire = append(g.wire, rd.Messages...)
		for _, e := range rd.CommittedEntries {
			if electorate.IsChange(e) {
				cc, err := electorate.Decode(e)
				require.NoError(g.t, err)
				rn.ApplyConfChange(cc)
			}
		}
		rn.Advance(rd)
	}
}

// deepText renders a value with everything that it leads to, unexported fields too,
// but for functions, what interfaces of the host hold, and what memory pools keep.
func deepText(v any) string {
	var b strings.Builder
	deep(&b, reflect.ValueOf(v), map[uintptr]bool{})
	return b.String()
}

func deepKey(v reflect.Value) string {
	var b strings.Builder
	deep(&b, v, map[uintptr]bool{})
	return fmt.Sprintf("%20s", b.String())
}

func deep(b *strings.Builder, v reflect.Value, seen map[uintptr]bool) {
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() || seen[v.Pointer()] {
			b.WriteByte('*')
			return
		}
		seen[v.Pointer()] = true
		deep(b, v.Elem(), seen)
	case reflect.Interface:
		if v.IsNil() {
			b.WriteByte('-')
			return
		}
		deep(b, v.Elem(), seen)
	case reflect.Struct:
		for i := range v.NumField() {
			if name := v.Type().Field(i).Name; skipped[v.Type().String()+"."+name] || skipped[name] {
				continue
			}
			b.WriteString(" " + v.Type().Field(i).Name + "=")
			deep(b, v.Field(i), seen)
		}
	case reflect.Slice, reflect.Array:
		if v.Kind() == reflect.Slice && v.Type().Elem().Kind() == reflect.Uint8 {
			fmt.Fprintf(b, "%d:%x", v.Len(), crc32.ChecksumIEEE(v.Bytes()))
			return
		}
		fmt.Fprintf(b, "[%d", v.Len())
		for i := range v.Len() {
			b.WriteByte(',')
			deep(b, v.Index(i), seen)
		}
		b.WriteByte(']')
	case reflect.Map:
		keys := v.MapKeys()
		sort.Slice(keys, func(i, j int) bool { return deepKey(keys[i]) < deepKey(keys[j]) })
		for _, k := range keys {
			fmt.Fprintf(b, " %s:", deepKey(k))
			deep(b, v.MapIndex(k), seen)
		}
	case reflect.Func, reflect.Chan, reflect.UnsafePointer:
	default:
		fmt.Fprintf(b, "%v", v)
	}
}

// skipped are fields that are the host's, or no state: caches of protobuf.
var skipped = map[string]bool{
	"storage": true, "Storage": true, "logger": true, "Logger": true, "Rand": true, "state": true, "sizeCache": true,
	"unknownFields": true, "cfg": true, "Policy": true, "pool": true,
}

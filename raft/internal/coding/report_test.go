// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package coding

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/ecraft"
	"github.com/weftraft/weft/ecraft/papers"
	"github.com/weftraft/weft/raft/internal/extend"
)

func TestReportOfIdleProcessorsIsTheReportOfEarlierVersions(t *testing.T) {
	p := report{prefix: 1, released: 2, completed: 3, applied: 4, held: 5 * time.Microsecond}
	idle := p.encode()
	require.Equal(t, []byte{reportVersion, 0, 1, 2, 3, 4, 5, 0}, idle)
	got, err := parseReport(idle)
	require.NoError(t, err)
	require.Equal(t, p, got)

	p.busy = shareOf(0.75)
	busy := p.encode()
	require.Equal(t, idle, busy[:len(idle)], "the field is last, where earlier versions do not look")
	got, err = parseReport(busy)
	require.NoError(t, err)
	require.Equal(t, p, got)
	_, err = parseReport(busy[:len(busy)-1])
	require.ErrorIs(t, err, errReport)
	got, err = parseReport(append(idle, 0xff, 0xff, 0x7f))
	require.NoError(t, err)
	require.Equal(t, shareOf(1), got.busy, "a share, whatever a peer says")
}

func TestHostsShareIsBounded(t *testing.T) {
	for says, want := range map[float64]float64{-1: 0, 0.5: 0.5, 2: 1, math.Inf(1): 1} {
		f := newFake(t, func(c *Config) { c.Busy = func() float64 { return says } })
		f.Tick()
		require.Equal(t, want, f.reports.report().busy.float())
	}
	f := newFake(t, func(c *Config) { c.Busy = math.NaN })
	f.Tick()
	require.Zero(t, f.reports.report().busy)
}

// worker is a policy that hears of processors.
type worker struct {
	*papers.CrosswordAdaptive
	ecraft.Policy
	busy map[uint64]float64
}

func (w *worker) Busy(member uint64, share float64) { w.busy[member] = share }

func TestPolicyHearsOfProcessors(t *testing.T) {
	w := &worker{papers.NewCrosswordAdaptive(), ecraft.Full{}, map[uint64]float64{}}
	f := newFake(t, func(c *Config) {
		c.Policy, c.Busy = w, func() float64 { return 0.25 }
		c.Clock = func() time.Duration { return time.Second }
	})
	f.leads()
	f.Tick()
	answer := &pb.Message{
		Type: pb.MsgAppResp.Enum(), From: new(uint64(2)), To: new(uint64(1)), Term: new(f.term), Index: new(f.Coder.log.Last().Index),
		Context: report{busy: shareOf(0.5)}.encode(),
	}
	f.Arrives(answer)
	require.Equal(t, map[uint64]float64{0: 0.25, 2: 0.5}, w.busy)
}

// TestAnswersTellWhoDoesNotCode: an acknowledgement without a report is that of a member without coding only if
// it does not have the mark of one with coding, whatever comes late. A refusal tells nothing.
func TestAnswersTellWhoDoesNotCode(t *testing.T) {
	answer := func(refuses, coded bool) *pb.Message {
		m := &pb.Message{Type: pb.MsgAppResp.Enum(), To: new(uint64(1)), From: new(uint64(2)), Index: new(uint64(7)), Reject: &refuses}
		if coded || refuses {
			m.LogTerm = new(uint64(1))
		}
		return m
	}
	for _, tt := range []struct {
		name    string
		answers []*pb.Message
		want    uint64
	}{
		{"upstream's", []*pb.Message{answer(false, false)}, 7},
		{"refused, upstream's", []*pb.Message{answer(true, false), answer(false, false)}, 7},
		{"refused", []*pb.Message{answer(true, false)}, 0},
		{"coded", []*pb.Message{answer(false, true)}, 0},
		{"coded, refused", []*pb.Message{answer(false, true), answer(true, false)}, 0},
		{"coded, and upstream's late", []*pb.Message{answer(false, true), answer(false, false)}, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := newFake(t)
			for i := range 7 {
				f.entries = append(f.entries, named(ecraft.ID{Term: 1, Index: uint64(i) + 1}, nil))
			}
			f.committed = 7
			f.members.Progress[2].Match = 7
			f.term, f.role, f.lead = 2, extend.Leader, 1
			f.Turned(f.role, f.term, f.lead)
			for _, m := range tt.answers {
				m.Term = new(f.term)
				f.Arrives(m)
			}
			require.Equal(t, tt.want, f.accounts.releasedBy(2))
		})
	}
}

// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package coding

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weftraft/weft/ecraft"
	"github.com/weftraft/weft/raft/internal/extend"
)

// Each invariant notices the mistake that it is there for.
func TestInvariantsNoticeWhatTheyAreFor(t *testing.T) {
	follower := func(t *testing.T) *fake {
		f := newFake(t)
		f.follow(2)
		f.takes(1, coded(ecraft.ID{Term: 2, Index: 1}, text(800)), coded(ecraft.ID{Term: 2, Index: 2}, text(1600)))
		return f
	}
	leader := func(t *testing.T) *fake {
		f := newFake(t)
		f.leads()
		f.proposes(text(800), text(1600))
		return f
	}
	for _, tt := range []struct {
		name   string
		begin  func(t *testing.T) *fake
		breaks func(f *fake)
		says   string
	}{
		{"an entry is not noted", follower, func(f *fake) { f.ledger.recs = f.ledger.recs[:1] }, "the log 2 coded entries"},
		{"a record of another entry", follower, func(f *fake) { f.ledger.recs[1].id.Term++ }, "the log has"},
		{"units of a record change", leader, func(f *fake) {
			h := f.ledger.recs[0].hdr.Clone()
			h.Units[0]++
			f.ledger.recs[0].hdr = h
		}, "the log has"},
		{"a rider that no entry carries", follower, func(f *fake) {
			f.ledger.recs[0].raised = []raise{{at: 2, totals: []uint8{2, 2}}}
		}, "riders, the log 0"},
		{"a span ends early", follower, func(f *fake) { f.ledger.spans.cut(2) }, "the last span ends at 1"},
		{"whole is wrong", follower, func(f *fake) { f.ledger.recs[0].whole = true }, "whole is true"},
		{"complete is wrong", follower, func(f *fake) { f.ledger.recs[1].complete = true }, "that the payload can be produced is false"},
		{"a payload is forgotten", leader, func(f *fake) { f.ledger.complete(f.ledger.recs[0], false) }, "complete is false"},
		{"too many are called ready", follower, func(f *fake) { f.ledger.ready = 2 }, "leading records are called complete"},
		{"a pin of nothing", follower, func(f *fake) { f.ledger.recs[1].pinned = true; f.payloads.store.Cut(2) }, "the store does not know it"},
		{"a follower wants for others", follower, func(f *fake) { f.payloads.wanted[2] = f.ledger.recs[1] }, "a follower wants"},
		{"a want under another index", leader, func(f *fake) { f.payloads.wanted[7] = f.ledger.recs[1] }, "is wanted under index 7"},
		{"more is acknowledged than there is", follower, func(f *fake) { f.acked = ecraft.ID{Term: f.term, Index: 9} }, "is acknowledged, the log ends at 2"},
		{"the role is another", follower, func(f *fake) { f.role = extend.Candidate }, "the coder is in role"},
		{"a follower leads", follower, func(f *fake) { f.Coder.leads = &leading{} }, "and leads is true"},
		{"a leader recovers", leader, func(f *fake) { f.recovery = &recovery{} }, "and recovery is true"},
		{"wants outlive a leader", follower, func(f *fake) { f.wants.leader = &leading{} }, "a leader wants payloads: true"},
		{"a follower pins its tail", follower, func(f *fake) { f.payloads.pinsTail = true }, "the tail is pinned: true"},
		{"covered is wrong", leader, func(f *fake) { f.ledger.recs[0].covered = true }, "do not satisfy the commit rule"},
		{"covered at a follower", follower, func(f *fake) { f.ledger.recs[0].covered = true }, "by a node that does not lead"},
		{"a slot for nobody", leader, func(f *fake) { f.Coder.leads.slots.members = []uint64{2, 9} }, "has a slot, and is no follower"},
		{"the policy sees others", leader, func(f *fake) { f.Coder.leads.slots.units = nil }, "the policy sees"},
		{"codewords are miscounted", leader, func(f *fake) { f.ledger.words++ }, "are counted"},
		{"a codeword among bare ones", leader, func(f *fake) { f.ledger.bare = 1 }, "are called bare"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := tt.begin(t)
			require.NoError(t, f.Broken())
			tt.breaks(f)
			require.ErrorContains(t, f.Broken(), tt.says)
		})
	}
}

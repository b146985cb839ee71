// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package coding

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weftraft/weft/ecraft"
)

// A winner has completed, and pinned, more payloads than its budget allows. It leads no longer, the
// pins end, and the store forgets some: these are lacking again, and are not handed out.
func TestPayloadsBeyondTheBudgetAreLackingWhenTheirPinsEnd(t *testing.T) {
	const payloads, bytes = 8, 4096
	f := newFake(t, func(c *Config) { c.Memory = 2 * bytes })
	f.follow(2)
	for i := range uint64(payloads) {
		f.takes(0, coded(ecraft.ID{Term: 2, Index: i + 1}, text(bytes)))
	}
	for _, rec := range f.ledger.recs {
		f.payloads.expectPinned(rec)
		require.NoError(t, f.payloads.arrived(rec.id, 3, ecraft.NewCodeword(rec.hdr, text(bytes)).Strip(1, 0, 1)))
		require.True(t, rec.complete)
	}
	f.follow(3)
	require.NoError(t, f.Broken())
	require.Less(t, f.payloads.completeTo(), uint64(payloads))
}

func TestMemberThatWasAwayAsksBeforeItsNextTick(t *testing.T) {
	f := newFake(t)
	f.follow(2)
	asked := func() (entries []int) {
		for _, m := range f.sent {
			if m.GetType() == MsgUnitsAsk {
				entries = append(entries, len(m.GetEntries()))
			}
		}
		f.sent = nil
		return entries
	}
	f.takes(2, coded(ecraft.ID{Term: 2, Index: 1}, text(64)), coded(ecraft.ID{Term: 2, Index: 2}, text(64)))
	require.Equal(t, []int{2}, asked(), "no push will come for committed entries")
	f.takes(4, coded(ecraft.ID{Term: 2, Index: 3}, text(64)), coded(ecraft.ID{Term: 2, Index: 4}, text(64)))
	require.Empty(t, asked(), "units are on order: an answer, or the tick, is the time for more")
	f.Tick()
	f.perform()
	require.Equal(t, []int{2}, asked())
}

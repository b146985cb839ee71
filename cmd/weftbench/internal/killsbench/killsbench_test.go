// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package killsbench

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weftraft/weft/internal/lab"
)

const ms = time.Millisecond

// times are writes or reads, each from a time on and for a time.
func times(start time.Time, each ...[2]time.Duration) (acks []lab.Ack) {
	for _, e := range each {
		acks = append(acks, lab.Ack{Begun: start.Add(e[0]), Done: start.Add(e[0] + e[1])})
	}
	return acks
}

// since makes samples of rosters, which name the responder or do not, each for the time from
// the end of the one before.
func since(start time.Time, each ...sample) (seen namings) {
	for i, x := range each {
		x.from, x.to, x.leads = start.Add(time.Duration(i)*500*ms), start.Add(time.Duration(i)*500*ms+5*ms), true
		seen = append(seen, x)
	}
	return seen
}

func TestHoldsAreCountedOnce(t *testing.T) {
	start := time.Now()
	at, end := start.Add(100*ms), start.Add(5*time.Second)
	seen := since(start, make([]sample, 20)...)
	seen[0].named = true // up to the next sample, at 505 ms
	seen[1].roster, seen[2].roster = 1, 1
	for i := range seen[3:] {
		seen[3+i].roster = 1
	}
	var f Fault
	require.NoError(t, f.writes(times(start,
		[2]time.Duration{10 * ms, 5 * ms}, [2]time.Duration{20 * ms, 400 * ms}, // under way at the failure
		[2]time.Duration{120 * ms, 800 * ms}, [2]time.Duration{900 * ms, 5 * ms}, [2]time.Duration{500 * ms, 300 * ms}, [2]time.Duration{810 * ms, 260 * ms},
		[2]time.Duration{2000 * ms, 260 * ms}, [2]time.Duration{6000 * ms, 900 * ms}), at, end, seen))
	require.Equal(t, Fault{Held: 800 * ms, Holds: 1, Besides: 1, Slowest: 260 * ms}, f, "of those that began before the end")
}

// A responder that is named again holds writes up again, and that shows. Where rosters went
// by unseen, nobody can tell.
func TestHoldsOfAResponderThatIsNamedAgain(t *testing.T) {
	start := time.Now()
	slow := times(start, [2]time.Duration{10 * ms, 500 * ms}, [2]time.Duration{2600 * ms, 400 * ms})
	seen := since(start, sample{named: true}, sample{named: true}, sample{roster: 1}, sample{roster: 1}, sample{roster: 1}, sample{roster: 2, named: true}, sample{roster: 3}, sample{roster: 3})
	var f Fault
	require.NoError(t, f.writes(slow, start, start.Add(time.Minute), seen))
	require.Equal(t, 2, f.Holds)
	require.True(t, seen.oneTerm())

	seen[5].named = false
	f = Fault{}
	require.NoError(t, f.writes(slow, start, start.Add(time.Minute), seen))
	require.Equal(t, Fault{Held: 500 * ms, Holds: 1, Besides: 1, Slowest: 400 * ms}, f)

	seen[5].roster = 1
	require.ErrorIs(t, f.writes(slow, start, start.Add(time.Minute), seen), lab.ErrDisturbed)
	seen[5].roster = 2
	require.Equal(t, never, seen.named(start.Add(1500*ms), start.Add(2*time.Second)))
	require.Equal(t, unknown, seen.named(start, start.Add(time.Minute)), "after the last sample")
	require.Equal(t, unknown, namings(nil).named(start, start))
	seen[7].leads = false
	require.False(t, seen.oneTerm())
}

func TestLateReads(t *testing.T) {
	start := time.Now()
	var f Fault
	f.reads(times(start, [2]time.Duration{0, ms}, [2]time.Duration{10 * ms, 2 * ms}, [2]time.Duration{200 * ms, 4 * ms}, [2]time.Duration{300 * ms, 5 * ms}), start.Add(100*ms))
	require.Equal(t, Fault{Reads: 2, Late: 1, Before: 2 * ms, After: 5 * ms, Longest: 5 * ms}, f)
}

func TestReport(t *testing.T) {
	s := Report(Config{Nodes: 3, Tick: 50 * ms, ElectionTicks: 10}, &Results{
		Gaps: []Gap{{"leases off", 500 * ms}, {"leases", 400 * ms}, {"leases off", 700 * ms}, {"leases", 600 * ms}},
		Faults: []Fault{
			{Failure: "deaf", Held: 900 * ms, Holds: 1, Reads: 10, Late: 2, Before: ms, After: 2 * ms, Longest: 3 * ms},
			{Failure: "deaf", Held: 800 * ms, Holds: 1, Reads: 10, Before: ms, After: ms, Longest: ms},
		},
	})
	require.Equal(t, []string{"leases off", "2", "500", "700", "700", "700"}, s.Tables[0].Rows[1])
	require.Equal(t, []string{"leases", "2", "400", "600", "600", "600"}, s.Tables[0].Rows[2])
	require.Len(t, s.Tables[1].Rows, 2)
	require.Equal(t, []string{"2", "900", "1", "0", "0", "20", "1.000", "2.000", "2", "3.000"}, s.Tables[1].Rows[1][2:])
}

func TestReadsTableCountsReadsWithoutAnAnswer(t *testing.T) {
	took := func(n int, d time.Duration) (list []time.Duration) {
		for range n {
			list = append(list, d)
		}
		return list
	}
	table := readsTable([]Reads{
		{Side: "leases", Policy: "responder", Begun: 100, Took: took(100, ms)},
		{Side: "leases", Policy: "responder", Begun: 100, Took: append(took(50, 50*ms), took(30, 1500*ms)...)},
		{Side: "leases", Policy: "leader", Begun: 10, Took: took(10, 200*ms)},
	})
	require.Equal(t, []string{"leases", "responder", "200", "50.00%", "75.00%", "75.00%", "90.00%", "80.00%", "1.000", "none"}, table.Rows[1])
	require.Equal(t, []string{"leases", "leader", "10", "0.00%", "0.00%", "100.00%", "100.00%", "100.00%", "200.000", "200.000"}, table.Rows[2])
}

// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package costs

import (
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestFitFindsTheCostsOfWork makes work at random, and its time by given costs.
func TestFitFindsTheCostsOfWork(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	var want Costs
	for i, term := range want.terms() {
		*term.cost = time.Duration(1000 * (i + 1))
	}
	var samples []Sample
	for i := range 100 {
		s := Sample{Load: Load{Clients: i}, Leader: i%3 == 0, Gateway: i%3 == 1}
		w := &s.Work
		for _, count := range []*float64{&w.Seconds, &w.FramesOut, &w.FramesIn, &w.BytesOut, &w.BytesIn, &w.Messages, &w.Writes, &w.Entries, &w.LogBytes,
			&w.Applied, &w.Proposals, &w.Reads, &w.Calls[0], &w.Calls[1], &w.CallBytes, &w.Sleeps} {
			*count = 1e6 * rng.Float64()
		}
		s.CPU = want.Of(s.Work)
		samples = append(samples, s)
	}
	got := Fit(samples)
	for i, term := range got.Costs.terms() {
		require.InEpsilon(t, *want.terms()[i].cost, *term.cost, 0.01, term.name)
	}
	require.Equal(t, 100, got.All.Samples)
	require.Equal(t, 100, got.Leaders.Samples+got.Followers.Samples+got.Gateways.Samples)
	require.Less(t, got.Unseen.Worst, 0.01)
}

// TestPageHasTheFittedCosts compares the costs that simulations use with the page about them.
func TestPageHasTheFittedCosts(t *testing.T) {
	page, err := os.ReadFile("../../../../docs/data/costs.md")
	require.NoError(t, err)
	for _, row := range Fitted.rows() {
		require.Contains(t, string(page), "| "+strings.Join(row, " | ")+" |")
	}
	code, err := os.ReadFile("fitted.go")
	require.NoError(t, err)
	require.Equal(t, string(code), Fitted.Source())
}

func TestRoundsOfALoadAreAddedUpByTheirPlace(t *testing.T) {
	loads := []Load{{Clients: 1}, {Clients: 2, Gateways: 1}}
	var samples []Sample
	for round := range 2 {
		for _, l := range loads {
			for i := range l.samples() {
				s := Sample{Load: l, Leader: i == 0, Gateway: i >= processes, CPU: time.Duration(l.Clients + 10*i + 100*round)}
				s.Work.Seconds, s.Work.Applied = 1, float64(i)
				samples = append(samples, s)
			}
		}
	}
	sums := Sum(samples)
	require.Len(t, sums, 2*processes+1)
	for i, s := range sums {
		l, place := loads[i/processes%2], i%processes
		if i == 2*processes {
			l, place = loads[1], processes
		}
		require.Equal(t, l, s.Load)
		require.Equal(t, place == 0, s.Leader)
		require.Equal(t, place == processes, s.Gateway)
		require.Equal(t, time.Duration(2*l.Clients+20*place+100), s.CPU)
		require.Equal(t, 2.0, s.Work.Seconds)
		require.Equal(t, float64(2*place), s.Work.Applied)
	}
}

// TestWakesAreFittedToTheSleepsOfFewClients has threads sleep 300 times a second, two times for a frame and five times for a round.
func TestWakesAreFittedToTheSleepsOfFewClients(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	var samples []Sample
	for i := range 60 {
		s := Sample{Load: Load{Clients: 16 * (1 + i%2)}}
		w := &s.Work
		w.Seconds, w.FramesIn, w.Writes = 1+rng.Float64(), 1e4*rng.Float64(), 1e4*rng.Float64()
		w.Sleeps = 300*w.Seconds + 2*w.FramesIn + 5*w.Writes
		if i%2 == 1 {
			w.Sleeps /= 10 // with more clients
		}
		samples = append(samples, s)
	}
	c := Costs{Sleep: 10 * time.Microsecond}
	c.fitWakes(samples)
	require.InEpsilon(t, 3*time.Millisecond, c.WakeSecond, 0.01)
	require.InEpsilon(t, 20*time.Microsecond, c.Wake, 0.01)
	require.InEpsilon(t, 30*time.Microsecond, c.WakeWrite, 0.01, "the end of a round is a wake, too")
}

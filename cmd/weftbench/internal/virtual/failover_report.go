// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package virtual

import (
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/weftraft/weft/internal/lab"
)

// report puts the rows into a table.
func (cfg *Failover) report(rows []lossRow) *lab.Section {
	if cfg.Leases {
		return cfg.reportLeased(rows)
	}
	s := &lab.Section{
		Virtual: true, Verb: "virtual failover",
		Title: "How long nothing commits after the leader is lost",
		Intro: fmt.Sprintf("%d leaders a row, killed under load (values of %s at random times, %.0f%% of what full copies\n"+
			"can do at 1 Gbit) at the same instants on all sides. In ms of virtual time, median / 90%% / worst: from the kill to the\n"+
			"next commit of a client; from the votes to the first commit, where payloads are recovered; from there to the first\n"+
			"commit of something new; and how much more the latter two are than with %s, at the same seed, in round trips.",
			cfg.Seeds, lab.Bytes(cfg.Size), 100*cfg.Load, cfg.Sides[0].Name),
		Data: rows,
	}
	t := lab.Table{
		Title: fmt.Sprintf("A round trip takes %s ms, a sync 0.1 ms; an election timeout is 100 to 200 ms:", lab.Millis(2*cfg.Delay)),
		Rows:  [][]string{{"N", "side", "kill to commit", "votes to commit", "more", "votes to new commit", "more"}},
	}
	base := map[int]lossRow{}
	for _, r := range rows {
		if r.Side == cfg.Sides[0].Name {
			base[r.Voters] = r
		}
		b := base[r.Voters]
		t.Rows = append(t.Rows, []string{
			strconv.Itoa(r.Voters), r.Side, spread(r.each(whole)),
			spread(r.each(commit)), r.trips(b, commit), spread(r.each(fresh)), r.trips(b, fresh),
		})
	}
	s.Tables = append(s.Tables, t)
	return s
}

// reportLeased puts the rows of leases off and on into a table.
func (cfg *Failover) reportLeased(rows []lossRow) *lab.Section {
	s := &lab.Section{
		Virtual: true, Verb: "virtual failover --leases",
		Title: "How long nothing commits after the leader is lost, with leases off and on",
		Intro: fmt.Sprintf("%d leaders a row, killed under load (values of %s, %.0f%% of what links of 1 Gbit can do). At one seed\n"+
			"all sides lose the same leader at the same instant, with the same election timeouts. In ms of virtual time.",
			cfg.Seeds, lab.Bytes(cfg.Size), 100*cfg.Load),
		Data: rows,
	}
	t := lab.Table{
		Title: fmt.Sprintf("A round trip takes %s ms, an election timeout is 100 to 200 ms, a lease lasts %v. Median / 99%% / worst:",
			lab.Millis(2*cfg.Delay), leaseTime),
		Rows: [][]string{{"N", "side", "kill to election", "kill to a new write", "99% is within", "last word", "more than off, median", "mean", "of that, election", "slower by a tick", "faster by a tick", "held back"}},
		Notes: []string{
			"A new write is the first that the new leader appends and commits. The columns from *more than off* on compare the times to it seed by seed.",
			"*99% is within*: the 99th percentile of kill to a new write, with a confidence of 95%, as the mean is within what stands behind ±. *Last word*: when a\n" +
				"survivor heard the old leader last, from the kill, on average; election timeouts run from there. *Held back*: elections later by a tick or more at\n" +
				"seeds where every survivor heard the last word at the same time on both sides. A promise that delays an election shows in that column.",
			"Messages of leases restart no election timeout: where nobody is named failover takes as long as with leases off. Responders add what they add to a\n" +
				"write, twice. The old leader committed later, and so told the others later: its last word came later, and the election with it. And the first write\n" +
				"under the new leader waits for the responders named by then. The first could be saved if followers took a message with nothing but a commit index\n" +
				"for no sign of life, but then they would vote against leaders that live; the second, if responders were named later, but then they would answer reads later.",
		},
	}
	var off lossRow
	for _, r := range rows {
		if r.Side == cfg.Sides[0].Name {
			off = r
		}
		row := []string{strconv.Itoa(r.Voters), r.Side, most(r.each(won)), most(r.each(anew)), within(r.each(anew), 0.99), lab.Millis(r.lastWord())}
		row = append(row, compare(r.more(off, anew), r.more(off, won))...)
		t.Rows = append(t.Rows, append(row, strconv.Itoa(r.heldBack(off))))
	}
	s.Tables = append(s.Tables, t)
	return s
}

func (r lossRow) each(what func(loss) time.Duration) (times []time.Duration) {
	for _, g := range r.Gaps {
		times = append(times, what(g))
	}
	return times
}

// aTick is the least difference that counts as a tick: cards and disks add to a tick, or
// take from one, far less than half.
const aTick = tick / 2

// compare describes the differences between two sides, and the part of each difference that
// exists at the election already; positive is slower.
func compare(more, election []time.Duration) []string {
	slower, faster := 0, 0
	for _, d := range more {
		switch {
		case d >= aTick:
			slower++
		case d <= -aTick:
			faster++
		}
	}
	return []string{lab.Millis(lab.Quantile(more, 0.5)), meanOf(more), meanOf(election), strconv.Itoa(slower), strconv.Itoa(faster)}
}

// meanOf returns a mean, and behind ± how far the mean of many more times may be from it,
// with a confidence of 95%.
func meanOf(d []time.Duration) string {
	n, sum, squares := float64(max(len(d), 1)), 0.0, 0.0
	for _, x := range d {
		sum += float64(x)
	}
	for _, x := range d {
		squares += (float64(x) - sum/n) * (float64(x) - sum/n)
	}
	off := 1.96 * math.Sqrt(squares/max(n-1, 1)/n)
	return lab.Millis(time.Duration(sum/n)) + " ± " + lab.Millis(time.Duration(off))
}

func most(d []time.Duration) string {
	return lab.Spread(lab.Quantile(d, 0.5), lab.Quantile(d, 0.99), lab.Quantile(d, 1))
}

// within returns two times between which the quantile q is, with a confidence of 95%: how
// many of n independent times are at most the quantile is binomial, with a deviation of
// sqrt(n*q*(1-q)). With few times the upper one is the longest that was seen.
func within(d []time.Duration, q float64) string {
	off := 1.96 * math.Sqrt(q*(1-q)/float64(max(len(d), 1)))
	return lab.Spread(lab.Quantile(d, q-off), lab.Quantile(d, q+off))
}

func won(g loss) time.Duration { return g.Elected }

// anew is the time from the kill to the first commit of a new entry. With notes this time is
// the one to compare: a follower may have applied the old leader's entries in flight before,
// and then no client hears of these entries when the follower leads.
func anew(g loss) time.Duration { return g.Elected + g.Fresh }

func whole(g loss) time.Duration  { return g.Whole }
func commit(g loss) time.Duration { return g.Commit }
func fresh(g loss) time.Duration  { return g.Fresh }

// more returns, seed by seed, how much longer something took than on another
// side.
func (r lossRow) more(base lossRow, what func(loss) time.Duration) (times []time.Duration) {
	for i, g := range r.Gaps {
		times = append(times, what(g)-what(base.Gaps[i]))
	}
	return times
}

func (r lossRow) trips(base lossRow, what func(loss) time.Duration) string {
	if r.Side == base.Side {
		return "-"
	}
	d := r.more(base, what)
	at := func(q float64) float64 { return float64(lab.Quantile(d, q)) / float64(r.RTT) }
	return fmt.Sprintf("%.2f / %.2f / %.2f", at(0.5), at(0.9), at(1))
}

func spread(d []time.Duration) string {
	return lab.Spread(lab.Quantile(d, 0.5), lab.Quantile(d, 0.9), lab.Quantile(d, 1))
}

// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/weftraft/weft/internal/lab"
)

// noise is the difference of two figures that may be due to chance, on a machine that is busy with
// members and clients.
const noise = 0.1

// Section returns a document with all rows of a store; rows may be missing.
func (s *Store) Section(cfg Config) *lab.Section {
	d := &lab.Section{
		Verb: "etcd", Page: true, Title: "Data: etcd as released beside etcd on Weft", Intro: s.intro(cfg), Rounds: s.At.Rounds, Data: s.Rows,
	}
	if h := s.Headline(cfg); h != "" {
		d.Tables = append(d.Tables, lab.Table{Heading: "## In short", Title: h})
	}
	d.Tables = append(d.Tables, s.verdicts(cfg))
	for _, members := range cfg.Members {
		for _, link := range cfg.Links {
			if t := s.table(cfg, members, link); len(t.Rows) > 1 {
				d.Tables = append(d.Tables, t)
			}
		}
	}
	if wrong := s.wrong(); len(wrong) > 0 {
		d.Tables = append(d.Tables, lab.Table{Heading: "## What went wrong", Title: strings.Join(wrong, "\n")})
	}
	return d
}

var networkAbout = map[string]string{
	lab.Namespaces: "the kernel's: each member is in a network namespace of its own, whose card is shaped (tbf: what it sends, and what it receives)",
	lab.Relay: "those of a relay in the benchmark's process, which bounds what a member sends on the streams that others read from it, and\n" +
		"what they post to it",
}

func (s *Store) intro(cfg Config) string {
	var b strings.Builder
	fmt.Fprintf(&b, "Written by `make bench-etcd`. Members are processes on one machine with the clients (%s, %d CPUs, %s, %s),\n"+
		"with real sockets and every log synced before anything is acknowledged. Links are\n%s; no delay is added.\n",
		s.At.CPU, s.At.CPUs, s.At.Go, s.At.System, networkAbout[s.At.Network])
	fmt.Fprintf(&b, "All clients call the leader, over links without a bound, each waiting for its answer before it asks again; every put has a\n"+
		"key of its own. The sides take turns: %d rounds of %v (and at least %d puts a client), another side first each time, each\n"+
		"round and size with an empty cluster, which takes each load for %v before it counts. Figures are medians of the rounds; behind\n"+
		"the ratio of puts stand the least and the greatest ratio of a round. After each load every value was read back from every\n"+
		"member, from that member's own data, and the logs were looked into: coded entries on no other\n"+
		"side than the one that codes, and there in each log that etcd had not shortened.\n\n",
		s.At.Rounds, s.At.Time, least, s.At.Warm)
	for _, side := range cfg.Sides {
		fmt.Fprintf(&b, "- **%s**: %s\n", side.Name, side.About)
	}
	fmt.Fprintf(&b, "\nAll are built by the same compiler with the same versions of all other packages. **CPU** is the processor time of all members\n"+
		"for a put, **disk** what all members give to their disks for a byte of value, **sent** what members send each other for one, all\n"+
		"until the members rest again; the clients' is not in it. Clients and members share the machine's processors, so where links have\n"+
		"no bound those are what all wait for.")
	if others := s.others(); len(others) > 0 {
		fmt.Fprintf(&b, " The machine also did other things: they, and the kernel's work for the network, took %.0f%% of\n"+
			"its processors in the median measurement, and %.0f%% in the worst; where it was more than %.0f%%, a measurement was made again,\n"+
			"%d times at most, and the quietest counts. Look at the ratios.", 100*others.Median(), 100*slices.Max(others), 100*s.At.Others, disturbed)
		if others.Median() > s.At.Others {
			fmt.Fprintf(&b, "\n\n**The machine was too busy for this.** Only what narrow links bound is to be trusted.")
		}
	}
	return b.String()
}

// others returns the share of other processes in each measurement.
func (s *Store) others() (all lab.Rounds) {
	for _, r := range s.Rows {
		for _, c := range r.Cells {
			for _, x := range c.Samples {
				all = append(all, x.Others)
			}
		}
	}
	return all
}

// ratios is a side's figure for 1 of the first side's, by round.
func (r *Row) ratios(side, figure int) lab.Rounds {
	of := figures[figure].of
	return lab.RoundsOf(r.Cells[side].Samples, of).Ratio(lab.RoundsOf(r.Cells[0].Samples, of))
}

func (r *Row) ratio(side, figure int) float64 { return r.ratios(side, figure).Median() }

// verdicts lists the loads at which each side is better or worse than the first side.
func (s *Store) verdicts(cfg Config) lab.Table {
	t := lab.Table{
		Heading: "## Who wins where",
		Title:   fmt.Sprintf("Of %d loads, beside %s; the same is within %.0f%%.", len(s.Rows), cfg.Sides[0].Name, 100*noise),
		Rows:    [][]string{{"side", "figure", "better", "the same", "worse", "at worst"}},
	}
	var losses []string
	for side := 1; side < len(cfg.Sides); side++ {
		for figure := range figures {
			better, same, worse := s.sorted(side, figure)
			worst := "-"
			if len(worse) > 0 {
				worst = fmt.Sprintf("%.2f: %s", worse[0].ratio(side, figure), worse[0].Load)
			}
			t.Rows = append(t.Rows, []string{cfg.Sides[side].Name, figures[figure].name, strconv.Itoa(better), strconv.Itoa(same), strconv.Itoa(len(worse)), worst})
			for _, r := range worse {
				if figure == 0 {
					losses = append(losses, fmt.Sprintf("- %s, %s: %s", cfg.Sides[side].Name, r.Load, r.ratios(side, 0).Text("%.2f")))
				}
			}
		}
	}
	if len(losses) > 0 {
		t.Notes = append(t.Notes, fmt.Sprintf("Fewer puts a second than %s:\n\n%s", cfg.Sides[0].Name, strings.Join(losses, "\n")))
	}
	return t
}

// sorted compares a side with the first side, load by load: the number of loads at which the side is
// better, the number at which both are equal but for noise, and the rows at which the side is worse, the
// worst first.
func (s *Store) sorted(side, figure int) (better, same int, worse []*Row) {
	sign := 1.0 // less is better
	if figure == 0 {
		sign = -1
	}
	for _, r := range s.Rows {
		switch x := sign * (r.ratio(side, figure) - 1); {
		case x > noise:
			worse = append(worse, r)
		case x < -noise:
			better++
		default:
			same++
		}
	}
	slices.SortStableFunc(worse, func(x, y *Row) int {
		return cmp.Compare(sign*y.ratio(side, figure), sign*x.ratio(side, figure))
	})
	return better, same, worse
}

func (s *Store) table(cfg Config, members int, link int64) lab.Table {
	head := []string{"value", "clients", "ratio of puts"}
	for _, f := range figures {
		head = append(head, f.column)
	}
	var names []string
	for _, side := range cfg.Sides {
		names = append(names, side.Name)
	}
	t := lab.Table{
		Heading: fmt.Sprintf("### %d members, %s", members, linkName(link)),
		Title:   fmt.Sprintf("Each figure: %s.", strings.Join(names, " / ")),
		Rows:    [][]string{append(head, "ratio of puts in the rounds")},
	}
	for _, l := range cfg.loads() {
		r := s.row(l)
		if r == nil || l.Members != members || l.Link != link {
			continue
		}
		var ratios, spread []string
		for i := 1; i < len(r.Cells); i++ {
			all := r.ratios(i, 0)
			ratios, spread = append(ratios, fmt.Sprintf("%.2f", all.Median())), append(spread, all.Text("%.2f"))
		}
		line := []string{lab.Bytes(r.Size), strconv.Itoa(r.Clients), strings.Join(ratios, " / ")}
		for _, f := range figures {
			line = append(line, r.each(f.of))
		}
		t.Rows = append(t.Rows, append(line, strings.Join(spread, " / ")))
	}
	return t
}

// each prints a figure of all sides.
func (r *Row) each(of func(Sample) float64) string {
	var all []string
	for _, c := range r.Cells {
		all = append(all, figure(c.median(of)))
	}
	return strings.Join(all, " / ")
}

// figure prints three digits, or all before the point.
func figure(x float64) string {
	switch {
	case x >= 100:
		return fmt.Sprintf("%.0f", x)
	case x >= 10:
		return fmt.Sprintf("%.1f", x)
	}
	return fmt.Sprintf("%.2f", x)
}

// wrong lists failed puts and repeated measurements.
func (s *Store) wrong() (notes []string) {
	for _, r := range s.Rows {
		for _, c := range r.Cells {
			if c.Failed > 0 {
				notes = append(notes, fmt.Sprintf("- %s, %s: %d puts failed.", r.Load, c.Side, c.Failed))
			}
			if c.Restless > 0 {
				notes = append(notes, fmt.Sprintf("- %s, %s: %d measurements were made again, as the leader changed.", r.Load, c.Side, c.Restless))
			}
		}
	}
	return notes
}

// Headline compares the last side with the first in a few lines: on narrow links, and at the load
// with the largest loss. Headline is empty while rows are missing.
func (s *Store) Headline(cfg Config) string {
	if slices.ContainsFunc(cfg.loads(), func(l Load) bool { return !s.Has(l) }) {
		return ""
	}
	last := len(cfg.Sides) - 1
	members, clients, link := slices.Max(cfg.Members), slices.Max(cfg.Clients), int64(0)
	for _, rate := range cfg.Links {
		if rate > 0 && (link == 0 || rate < link) {
			link = rate
		}
	}
	var sizes, theirs, ours []string
	for _, size := range cfg.Sizes {
		r := s.row(Load{members, link, size, clients})
		if size < cfg.Coded {
			continue
		}
		sizes = append(sizes, lab.Bytes(size))
		theirs = append(theirs, figure(r.Cells[0].median(figures[0].of)))
		ours = append(ours, figure(r.Cells[last].median(figures[0].of)))
	}
	if len(sizes) == 0 {
		return ""
	}
	h := fmt.Sprintf("etcd v3.7.3, unedited, on Weft with coding, %d members on %s, %d clients: %s puts/s of\n%s, where etcd as released takes %s.",
		members, linkName(link), clients, list(ours), list(sizes), list(theirs))
	worst := slices.MinFunc(s.Rows, func(x, y *Row) int { return cmp.Compare(x.ratio(last, 0), y.ratio(last, 0)) })
	if x := worst.ratio(last, 0); x < 1-noise {
		return h + fmt.Sprintf("\nAt worst it takes %.0f%% of the puts of etcd as released: %s.", 100*x, worst.Load)
	}
	return h + fmt.Sprintf("\nNowhere does it take fewer puts, by more than %.0f%%.", 100*noise)
}

// list joins words as a sentence does.
func list(words []string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:len(words)-1], ", ") + " and " + words[len(words)-1]
}

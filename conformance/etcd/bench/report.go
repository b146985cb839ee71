// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/weftraft/weft/internal/netlab"
)

// noise is the difference of two figures that may be due to chance, on a machine that is busy with
// members and clients.
const noise = 0.1

// Report returns a document with all rows of a store; rows may be missing.
func (s *Store) Report(cfg Config) string {
	var b strings.Builder
	s.head(&b, cfg)
	s.verdicts(&b, cfg)
	for _, members := range cfg.Members {
		for _, link := range cfg.Links {
			s.table(&b, cfg, members, link)
		}
	}
	s.notes(&b)
	return b.String()
}

var networkAbout = map[string]string{
	netlab.Namespaces: "the kernel's: each member is in a network namespace of its own, whose card is shaped (tbf: what it sends, and what it receives)",
	netlab.Relay: "those of a relay in the benchmark's process, which bounds what a member sends on the streams that others read from it, and\n" +
		"what they post to it",
}

func (s *Store) head(b *strings.Builder, cfg Config) {
	fmt.Fprintf(b, "# Benchmarks: etcd as released beside etcd on Weft\n\n")
	fmt.Fprintf(b, "Written by `make bench-etcd`. Members are processes on one machine with the clients (%s, %d CPUs, %s, %s),\n",
		s.At.CPU, s.At.CPUs, s.At.Go, s.At.System)
	fmt.Fprintf(b, "with real sockets and every log synced before anything is acknowledged. Links are\n%s; no delay is added.\n", networkAbout[s.At.Network])
	fmt.Fprintf(b, "All clients call the leader, over links without a bound, each waiting for its answer before it asks again; every put has a\n"+
		"key of its own. The sides take turns: %d rounds of %v (and at least %d puts a client), another side first each time, each\n"+
		"round and size with an empty cluster. Figures are medians of the rounds. After each load every value was read back from every\n"+
		"member, from that member's own data, and the logs were looked into: coded entries on the side that codes, and on no other.\n\n",
		s.At.Rounds, s.At.Time, least)
	for _, side := range cfg.Sides {
		fmt.Fprintf(b, "- **%s**: %s\n", side.Name, side.About)
	}
	fmt.Fprintf(b, "\nAll are built by the same compiler with the same versions of all other packages. **CPU** is the processor time of all members\n"+
		"for a put, **disk** what all members give to their disks for a byte of value, **sent** what members send each other for one, all\n"+
		"until the members rest again; the clients' is not in it. Clients and members share the machine's processors, so where links have\n"+
		"no bound those are what all wait for.")
	if others := s.others(); len(others) > 0 {
		fmt.Fprintf(b, " The machine also did other things: they, and the kernel's work for the network, took %.0f%% of\n"+
			"its processors in the median measurement, and %.0f%% in the worst; where it was more than %.0f%%, a measurement was made again,\n"+
			"%d times at most, and the quietest counts. Look at the ratios.", 100*median(others), 100*slices.Max(others), 100*s.At.Others, disturbed)
		if median(others) > s.At.Others {
			fmt.Fprintf(b, "\n\n**The machine was too busy for this.** Only what narrow links bound is to be trusted.")
		}
	}
	fmt.Fprintln(b)
}

// others returns the share of other processes in each measurement.
func (s *Store) others() (all []float64) {
	for _, r := range s.Rows {
		for _, c := range r.Cells {
			for _, x := range c.Samples {
				all = append(all, x.Others)
			}
		}
	}
	return all
}

// ratio is a side's figure for 1 of the first side's.
func (r *Row) ratio(side, figure int) float64 {
	of := figures[figure].of
	return r.Cells[side].median(of) / r.Cells[0].median(of)
}

// verdicts lists the loads at which each side is better or worse than the first side.
func (s *Store) verdicts(b *strings.Builder, cfg Config) {
	if h := s.Headline(cfg); h != "" {
		fmt.Fprintf(b, "\n## In short\n\n%s\n", h)
	}
	fmt.Fprintf(b, "\n## Who wins where\n\nOf %d loads, beside %s; the same is within %.0f%%.\n\n| side | figure | better | the same | worse | at worst |\n|---|---|--:|--:|--:|---|\n",
		len(s.Rows), cfg.Sides[0].Name, 100*noise)
	var losses []string
	for side := 1; side < len(cfg.Sides); side++ {
		for figure := range figures {
			better, same, worse := s.sorted(side, figure)
			worst := "-"
			if len(worse) > 0 {
				worst = fmt.Sprintf("%.2f: %s", worse[0].ratio(side, figure), worse[0].Load)
			}
			fmt.Fprintf(b, "| %s | %s | %d | %d | %d | %s |\n", cfg.Sides[side].Name, figures[figure].name, better, same, len(worse), worst)
			for _, r := range worse {
				if figure == 0 {
					losses = append(losses, fmt.Sprintf("- %s, %s: %.2f", cfg.Sides[side].Name, r.Load, r.ratio(side, 0)))
				}
			}
		}
	}
	if len(losses) > 0 {
		fmt.Fprintf(b, "\nFewer puts a second than %s:\n\n%s\n", cfg.Sides[0].Name, strings.Join(losses, "\n"))
	}
}

// sorted returns the number of loads at which a side is better than the first side, and as good,
// and the rows at which the side is worse, the worst first.
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

func (s *Store) table(b *strings.Builder, cfg Config, members int, link int64) {
	var rows []*Row
	for _, l := range cfg.loads() {
		if r := s.row(l); r != nil && l.Members == members && l.Link == link {
			rows = append(rows, r)
		}
	}
	if len(rows) == 0 {
		return
	}
	fmt.Fprintf(b, "\n### %d members, %s\n\n", members, linkName(link))
	var names []string
	for _, side := range cfg.Sides {
		names = append(names, side.Name)
	}
	fmt.Fprintf(b, "Each figure: %s.\n\n", strings.Join(names, " / "))
	fmt.Fprintf(b, "| value | clients | ratio of puts |")
	for _, f := range figures {
		fmt.Fprintf(b, " %s |", f.column)
	}
	fmt.Fprintf(b, "\n%s|\n", strings.Repeat("|--:", 3+len(figures)))
	for _, r := range rows {
		var ratios []string
		for i := 1; i < len(r.Cells); i++ {
			ratios = append(ratios, fmt.Sprintf("%.2f", r.ratio(i, 0)))
		}
		fmt.Fprintf(b, "| %s | %d | %s |", bytesName(r.Size), r.Clients, strings.Join(ratios, " / "))
		for _, f := range figures {
			fmt.Fprintf(b, " %s |", r.each(f.of))
		}
		fmt.Fprintln(b)
	}
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

// notes lists failed puts and repeated measurements.
func (s *Store) notes(b *strings.Builder) {
	var notes []string
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
	if len(notes) > 0 {
		fmt.Fprintf(b, "\n## What went wrong\n\n%s\n", strings.Join(notes, "\n"))
	}
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
		sizes = append(sizes, bytesName(size))
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
		return h + fmt.Sprintf("\nIt loses most at %s: %.0f%% of the puts.", worst.Load, 100*x)
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

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

// noise is how far two figures of a machine that is busy with members and clients
// may lie apart by chance.
const noise = 0.1

// Report returns a document with all rows of a store, as far as they are there.
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
	netlab.Namespaces: "each member in a network namespace of its own, its card shaped by the kernel (tbf, what it sends as well as what it receives)",
	netlab.Relay: "a relay in the benchmark's process between the members, which bounds what a member sends on the streams that others read " +
		"from it, and what they post to it",
}

func (s *Store) head(b *strings.Builder, cfg Config) {
	fmt.Fprintf(b, "# Benchmarks: etcd as released beside etcd on Weft\n\n")
	fmt.Fprintf(b, "Written by `make bench-etcd`. Members are processes on one machine with the clients (%s, %d CPUs, %s, %s),\n",
		s.At.CPU, s.At.CPUs, s.At.Go, s.At.System)
	fmt.Fprintf(b, "with real sockets and every log synced before anything is acknowledged. Links: %s. No delay is added.\n", networkAbout[s.At.Network])
	fmt.Fprintf(b, "All clients call the leader, over links without a bound, each waiting for its answer before it asks again; every put has a\n"+
		"key of its own. The sides take turns: %d rounds of %v (and at least %d puts a client), another side first each time, each\n"+
		"round and size with an empty cluster. Figures are medians of the rounds. After each load every value was read back from every\n"+
		"member, from that member's own data, and the logs were looked into: coded entries on the side that codes, and on no other.\n\n",
		s.At.Rounds, s.At.Time, Least)
	for _, side := range cfg.Sides {
		fmt.Fprintf(b, "- **%s**: %s\n", side.Name, side.About)
	}
	fmt.Fprintf(b, "\nAll are built by the same compiler with the same versions of all other packages. **CPU** is the processor time of all members\n"+
		"for a put, **disk** what all members give to their disks for a byte of value, **sent** what members send each other for one, all\n"+
		"until the members rest again; the clients' is not in it. Clients and members share the machine's processors, so where links have no bound those are what all wait for. Look at\n"+
		"the ratios.\n")
}

// verdicts says where each side wins and loses against the first.
func (s *Store) verdicts(b *strings.Builder, cfg Config) {
	if h := s.Headline(cfg); h != "" {
		fmt.Fprintf(b, "\n## In short\n\n%s\n", h)
	}
	fmt.Fprintf(b, "\n## Puts a second, side by side\n\n")
	rows := slices.Clone(s.Rows)
	for i := 1; i < len(cfg.Sides); i++ {
		var better, same int
		var worse []*Row
		for _, r := range rows {
			switch x := r.ratio(i); {
			case x > 1+noise:
				better++
			case x < 1-noise:
				worse = append(worse, r)
			default:
				same++
			}
		}
		fmt.Fprintf(b, "- **%s** beside %s, %d loads: more than %.0f%% better at %d, within %.0f%% at %d, more than %.0f%% worse at %d",
			cfg.Sides[i].Name, cfg.Sides[0].Name, len(rows), 100*noise, better, 100*noise, same, 100*noise, len(worse))
		slices.SortStableFunc(worse, func(x, y *Row) int { return cmp.Compare(x.ratio(i), y.ratio(i)) })
		for k, r := range worse {
			fmt.Fprintf(b, "%s%s (%.2f)", map[bool]string{true: ": ", false: "; "}[k == 0], r.Load, r.ratio(i))
		}
		fmt.Fprintf(b, ".\n")
	}
}

// ratio is what a side puts in a second for each put of the first.
func (r *Row) ratio(side int) float64 {
	return median(r.Cells[side].PutsPerS) / median(r.Cells[0].PutsPerS)
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
	fmt.Fprintf(b, "| value | clients | puts/s | ratio | p50 ms | p99 ms | CPU ms/put | disk | sent by leader | sent by all |\n|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|\n")
	for _, r := range rows {
		var ratios []string
		for i := 1; i < len(r.Cells); i++ {
			ratios = append(ratios, fmt.Sprintf("%.2f", r.ratio(i)))
		}
		fmt.Fprintf(b, "| %s | %d | %s | %s | %s | %s | %s | %s | %s | %s |\n", bytesName(r.Size), r.Clients,
			r.each(func(c *Cell) []float64 { return c.PutsPerS }), strings.Join(ratios, " / "),
			r.each(func(c *Cell) []float64 { return c.P50 }), r.each(func(c *Cell) []float64 { return c.P99 }),
			r.each(func(c *Cell) []float64 { return c.CPU }), r.each(func(c *Cell) []float64 { return c.Disk }),
			r.each(func(c *Cell) []float64 { return c.LeaderSent }), r.each(func(c *Cell) []float64 { return c.AllSent }))
	}
}

// each prints a figure of all sides.
func (r *Row) each(of func(*Cell) []float64) string {
	var all []string
	for _, c := range r.Cells {
		all = append(all, figure(median(of(c))))
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

// notes says what went wrong.
func (s *Store) notes(b *strings.Builder) {
	var notes []string
	for _, r := range s.Rows {
		for _, c := range r.Cells {
			if c.Failed > 0 {
				notes = append(notes, fmt.Sprintf("- %s, %s: %d puts failed, and %d were answered.", r.Load, c.Side, c.Failed, c.Puts))
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

// Headline says in a few lines what the last side does beside the first: where
// links are narrow, and where it loses. It is empty while rows for it are missing.
func (s *Store) Headline(cfg Config) string {
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
		if r == nil {
			return ""
		}
		if size < cfg.Coded {
			continue
		}
		sizes = append(sizes, bytesName(size))
		theirs = append(theirs, figure(median(r.Cells[0].PutsPerS)))
		ours = append(ours, figure(median(r.Cells[last].PutsPerS)))
	}
	if len(sizes) == 0 {
		return ""
	}
	h := fmt.Sprintf("etcd v3.7.3, unedited, on Weft with coding, %d members on %s, %d clients: %s puts/s of\n%s, where etcd as released takes %s.",
		members, linkName(link), clients, list(ours), list(sizes), list(theirs))
	worst := slices.MinFunc(s.Rows, func(x, y *Row) int { return cmp.Compare(x.ratio(last), y.ratio(last)) })
	if x := worst.ratio(last); x < 1-noise {
		h += fmt.Sprintf("\nIt loses most at %s: %.0f%% of the puts.", worst.Load, 100*x)
	}
	return h
}

// list joins words as a sentence does.
func list(words []string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:len(words)-1], ", ") + " and " + words[len(words)-1]
}

// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

// Package papers is a registry of the figures and tables with results of four papers: Crossword,
// FlexRaft, Bodega, and Compartmentalized Consensus. A row has the published figures, and either a
// function that runs the figure's setting in virtual time, or the reason why nothing runs.
//
//	papers.go      rows, and the run of rows
//	grid.go        figures by group and side: table, chart, and how Weft compares
//	crossword.go, flexraft.go, bodega.go, compartments.go
//	               the rows of a paper; *_run.go has the functions
//	tpcc_run.go    transactions over ranges, in virtual time and by processes
//	cores.go       real cores whose leader or follower is lost
//	real_run.go    processes of kvdemo beside the simulation of the same setting
//	page.go        the pages in docs
package papers

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/weftraft/weft/cmd/weftbench/internal/adaptive"
	"github.com/weftraft/weft/cmd/weftbench/internal/codingbench"
	"github.com/weftraft/weft/internal/lab"
	"github.com/weftraft/weft/internal/svg"
)

// Row is a figure or a table of a paper, or several that belong together.
type Row struct {
	Paper, Number string
	Title         string
	// Setting is the paper's, Sides are what the paper compares, and Metric is what it measures.
	Setting, Sides, Metric string
	// Published are the paper's figures, from its text.
	Published []Claim
	// Ours is how our setting differs.
	Ours string
	// By is the world of weftbench that runs the row, Run the function. Real runs the row on this
	// machine: in place of virtual time, or beside the same setting there.
	By        string
	Run, Real func(b *Bench) (*Result, error)
	// Reason is why the row is not run.
	Reason string
	// Behind is why Weft is more than 3% behind the best safe side, where it is.
	Behind string
}

// Claim is a published figure.
type Claim struct{ What, Value string }

// ID names a row: paper/number.
func (r *Row) ID() string { return r.Paper + "/" + r.Number }

// Status is whether a row is run, in a word or two.
func (r *Row) Status() string {
	switch {
	case r.Run == nil && r.Real != nil:
		return "run on this machine"
	case r.Real != nil:
		return "run, also by processes"
	case r.Run != nil:
		return "run"
	}
	return "not run"
}

// Bench has what all runs need.
type Bench struct {
	Ctx      context.Context
	Seed     uint64
	Progress io.Writer
	// Short makes runs a fraction as long, for tests.
	Short bool
	// Kvdemo, Etcd, as released, and ZooKeeper's jar are the programs of rows that run by processes, Dir is a
	// directory for their data, and Rounds how often a load is measured.
	Kvdemo, Etcd, ZooKeeper, Dir string
	Rounds                       int
	measured                     map[processLoad][]*codingbench.Cell
	played                       map[string]ledger // of the row, by side
}

// ledger counts entries that a side acknowledged, and those that the failure of a minority could have lost then.
type ledger struct{ acked, atRisk int }

// play runs a side, and counts.
func (b *Bench) play(s adaptive.Setting, side adaptive.Side, cores bool) (adaptive.Outcome, error) {
	out, err := s.Run(side, cores)
	if b.played == nil {
		b.played = map[string]ledger{}
	}
	l := b.played[side.Name]
	b.played[side.Name] = ledger{l.acked + out.Acked, l.atRisk + out.AtRisk}
	return out, err
}

// checked says what was counted in a row.
func (b *Bench) checked() string {
	all, exceptions := 0, ""
	for _, side := range slices.Sorted(maps.Keys(b.played)) {
		l := b.played[side]
		if all += l.acked; l.atRisk > 0 {
			exceptions += fmt.Sprintf(", but for %d of the %d of %s", l.atRisk, l.acked, side)
		}
	}
	return fmt.Sprintf("Whichever minority had failed at the moment of an acknowledgement, the others had the entry: so it was at each of the %d acknowledgements of these runs%s.", all, exceptions)
}

// Result is what was measured for a row.
type Result struct {
	Tables []lab.Table
	Charts []svg.Chart
	// Worst is the largest factor by which the best safe side is better than Weft, and Where names
	// its cell. Factor and Of are the factor and the cell among all sides, safe or not. 0: the row has no such comparison.
	Worst, Factor float64
	Where, Of     string
	// Beside is how many times as good as each side Weft is, from the worst cell to the best.
	Beside []Beside
	// Says is the outcome in words, of a row that compares no sides.
	Says string
}

// Beside is Weft beside a side.
type Beside struct {
	Side        string
	Least, Most float64
}

// ratios writes the list.
func (res *Result) ratios() string {
	var parts []string
	for _, x := range res.Beside {
		least, most := fmt.Sprintf("%.2fx", x.Least), fmt.Sprintf("%.2fx", x.Most)
		if least != most {
			least += " to " + most
		}
		parts = append(parts, x.Side+" "+least)
	}
	return strings.Join(parts, ", ")
}

// all returns the rows of all papers.
func all() []Row { return slices.Concat(crossword, flexraft, bodega, compartmentalized) }

// Find returns the rows that an id names: one, all of a paper, or all.
func Find(id string) ([]Row, error) {
	var found []Row
	for _, r := range all() {
		if id == "" || r.ID() == id || r.Paper == id {
			found = append(found, r)
		}
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("--figure: no row %q; weftbench papers --list names all", id)
	}
	return found, nil
}

// tolerance is how far behind counts as even.
const tolerance = 1.03

// run runs a row by one of its functions.
func (r *Row) run(b *Bench, f func(*Bench) (*Result, error)) (*Result, error) {
	if err := b.Ctx.Err(); err != nil {
		return nil, err
	}
	fmt.Fprintf(b.Progress, "%s: %s\n", r.ID(), r.Title)
	b.played = nil
	res, err := f(b)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", r.ID(), err)
	}
	if len(b.played) > 0 {
		last := &res.Tables[len(res.Tables)-1]
		last.Notes = append(last.Notes, b.checked())
	}
	return res, nil
}

// Text prints a row, and what was measured for it, if anything was.
func (r *Row) Text(res *Result) string {
	var s strings.Builder
	fmt.Fprintf(&s, "%s  %s\n  setting: %s\n  sides: %s; metric: %s\n", r.ID(), r.Title, r.Setting, r.Sides, r.Metric)
	for _, c := range r.Published {
		fmt.Fprintf(&s, "  published: %s: %s\n", c.What, c.Value)
	}
	if r.Reason != "" {
		fmt.Fprintf(&s, "  not run: %s\n", r.Reason)
	}
	if r.Ours != "" {
		fmt.Fprintf(&s, "  ours: %s (weftbench %s)\n", r.Ours, r.By)
	}
	if res == nil {
		return s.String()
	}
	for _, t := range res.Tables {
		s.WriteString(t.String())
	}
	fmt.Fprintf(&s, "\n  %s\n", r.outcome(res))
	return s.String()
}

// outcome is how Weft compares.
func (r *Row) outcome(res *Result) string {
	if len(res.Beside) == 0 {
		if res.Says == "" {
			return "the tables have all sides"
		}
		return res.Says
	}
	text := "Weft is the best safe side"
	switch {
	case res.Worst > tolerance:
		text = fmt.Sprintf("Weft is at %.2f of the best safe side at worst (%s): %s", 1/res.Worst, res.Where, r.Behind)
	case res.Worst > 1.005:
		text = fmt.Sprintf("Weft is the best safe side, or within 3%% (at worst %.2f of it: %s)", 1/res.Worst, res.Where)
	}
	if res.Factor > tolerance && res.Factor > res.Worst {
		text += fmt.Sprintf("; at %.2f of a side with a weaker guarantee at worst (%s)", 1/res.Factor, res.Of)
	}
	return "Weft beside " + res.ratios() + ". " + text
}

// Measured is a row with its result; Result is nil for a row that is not run.
type Measured struct {
	Row
	Result *Result
}

// Run runs rows, one after the other, and says what is wrong with a row whose figures its words do
// not explain. With real, rows run on this machine, or not at all.
func Run(b *Bench, rows []Row, real bool) (list []Measured, err error) {
	for _, r := range rows {
		m := Measured{Row: r}
		f := r.Run
		if real {
			f = r.Real
		}
		if f != nil {
			if m.Result, err = r.run(b, f); err != nil {
				return nil, err
			}
			if m.Result.Worst > tolerance && r.Behind == "" && !b.Short {
				return nil, fmt.Errorf("%s: Weft is at %.2f of the best safe side (%s), and the row does not say why", r.ID(), 1/m.Result.Worst, m.Result.Where)
			}
		}
		list = append(list, m)
	}
	return list, nil
}

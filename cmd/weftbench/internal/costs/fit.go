// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package costs

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"time"

	"github.com/weftraft/weft/cmd/weftbench/internal/hostnode"
	"github.com/weftraft/weft/internal/lab"
)

// Fitting is costs, and how far they are from what was measured.
type Fitting struct {
	Costs Costs
	// All is the error over all processes, Leaders, Followers and Gateways over those, and Unseen over runs that
	// the fit has not seen: each tenth of the loads by costs that are fitted to the rest.
	All, Leaders, Followers, Gateways, Unseen Spread
}

// Spread is a distribution of relative errors.
type Spread struct {
	Samples             int
	Median, Most, Worst float64 // Most: of nine in ten
}

// Fit fits costs to samples.
func Fit(samples []Sample) Fitting {
	f := Fitting{Costs: fitted(samples)}
	f.Costs.fitWakes(samples)
	var leaders, followers, gateways []Sample
	for _, s := range samples {
		of := &followers
		if s.Leader {
			of = &leaders
		} else if s.Gateway {
			of = &gateways
		}
		*of = append(*of, s)
	}
	f.All, f.Leaders, f.Followers, f.Gateways = SpreadOf(f.Costs.errors(samples)), SpreadOf(f.Costs.errors(leaders)), SpreadOf(f.Costs.errors(followers)), SpreadOf(f.Costs.errors(gateways))
	var parts [10][]Sample
	number, last := 0, Load{}
	for _, s := range samples {
		if s.Load != last {
			number, last = number+1, s.Load
		}
		parts[number%len(parts)] = append(parts[number%len(parts)], s)
	}
	var unseen []float64
	for i, part := range parts {
		rest := slices.Concat(slices.Concat(parts[:i]...), slices.Concat(parts[i+1:]...))
		unseen = append(unseen, fitted(rest).errors(part)...)
	}
	f.Unseen = SpreadOf(unseen)
	return f
}

// fitWakes fits how often threads sleep in a second, for a frame, and for a round of the log's writer, to the loads of the fewest clients: there
// each frame and round finds the process asleep. With more clients frames find it awake, as they do in a simulation; rounds wait for the disk
// in any case.
func (c *Costs) fitWakes(samples []Sample) {
	fewest := math.MaxInt
	for _, s := range samples {
		if n := s.Load.Clients; n > 0 {
			fewest = min(fewest, n)
		}
	}
	var counts [][]float64
	var sleeps []float64
	for _, s := range samples {
		if w := s.Work; s.Load.Clients <= fewest {
			counts = append(counts, []float64{w.Seconds, w.FramesIn, w.Writes, w.Calls[hostnode.Lean] + w.Calls[hostnode.RPC]})
			sleeps = append(sleeps, w.Sleeps)
		}
	}
	if f := lab.Fit(counts, sleeps); f != nil {
		times := func(sleeps float64) time.Duration { return time.Duration(math.Round(sleeps * float64(c.Sleep))) }
		// The end of a round wakes a process, too.
		c.WakeSecond, c.Wake, c.WakeWrite = times(f[0]), times(f[1]), times(max(f[2]-f[1], 0))
	}
}

func fitted(samples []Sample) (c Costs) {
	terms := c.terms()
	var counts [][]float64
	var measured []float64
	for _, s := range samples {
		var row []float64
		for _, t := range terms {
			row = append(row, t.count(s.Work))
		}
		counts, measured = append(counts, row), append(measured, float64(s.CPU))
	}
	for i, f := range lab.Fit(counts, measured) {
		*terms[i].cost = time.Duration(math.Round(f))
	}
	return c
}

// errors are the relative errors of samples, without sign.
func (c Costs) errors(samples []Sample) (all []float64) {
	for _, s := range samples {
		if s.CPU > 0 {
			all = append(all, math.Abs(float64(c.Of(s.Work))/float64(s.CPU)-1))
		}
	}
	return all
}

// SpreadOf returns the distribution of errors, which it sorts.
func SpreadOf(errors []float64) Spread {
	if len(errors) == 0 {
		return Spread{}
	}
	slices.Sort(errors)
	at := func(q float64) float64 { return errors[min(int(q*float64(len(errors))), len(errors)-1)] }
	return Spread{len(errors), at(0.5), at(0.9), errors[len(errors)-1]}
}

// rows are the costs in words.
func (c Costs) rows() [][]string {
	rows := [][]string{{"cost", "of", "µs"}}
	for _, t := range c.terms() {
		rows = append(rows, []string{t.name, t.unit, strconv.FormatFloat(t.cost.Seconds()*1e6, 'f', 3, 64)})
	}
	for _, w := range []struct {
		name, unit string
		cost       time.Duration
	}{
		{"wake second", "in a simulation, for sleeps: a second", c.WakeSecond},
		{"wake write", "a round of the log's writer", c.WakeWrite},
		{"wake", "a process that had no work, and gets some", c.Wake},
	} {
		rows = append(rows, []string{w.name, w.unit, strconv.FormatFloat(w.cost.Seconds()*1e6, 'f', 3, 64)})
	}
	return rows
}

// Source returns fitted.go with these costs.
func (c Costs) Source() string {
	v := reflect.ValueOf(c)
	width := 0
	for i := range v.NumField() {
		width = max(width, len(v.Type().Field(i).Name))
	}
	text := `// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package costs

// Fitted is the costs of this code, in nanoseconds, as weftbench costs wrote them with
// docs/data/costs.md, which has the error of the fit. Another run gives other figures, here and in
// simulations.
var Fitted = Costs{
`
	for i := range v.NumField() {
		text += fmt.Sprintf("\t%-*s %d,\n", width+1, v.Type().Field(i).Name+":", v.Field(i).Int())
	}
	return text + "}\n"
}

// Report writes the fit.
func Report(cfg Config, samples []Sample, f Fitting) *lab.Section {
	costs := lab.Table{Title: "Fitted costs:", Rows: f.Costs.rows()}
	off := lab.Table{Title: "Relative error of the processor time that the costs give a process under a load:",
		Rows: [][]string{SpreadHead}}
	for _, x := range []struct {
		of string
		s  Spread
	}{{"all", f.All}, {"leaders", f.Leaders}, {"followers", f.Followers}, {"gateways", f.Gateways}, {"loads that the fit has not seen", f.Unseen}} {
		off.Rows = append(off.Rows, x.s.Row(x.of))
	}
	return &lab.Section{
		Verb: "costs", Title: "Data: what work takes of a processor", Page: true, Rounds: cfg.Rounds,
		Intro: fmt.Sprintf("Written by `weftbench costs`: processor time of three Hosts, each a process of its own with its log on a disk, under %d loads of %v, in %d rounds:\n"+
			"clients in the process, in frames that %d clients share, and by gRPC; commands of %s; %v clients, at the leader and at all\n"+
			"nodes; with batches, and with an entry for each command; reads; and writes and reads at 1 and %d gateways. Costs are the factors, none below zero, whose sum over the work\n"+
			"that a process has counted is nearest to its processor time, in relative terms and over all rounds of a load: a leader, a follower, a reader and a gateway differ in\n"+
			"what they do, not in what it costs. Sleeps are those of threads that gave a processor back to wait: with few clients each frame and call wakes threads, and\n"+
			"with many it finds them awake. `weftbench compartments` reads the costs from `cmd/weftbench/internal/costs`.",
			len(cfg.loads(true))+len(cfg.loads(false)), cfg.Time, cfg.Rounds, perConn, words(cfg.Sizes), cfg.Clients, MostGateways),
		Tables: []lab.Table{costs, off},
		Data: struct {
			Fitting Fitting
			Samples []Sample
		}{f, samples},
	}
}

// SpreadHead is the head of a table of spreads.
var SpreadHead = []string{"of", "samples", "median", "9 of 10 within", "worst"}

// Row returns the spread as a row of a table.
func (s Spread) Row(of string) []string {
	return []string{of, strconv.Itoa(s.Samples), percent(s.Median), percent(s.Most), percent(s.Worst)}
}

func percent(x float64) string { return strconv.FormatFloat(100*x, 'f', 1, 64) + "%" }

func words(sizes []int) (text string) {
	for i, s := range sizes {
		if i > 0 {
			text += ", "
		}
		text += lab.Bytes(s)
	}
	return text
}

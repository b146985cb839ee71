// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package papers

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/weftraft/weft/internal/lab"
	"github.com/weftraft/weft/internal/svg"
)

// weft begins the names of Weft's sides. The first is the one that is compared.
const weft = "Weft"

// weaker are the sides that survive less than Weft, or answer wrongly, and how.
var weaker = []Claim{
	{"RSPaxos", "at N = 5 survives one failure, not two; nothing commits after the second"},
	{"CRaft", "entries in flight when a server fails wait until the failure is known and they were stored again, whole"},
	{"HRaft", "like CRaft, and acknowledged entries are extended in place"},
	{"FlexRaft", "entries in flight are coded anew, and holders overwrite acknowledged entries"},
	{"FlexRaft+", "bytes are those of FlexRaft; worked out, not run"},
	{"Crossword", "a later leader may store an entry with fewer shards: two leaders that fail in turn can lose it"},
	{"Chain Replication", "at the first failure the chain stands still until a service outside of it takes the machine out"},
	{"Bodega, published", "answers that are not linearizable are possible (lines 36 and 39 of its Figure 17)"},
}

// isWeaker reports whether a side is one of those.
func isWeaker(side string) bool {
	return slices.ContainsFunc(weaker, func(w Claim) bool { return w.What == side })
}

// grid is figures by group and side.
type grid struct {
	title, by, unit string
	// higher says that more is better.
	higher bool
	groups []string
	sides  []string
	value  map[string]map[string]float64 // by side and group; NaN: the side is stuck
}

func newGrid(title, by, unit string, higher bool) *grid {
	return &grid{title: title, by: by, unit: unit, higher: higher, value: map[string]map[string]float64{}}
}

func (g *grid) put(group, side string, v float64) {
	if _, ok := g.value[side]; !ok {
		g.sides, g.value[side] = append(g.sides, side), map[string]float64{}
	}
	if !slices.Contains(g.groups, group) {
		g.groups = append(g.groups, group)
	}
	g.value[side][group] = v
}

func (g *grid) at(group, side string) float64 {
	v, ok := g.value[side][group]
	if !ok {
		return math.NaN()
	}
	return v
}

// table has a row a group and a column a side.
func (g *grid) table() lab.Table {
	t := lab.Table{Title: fmt.Sprintf("%s (%s)", g.title, g.unit), Rows: [][]string{append([]string{g.by}, g.sides...)}}
	for _, group := range g.groups {
		row := []string{group}
		for _, s := range g.sides {
			row = append(row, figure(g.at(group, s)))
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

// figure writes a number with three digits that count.
func figure(v float64) string {
	switch a := math.Abs(v); {
	case math.IsNaN(v):
		return "-"
	case a >= 100:
		return strconv.FormatFloat(v, 'f', 0, 64)
	case a >= 10:
		return strconv.FormatFloat(v, 'f', 1, 64)
	}
	return strconv.FormatFloat(v, 'f', 2, 64)
}

// bars draws the grid.
func (g *grid) bars() svg.Chart {
	c := svg.Chart{Title: g.title, X: g.by, Y: g.unit, Labels: g.groups}
	for _, s := range g.sides {
		one := svg.Series{Name: s}
		for _, group := range g.groups {
			one.Y = append(one.Y, g.at(group, s))
		}
		c.Series = append(c.Series, one)
	}
	return c
}

// lines draws the grid with a line a side, over the sizes of groups, in bytes.
func (g *grid) lines(x []float64, logX, logY bool) svg.Chart {
	c := g.bars()
	c.Labels, c.LogX, c.LogY, c.Bytes = nil, logX, logY, true
	for i := range c.Series {
		c.Series[i].X = x
	}
	return c
}

// ours is the name of Weft's side in the grid: the first.
func (g *grid) ours() string {
	for _, s := range g.sides {
		if strings.HasPrefix(s, weft) {
			return s
		}
	}
	return ""
}

// compare notes how Weft stands beside each side, the best safe side, and the best of all.
func (res *Result) compare(g *grid) {
	for _, s := range g.sides {
		if strings.HasPrefix(s, weft) {
			continue
		}
		least, most := math.Inf(1), math.Inf(-1)
		for _, group := range g.groups {
			v, ours := g.at(group, s), g.at(group, g.ours())
			if math.IsNaN(v) || math.IsNaN(ours) || v == 0 || ours == 0 {
				continue
			}
			behind := ours / v
			if g.higher {
				behind = v / ours
			}
			least, most = min(least, 1/behind), max(most, 1/behind)
			where := group + ", " + s
			if !isWeaker(s) && behind > res.Worst {
				res.Worst, res.Where = behind, where
			}
			if behind > res.Factor {
				res.Factor, res.Of = behind, where
			}
		}
		if least <= most {
			res.beside(s, least, most)
		}
	}
}

// beside adds how many times as good as a side Weft is, in all grids.
func (res *Result) beside(side string, least, most float64) {
	for i := range res.Beside {
		if x := &res.Beside[i]; x.Side == side {
			x.Least, x.Most = min(x.Least, least), max(x.Most, most)
			return
		}
	}
	res.Beside = append(res.Beside, Beside{side, least, most})
}

// result is a result with grids, all of which are compared: tables, bars, and the comparison.
func result(grids ...*grid) *Result {
	res := &Result{}
	for _, g := range grids {
		res.show(g)
		res.compare(g)
	}
	return res
}

// show adds a grid, and compares nothing.
func (res *Result) show(g *grid) *Result {
	res.Tables, res.Charts = append(res.Tables, g.table()), append(res.Charts, g.bars())
	return res
}

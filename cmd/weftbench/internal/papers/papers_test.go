// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package papers

import (
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// figures reads testdata/figures.txt: by paper, with and without results.
func figures(t *testing.T) (with, without map[string][]string) {
	text, err := os.ReadFile("testdata/figures.txt")
	require.NoError(t, err)
	with, without = map[string][]string{}, map[string][]string{}
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		paper, list, ok := strings.Cut(strings.TrimSpace(line), ": ")
		require.True(t, ok, line)
		to := with
		if rest, no := strings.CutPrefix(paper, "without "); no {
			paper, to = rest, without
		}
		to[paper] = strings.Fields(list)
	}
	return with, without
}

func TestEveryFigureWithResultsHasARow(t *testing.T) {
	with, _ := figures(t)
	want := 0
	for paper, numbers := range with {
		for _, number := range numbers {
			rows, err := Find(paper + "/" + number)
			require.NoError(t, err)
			require.Len(t, rows, 1, paper+"/"+number)
			want++
		}
	}
	require.Len(t, all(), want, "a row has no figure in testdata/figures.txt")
}

// TestNumbersOfFiguresHaveNoGap checks the list itself: numbers run from 1 to the last.
func TestNumbersOfFiguresHaveNoGap(t *testing.T) {
	with, without := figures(t)
	for paper, last := range map[string]int{"crossword": 14, "flexraft": 19, "bodega": 17, "compartments": 20} {
		seen := map[string]bool{}
		for _, number := range append(with[paper], without[paper]...) {
			seen[strings.TrimRight(number, "abcdef")] = true
		}
		for i := 1; i <= last; i++ {
			require.True(t, seen[strconv.Itoa(i)], "%s: figure %d", paper, i)
		}
	}
}

// notRun are the rows with a reason in the place of a run.
var notRun = []string{"compartments/7.3"}

func TestEveryRowIsRunOrSaysWhyNot(t *testing.T) {
	for _, r := range all() {
		require.Equal(t, slices.Contains(notRun, r.ID()), r.Run == nil && r.Real == nil, r.ID())
		require.NotEqual(t, r.Run != nil || r.Real != nil, r.Reason != "", "%s: a function, or a reason", r.ID())
		require.Equal(t, r.Run != nil || r.Real != nil, r.By != "" && r.Ours != "", "%s: the world, and how the setting differs", r.ID())
		require.NotEmpty(t, r.Title, r.ID())
		require.NotEmpty(t, r.Setting, r.ID())
		require.NotEmpty(t, r.Sides, r.ID())
		require.NotEmpty(t, r.Metric, r.ID())
		require.NotEmpty(t, r.Published, r.ID())
		if r.Reason != "" {
			require.GreaterOrEqual(t, len(strings.Fields(r.Reason)), 8, "%s: a reason that a reader accepts", r.ID())
		}
	}
	_, err := Find("crossword/99")
	require.ErrorContains(t, err, "crossword/99")
}

// cheap are rows that take a few milliseconds, one or two of each world.
var cheap = []string{"crossword/1", "crossword/3", "crossword/7c", "crossword/13", "crossword/14", "flexraft/T1", "flexraft/13", "flexraft/14", "bodega/14", "compartments/18c"}

// TestRowsPrintTheSameTwice writes pages with a few rows, twice.
func TestRowsPrintTheSameTwice(t *testing.T) {
	var written [2]map[string]string
	for i := range written {
		var list []Measured
		for _, id := range cheap {
			rows, err := Find(id)
			require.NoError(t, err)
			b := &Bench{Ctx: t.Context(), Seed: 1, Progress: io.Discard, Short: true}
			got, err := Run(b, rows, false)
			require.NoError(t, err, id)
			require.NotNil(t, got[0].Result, id)
			require.Contains(t, got[0].Text(got[0].Result), got[0].Title)
			list = append(list, got...)
		}
		dir := t.TempDir()
		require.NoError(t, Write(dir, list, 1))
		written[i] = map[string]string{}
		require.NoError(t, filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			data, err := os.ReadFile(path)
			written[i][strings.TrimPrefix(path, dir)] = string(data)
			return err
		}))
	}
	require.Len(t, written[0], 2+len(cheap))
	require.Equal(t, written[0], written[1])
}

// TestWorkedOutCostsAreThePublished compares the costs of FlexRaft's Table 1 with what a run sends.
func TestWorkedOutCostsAreThePublished(t *testing.T) {
	res, err := costs(5)(&Bench{Ctx: t.Context(), Seed: 1, Progress: io.Discard, Short: true})
	require.NoError(t, err)
	want := [][]string{
		{"failed", "Weft", "full copies", "CRaft", "HRaft", "FlexRaft", "FlexRaft+"},
		{"0", "1.33", "4.00", "1.33", "1.33", "1.33", "1.33"},
		{"1", "1.50", "3.00", "3.00", "1.67", "1.50", "1.50"},
		{"2", "2.00", "2.00", "2.00", "2.00", "2.00", "2.00"},
	}
	require.Equal(t, want, res.Tables[0].Rows)
}

func TestRowThatIsBehindMustSayWhy(t *testing.T) {
	b := &Bench{Ctx: t.Context(), Seed: 1, Progress: io.Discard}
	behind := Row{Paper: "x", Number: "1", Run: func(*Bench) (*Result, error) {
		g := newGrid("", "", "", true)
		g.put("a", weft, 1)
		g.put("a", "full copies", 1.5)
		g.put("a", "CRaft", 9)
		return result(g), nil
	}}
	_, err := Run(b, []Row{behind}, false)
	require.ErrorContains(t, err, "0.67 of the best safe side")
	behind.Behind = "because"
	got, err := Run(b, []Row{behind}, false)
	require.NoError(t, err)
	require.Equal(t, "Weft beside full copies 0.67x, CRaft 0.11x. Weft is at 0.67 of the best safe side at worst (a, full copies): because; at 0.11 of a side with a weaker guarantee at worst (a, CRaft)", got[0].outcome(got[0].Result))
}

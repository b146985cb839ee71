// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package papers

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weftraft/weft/cmd/weftbench/internal/adaptive"
	"github.com/weftraft/weft/internal/lab"
)

func TestRoundsOfATrace(t *testing.T) {
	require.Equal(t, lab.Rounds{2.5, 10}, byRound([]float64{1, 2, 3, 4, 10, 10, 10, 10}))
	require.Empty(t, byRound(nil))
}

// TestSimulationRunsOnAsProcessesDo finds a simulation that shows its first seconds only, in which the policy is worst.
func TestSimulationRunsOnAsProcessesDo(t *testing.T) {
	b := &Bench{Seed: 1, Rounds: lab.LeastRounds}
	rounds, err := b.simulated(rate, servers{5, 0}, 16<<10, adaptive.Weft())
	require.NoError(t, err)
	require.Len(t, rounds, b.Rounds)
	require.Greater(t, rounds[b.Rounds-1], 1.02*rounds[0])
}

// TestRowsThatDoNotRunStayOnThePage writes two rows, and one of them again, in the order of the papers.
func TestRowsThatDoNotRunStayOnThePage(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(dir, "data"), 0o755))
	write := func(id, says string) string {
		rows, err := Find(id)
		require.NoError(t, err)
		require.NoError(t, WriteReal(dir, []Measured{{Row: rows[0], Result: &Result{Says: says}}}))
		page, err := os.ReadFile(filepath.Join(dir, "data", "papers-real.md"))
		require.NoError(t, err)
		return string(page)
	}
	first := write("flexraft/7", "one")
	page := write("crossword/7a", "two")
	require.Less(t, strings.Index(page, "Two."), strings.Index(page, "One."))
	write("crossword/7a", "three")
	page = write("crossword/7a", "two")
	require.Equal(t, 1, strings.Count(page, "crossword 7a"))
	require.NotContains(t, page, "Three.")
	require.NoError(t, os.Remove(filepath.Join(dir, "data", "papers-real.md")))
	require.Equal(t, first, write("flexraft/7", "one"))
}

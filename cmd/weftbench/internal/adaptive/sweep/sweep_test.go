// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weftraft/weft/internal/docs"
)

// TestTableNamesEachConstant compares the table in ecraft/adaptive with the constants of
// the sources.
func TestTableNamesEachConstant(t *testing.T) {
	root, err := docs.Root()
	require.NoError(t, err)
	list, err := constantsOf(root)
	require.NoError(t, err)
	file := filepath.Join(root, document)
	table, err := readTable(file)
	require.NoError(t, err)
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	require.True(t, table.text(list) == string(text), "the table is old: run this command again, with -only and the constants that have changed")
	for _, c := range list {
		require.NotEmpty(t, table.rows[c.name].purpose, "%s: say in %s what it is for", c.name, document)
	}
}

func TestHalvesAndDoubles(t *testing.T) {
	for text, want := range map[string][2]string{
		"0.95": {"0.975", "0.9"}, "1.75": {"1.375", "2.5"}, "3": {"(3) * 0.5", "(3) * 2"}, "64": {"(64) / 2", "(64) * 2"},
		"1 / 12.5e9": {"(1 / 12.5e9) / 2", "(1 / 12.5e9) * 2"}, "1.0": {"(1.0) / 2", "(1.0) * 2"},
	} {
		s := setting{text: text}
		require.Equal(t, want, [2]string{s.half(), s.double()})
	}
}

func TestCompareNamesTheWorst(t *testing.T) {
	r := compare(map[string]float64{"a": 2, "b": 1}, map[string]float64{"a": 1, "b": 2})
	require.InDelta(t, 1, r.mean, 1e-9)
	require.Equal(t, "+0.0%; 2.00: a", r.String())
}

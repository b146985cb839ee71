// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weftraft/weft/internal/docs"
)

func TestPictureShowsTheFiguresOfTheReport(t *testing.T) {
	root, err := docs.Root()
	require.NoError(t, err)
	report, err := os.ReadFile(filepath.Join(root, "docs", reportFile))
	require.NoError(t, err)
	if !strings.Contains(string(report), "| value |") {
		require.NoFileExists(t, filepath.Join(root, "docs", pictureFile), "the report has no figures")
		return
	}
	want, err := drawn(root)
	require.NoError(t, err)
	got, err := os.ReadFile(filepath.Join(root, "docs", pictureFile))
	require.NoError(t, err)
	require.Equal(t, string(want), string(got), "docs/%s is not of docs/%s: make picture", pictureFile, reportFile)
}

const table = `
### 5 members, links of string

| value | clients | ratio of puts | puts/s |
|--:|--:|--:|--:|
| 1 KB | 1 | 0.90 / 0.80 | 1 / 1 / 1 |
| 1 KB | 16 | 0.50 / 3.25 | 1 / 1 / 1 |
| 64 KB | 16 | 1.00 / 2.00 | 1 / 1 / 1 |

### 7 members, links of string

| 2 KB | 16 | 9.00 / 9.00 | 1 / 1 / 1 |
`

func TestRatiosAreThoseOfOneSectionAndNumberOfClients(t *testing.T) {
	got, err := ratios(table, "### 5 members, links of string", "16")
	require.NoError(t, err)
	require.Equal(t, []group{{"1 KB", 0.5, 3.25}, {"64 KB", 1, 2}}, got)

	svg, err := draw([]panel{{title: "a < b", groups: got}})
	require.NoError(t, err)
	for _, part := range []string{"a &lt; b", ">3.25<", ">0.50<", ">64 KB<"} {
		require.Contains(t, string(svg), part)
	}
}

func TestReportWithoutFiguresIsRefused(t *testing.T) {
	const section = "### 5 members, links of string"
	for text, want := range map[string]string{
		"":                                       "no section",
		"\n" + section + "\n\n| a |\n":           "no table that begins",
		"\n" + section + "\n\n" + columns + "\n": "no row of 16 clients",
		"\n" + section + "\n\n" + columns + "\n| 1 KB | 16 | 1 |\n":      "want two numbers",
		"\n" + section + "\n\n" + columns + "\n| 1 KB | 16 | 1 / x |\n":  "want two numbers",
		"\n" + section + "\n\n" + columns + "\n| 1 KB | 16 | NaN / 1 |":  "want two numbers",
		"\n" + section + "\n\n" + columns + "\n| 1 KB | 16 | 1 / -1 |\n": "want two numbers",
	} {
		_, err := ratios(text, section, "16")
		require.ErrorContains(t, err, want, text)
	}
}

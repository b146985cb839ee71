// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestReadmeQuotesTheBenchmarkOfEtcd holds README to the last run: what the report
// says in short stands there, losses included. A report of fewer than five rounds is none,
// and without a report README has the figures of the one load that the page names.
func TestReadmeQuotesTheBenchmarkOfEtcd(t *testing.T) {
	root, err := Root()
	require.NoError(t, err)
	report, err := os.ReadFile(filepath.Join(root, "docs", "data", "etcd.md"))
	require.NoError(t, err)
	readme, err := os.ReadFile(filepath.Join(root, "README.md"))
	require.NoError(t, err)
	if !strings.Contains(string(report), "| value |") {
		require.NotContains(t, string(readme), "puts/s", "docs/data/etcd.md has no table")
		row := putsOfEtcd.FindStringSubmatch(string(readme))
		require.NotNil(t, row, "README has a row with the one load that the page has")
		for _, figure := range row[1:] {
			require.Contains(t, string(report), " "+figure, "docs/data/etcd.md has another figure")
		}
		return
	}
	rounds := roundsOfEtcd.FindStringSubmatch(string(report))
	require.NotNil(t, rounds)
	n, err := strconv.Atoi(rounds[1])
	require.NoError(t, err)
	require.GreaterOrEqual(t, n, 5, "rounds of docs/data/etcd.md")
	_, after, ok := strings.Cut(string(report), "\n## In short\n")
	require.True(t, ok, "the table is not complete: make bench-etcd")
	short, _, _ := strings.Cut(after, "\n## ")
	require.NotEmpty(t, folded(short))
	require.Contains(t, folded(string(readme)), folded(short))
}

var (
	dataLink   = regexp.MustCompile(`\(data/([\w-]+\.md)\)`)
	quotedCell = regexp.MustCompile(`\d[\d.,]*\d`)
)

// notInData returns the figures in the tables of a section, the first columns left out, that the
// raw tables do not have. Figures of two characters are too common to be looked for.
func notInData(section, data string) (missing []string) {
	for line := range strings.Lines(section) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		if !strings.HasPrefix(line, "|") || len(cells) < 2 {
			continue
		}
		for _, figure := range quotedCell.FindAllString(strings.Join(cells[1:], " | "), -1) {
			alone := regexp.MustCompile(`(^|[^\d.,])` + regexp.QuoteMeta(figure) + `($|[^\d.,]|[.,]\D)`)
			if len(figure) > 2 && !alone.MatchString(data) {
				missing = append(missing, figure)
			}
		}
	}
	return missing
}

// TestBenchmarksQuoteTheirRawTables holds each figure in the tables of docs/benchmarks.md to the
// files of docs/data that its section links to.
func TestBenchmarksQuoteTheirRawTables(t *testing.T) {
	root, err := Root()
	require.NoError(t, err)
	page, err := os.ReadFile(filepath.Join(root, "docs", "benchmarks.md"))
	require.NoError(t, err)
	quoted := map[string]bool{}
	for _, section := range strings.Split(string(page), "\n## ") {
		data := ""
		for _, m := range dataLink.FindAllStringSubmatch(section, -1) {
			text, err := os.ReadFile(filepath.Join(root, "docs", "data", m[1]))
			require.NoError(t, err)
			data, quoted[m[1]] = data+string(text), true
		}
		title, _, _ := strings.Cut(section, "\n")
		if data != "" {
			require.Empty(t, notInData(section, data), "docs/benchmarks.md, %s: figures that its raw tables do not have", title)
		}
	}
	files, err := filepath.Glob(filepath.Join(root, "docs", "data", "*.md"))
	require.NoError(t, err)
	for _, f := range files {
		require.True(t, quoted[filepath.Base(f)], "docs/benchmarks.md does not link to %s", f)
	}
}

func TestFiguresThatRawTablesLackAreFound(t *testing.T) {
	const data = "| a | 12.5 | 1,328 ms |\nbetween 2.56 and 2.86.\n"
	require.Empty(t, notInData("| 99.9 | 12.5, 1,328 |\n| b | 2.86 |\nwords 77.7\n", data))
	require.Equal(t, []string{"12.4", "328", "2.8"}, notInData("| a | 12.4 |\n| b | 328 and 2.8 |\n", data))
}

var inlineTest = regexp.MustCompile("`go test ([^`]+)`")

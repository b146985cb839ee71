// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// commandRow is a row of internal/docs/commands.md: a command, or what commands begin with, and
// the test that runs the command, or else the reason why none does.
type commandRow struct {
	command     string
	prefix      bool
	test, dir   string
	why         string
	encountered bool
}

var (
	commandCells = regexp.MustCompile("(?m)^\\| `([^`]+)` \\| (.+) \\|$")
	runBy        = regexp.MustCompile("^`(Test\\w+)` in `([\\w/]+)`")
)

// commandRows reads the table.
func commandRows(text string) (rows []*commandRow) {
	for _, m := range commandCells.FindAllStringSubmatch(text, -1) {
		r := &commandRow{why: m[2]}
		r.command, r.prefix = strings.CutSuffix(m[1], "...")
		if by := runBy.FindStringSubmatch(m[2]); by != nil {
			r.test, r.dir = by[1], by[2]
		}
		rows = append(rows, r)
	}
	return rows
}

// covers reports whether a command belongs to the row.
func (r *commandRow) covers(command string) bool {
	return command == r.command || r.prefix && strings.HasPrefix(command, r.command)
}

// wrong says what is wrong with the row, or nothing.
func (r *commandRow) wrong(root string) string {
	switch {
	case r.test != "" && !hasTest(filepath.Join(root, r.dir), r.test):
		return fmt.Sprintf("there is no %s in %s", r.test, r.dir)
	case r.test == "" && (!strings.HasPrefix(r.why, "not run by ") || len(strings.Fields(r.why)) < 7):
		return fmt.Sprintf("says %q, want `TestName` in `directory`, or not run by a test: and a reason", r.why)
	case !r.encountered:
		return "no page has such a command: take the row out"
	}
	return ""
}

// shellLines returns the commands of a snippet, without comments.
func shellLines(s Snippet) (lines []string) {
	for line := range strings.Lines(strings.ReplaceAll(s.Text, "\\\n", " ")) {
		line, _, _ = strings.Cut(line, " #")
		if s.Lang == "console" {
			rest, ok := strings.CutPrefix(line, "$ ")
			if !ok {
				continue // what a command prints
			}
			line = rest
		}
		if line = strings.Join(strings.Fields(line), " "); line != "" && !strings.HasPrefix(line, "#") {
			lines = append(lines, line)
		}
	}
	return lines
}

// fencedCommands returns the commands of all pages, but for those that a test executes
// with their page, and where each is.
func fencedCommands(t *testing.T, root string) map[string]string {
	t.Helper()
	found := map[string]string{}
	for page := range pages(t, root) {
		snippets, err := Snippets(filepath.Join(root, page))
		require.NoError(t, err)
		for _, s := range snippets {
			if _, executed := executedElsewhere[[2]string{page, s.Lang}]; executed || !slices.Contains([]string{"sh", "bash", "shell", "console"}, s.Lang) {
				continue
			}
			for _, line := range shellLines(s) {
				found[line] = s.Pos()
			}
		}
	}
	return found
}

func readCommandRows(t *testing.T) (root string, rows []*commandRow) {
	t.Helper()
	root, err := Root()
	require.NoError(t, err)
	text, err := os.ReadFile(filepath.Join(root, "internal", "docs", "commands.md"))
	require.NoError(t, err)
	rows = commandRows(string(text))
	require.Greater(t, len(rows), 20)
	return root, rows
}

func TestEveryCommandIsRunOrSaysWhyNot(t *testing.T) {
	root, rows := readCommandRows(t)
	commands := fencedCommands(t, root)
	require.Greater(t, len(commands), 30)
	for _, command := range slices.Sorted(maps.Keys(commands)) {
		known := false
		for _, r := range rows {
			if r.covers(command) {
				known, r.encountered = true, true
			}
		}
		if !known {
			t.Errorf("%s: %s: no test runs this command: add a row to internal/docs/commands.md, with the test that does or the reason", commands[command], command)
		}
	}
	for _, r := range rows {
		if wrong := r.wrong(root); wrong != "" {
			t.Errorf("internal/docs/commands.md: %s: %s", r.command, wrong)
		}
	}
}

// TestCommandsRun runs the commands whose rows name this test, as they stand.
func TestCommandsRun(t *testing.T) {
	if testing.Short() {
		t.Skip("builds and runs other tests")
	}
	root, rows := readCommandRows(t)
	ran := 0
	for _, r := range rows {
		if r.test != "TestCommandsRun" {
			continue
		}
		require.False(t, r.prefix, "%s: a command is run as it stands", r.command)
		cmd := exec.Command("sh", "-e", "-c", r.command)
		cmd.Dir = root
		// Commands are for a whole checkout, and make test has vetted it.
		cmd.Env = append(os.Environ(), "GOWORK=", "GOFLAGS="+os.Getenv("GOFLAGS")+" -vet=off")
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s: %s", r.command, out)
		require.NotContains(t, string(out), "no tests to run", r.command)
		ran++
	}
	require.Positive(t, ran)
}

func TestRowsOfCommandsAreChecked(t *testing.T) {
	root, err := Root()
	require.NoError(t, err)
	rows := commandRows("| command | why |\n| `make a ...` | `TestLinks` in `internal/docs` |\n| `make b` | not run by a test: takes an hour |\n" +
		"| `make c` | `TestNowhere` in `internal/docs` |\n| `make d` | too long |\n| `make e` | not run by a test: takes an hour |\n")
	require.Len(t, rows, 5)
	for _, r := range rows[:4] {
		r.encountered = true
	}
	require.True(t, rows[0].covers("make a b"))
	require.False(t, rows[0].covers("make b"))
	require.True(t, rows[1].covers("make b"))
	require.False(t, rows[1].covers("make bc"))
	for i, want := range []string{"", "", "there is no TestNowhere", "want `TestName`", "no page has"} {
		got := rows[i].wrong(root)
		require.Contains(t, got, want)
		require.Equal(t, want == "", got == "")
	}
	require.Equal(t, []string{"make a b", "go run ."}, shellLines(Snippet{Lang: "sh", Text: "make a \\\n  b # why\n# not one\n\ngo run .\n"}))
	require.Equal(t, []string{"make"}, shellLines(Snippet{Lang: "console", Text: "$ make\nall\n"}))
}

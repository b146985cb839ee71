// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package main

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// docCommand is a command in a console block, with the output shown below it.
type docCommand struct {
	line   string
	output string
}

// docCommands returns the commands of a document's console blocks.
func docCommands(text string) (commands []docCommand) {
	inside := false
	for line := range strings.Lines(text) {
		switch command, ok := strings.CutPrefix(line, "$ "); {
		case strings.HasPrefix(line, "```"):
			inside = strings.TrimSpace(line) == "```console"
		case inside && ok:
			commands = append(commands, docCommand{line: strings.TrimSpace(command)})
		case inside:
			commands[len(commands)-1].output += line
		}
	}
	return commands
}

// matches compares what a command printed with what the document shows, in
// which "..." stands for anything.
func (c docCommand) matches(t *testing.T, got string) {
	t.Helper()
	pattern := regexp.QuoteMeta(strings.TrimSpace(c.output))
	pattern = strings.ReplaceAll(pattern, regexp.QuoteMeta("..."), "(?s:.*)")
	// Columns are as wide as what they hold.
	pattern = regexp.MustCompile(` {2,}`).ReplaceAllString(pattern, ` +`)
	require.Regexp(t, "^"+pattern+"$", strings.TrimSpace(got), c.line)
}

// The commands of these pages work as shown, but for the ports.
func TestDocs(t *testing.T) {
	if testing.Short() {
		t.Skip("starts processes")
	}
	for _, page := range []string{"kvdemo.md", "grow.md"} {
		t.Run(page, func(t *testing.T) { followPage(t, filepath.Join("../../docs", page)) })
	}
}

// followPage executes the commands of a page.
func followPage(t *testing.T, page string) {
	text, err := os.ReadFile(page)
	require.NoError(t, err)
	license, err := filepath.Abs("../../LICENSE")
	require.NoError(t, err)
	commands := docCommands(string(text))
	require.Greater(t, len(commands), 8)
	ports := map[string]string{}
	shown := regexp.MustCompile(`127\.0\.0\.1:\d+`)
	address := func(written string) string {
		if ports[written] == "" {
			ports[written] = freePort(t)
		}
		return ports[written]
	}
	t.Chdir(t.TempDir())
	require.NoError(t, os.Symlink(license, "LICENSE"))
	for _, c := range commands {
		line := shown.ReplaceAllStringFunc(c.line, address)
		c.output = shown.ReplaceAllStringFunc(c.output, address)
		if variable, ok := strings.CutPrefix(line, "export "); ok {
			name, value, _ := strings.Cut(variable, "=")
			t.Setenv(name, value)
			continue
		}
		args := strings.Fields(line)
		require.Equal(t, "kvdemo", args[0], "only kvdemo is run: %s", line)
		if last := len(args) - 1; args[last] == "&" {
			runInBackground(t, args[1:last])
			continue
		}
		r := kvdemo(t.Context(), "", args[1:]...)
		require.Zero(t, r.code, "%s: %s", line, r.err)
		c.matches(t, r.out)
	}
}

// runInBackground runs a process that must stop well at the end of the test.
func runInBackground(t *testing.T, args []string) {
	var log bytes.Buffer // complete once the process has ended
	cmd := program(t, args...)
	cmd.Stderr = &log
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		if err := cmd.Process.Signal(syscall.SIGTERM); !errors.Is(err, os.ErrProcessDone) { // else it was removed
			require.NoError(t, err)
		}
		require.NoError(t, cmd.Wait(), log.String())
	})
}

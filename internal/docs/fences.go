// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

// Package docs reads the snippets of the project's documents, so that tests can
// execute them: what a document shows is what was run.
package docs

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Snippet is a fenced block of a Markdown document.
type Snippet struct {
	// File and Line say where the block's first line is.
	File string
	Line int
	// Lang is the word behind the opening fence: sh, go, text, ...
	Lang string
	// From is the file that the block is taken from, if the opening fence
	// says so with from=PATH.
	From string
	// Text is what stands between the fences.
	Text string
}

// Pos names the snippet in messages.
func (s Snippet) Pos() string { return fmt.Sprintf("%s:%d", s.File, s.Line) }

// Snippets returns the fenced blocks of a Markdown file in order. A fence that
// is not closed is an error.
func Snippets(file string) ([]Snippet, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var found []Snippet
	var open *Snippet
	for i, line := range strings.Split(string(data), "\n") {
		fence, isFence := strings.CutPrefix(strings.TrimSpace(line), "```")
		switch {
		case isFence && open == nil:
			open = &Snippet{File: file, Line: i + 2}
			for j, word := range strings.Fields(fence) {
				if from, ok := strings.CutPrefix(word, "from="); ok {
					open.From = from
				} else if j == 0 {
					open.Lang = word
				}
			}
		case isFence:
			found = append(found, *open)
			open = nil
		case open != nil:
			open.Text += line + "\n"
		}
	}
	if open != nil {
		return nil, fmt.Errorf("docs: %s: the fence is not closed", open.Pos())
	}
	return found, nil
}

// Root returns the directory of the module that the working directory is in.
func Root() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", fmt.Errorf("docs: no go.mod at or above the working directory")
		}
		dir = parent
	}
}

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

// mainModule is how the go.mod of the main module begins.
const mainModule = "module github.com/weftraft/weft\n"

// Root returns the directory of the main module, in which the working directory
// is, perhaps in another module of the repository.
func Root() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if mod, err := os.ReadFile(filepath.Join(dir, "go.mod")); err == nil && strings.HasPrefix(string(mod), mainModule) {
			return dir, nil
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", fmt.Errorf("docs: no go.mod of the main module at or above the working directory")
		}
		dir = parent
	}
}

// Script returns the shell commands of a Markdown file, in order.
func Script(file string) (string, error) {
	snippets, err := Snippets(file)
	if err != nil {
		return "", err
	}
	var script strings.Builder
	for _, s := range snippets {
		if s.Lang == "sh" {
			script.WriteString(s.Text)
		}
	}
	return script.String(), nil
}

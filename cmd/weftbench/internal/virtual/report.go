// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package virtual

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"text/tabwriter"
)

// Section is what one command measured.
type Section struct {
	// Verb is the command: it names the section in a document.
	Verb string
	// Title and Intro are the words before the tables.
	Title, Intro string
	Tables       []Table
	// Data is all that was measured, for JSON.
	Data any
}

// Table is a table of words and figures. The first row names the columns.
type Table struct {
	Title string
	Rows  [][]string
	// Notes follow the table, each on a line of its own.
	Notes []string
}

// Text returns the table with aligned columns.
func (t *Table) Text() string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 8, 2, ' ', tabwriter.AlignRight)
	for _, row := range t.Rows {
		fmt.Fprintln(w, strings.Join(row, "\t")+"\t")
	}
	_ = w.Flush() // a Builder does not fail
	return b.String()
}

// Text returns the section for a terminal.
func (s *Section) Text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n\n%s\n", s.Title, s.Intro)
	for _, t := range s.Tables {
		fmt.Fprintf(&b, "\n%s\n\n%s", t.Title, t.Text())
		for _, n := range t.Notes {
			fmt.Fprintf(&b, "%s\n", n)
		}
	}
	return b.String()
}

// Markdown returns the section for a document, between comments that name it.
func (s *Section) Markdown() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n## %s\n\n%s\n", s.mark("begin"), s.Title, s.Intro)
	for _, t := range s.Tables {
		fmt.Fprintf(&b, "\n%s\n\n", t.Title)
		for i, row := range t.Rows {
			fmt.Fprintf(&b, "| %s |\n", strings.Join(row, " | "))
			if i == 0 {
				b.WriteString(strings.Repeat("|--:", len(row)) + "|\n")
			}
		}
		for _, n := range t.Notes {
			fmt.Fprintf(&b, "\n%s\n", n)
		}
	}
	b.WriteString(s.mark("end") + "\n")
	return b.String()
}

func (s *Section) mark(which string) string {
	return fmt.Sprintf("<!-- %s: weftbench %s -->", which, s.Verb)
}

// Write prints the section, or puts it into a document, or writes the data as
// JSON, as the flags of a command say.
func (s *Section) Write(out io.Writer, path string, asJSON bool) error {
	if path != "" {
		if err := s.into(path); err != nil {
			return err
		}
	}
	if asJSON {
		e := json.NewEncoder(out)
		e.SetIndent("", " ")
		return e.Encode(s.Data)
	}
	if path != "" {
		return nil
	}
	_, err := io.WriteString(out, s.Text())
	return err
}

// into replaces the section in a document, or adds it at the end.
func (s *Section) into(path string) error {
	old, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	before, rest, found := strings.Cut(string(old), s.mark("begin")+"\n")
	after := ""
	if found {
		if _, after, found = strings.Cut(rest, s.mark("end")+"\n"); !found {
			return fmt.Errorf("--out: %s has %q without %q", path, s.mark("begin"), s.mark("end"))
		}
	} else if before != "" {
		before = strings.TrimRight(before, "\n") + "\n\n"
	}
	return os.WriteFile(path, []byte(before+s.Markdown()+after), 0o644)
}

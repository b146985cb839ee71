// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package lab

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
	// Page says that the section is a whole document, which Write replaces.
	Page   bool
	Tables []Table
	// Rounds is the least number of rounds behind a figure. Write puts no fewer than LeastRounds
	// into a document, unless time is Virtual: then a run gives the same figures every time.
	Rounds  int
	Virtual bool
	// Data is all that was measured, for JSON.
	Data any
}

// Table is a table of words and figures. The first row names the columns.
type Table struct {
	// Heading, if not empty, begins a part of the document, such as "## Reads".
	Heading string
	Title   string
	Rows    [][]string
	// Notes follow the table, each on a line of its own.
	Notes []string
}

// head writes the words before the rows.
func (t *Table) head(b *strings.Builder) {
	for _, words := range []string{t.Heading, t.Title} {
		if words != "" {
			fmt.Fprintf(b, "\n%s\n", words)
		}
	}
	if len(t.Rows) > 0 {
		b.WriteString("\n")
	}
}

// String returns the table with aligned columns, and the words before and after.
func (t Table) String() string {
	var b strings.Builder
	t.head(&b)
	w := tabwriter.NewWriter(&b, 0, 8, 2, ' ', tabwriter.AlignRight)
	for _, row := range t.Rows {
		fmt.Fprintln(w, strings.Join(row, "\t")+"\t")
	}
	_ = w.Flush() // a Builder does not fail
	for _, n := range t.Notes {
		fmt.Fprintf(&b, "%s\n", n)
	}
	return b.String()
}

// Text returns the section for a terminal.
func (s *Section) Text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n\n%s\n", s.Title, s.Intro)
	for _, t := range s.Tables {
		b.WriteString(t.String())
	}
	return b.String()
}

// Markdown returns the section for a document: a page, or a part between comments that name the
// command.
func (s *Section) Markdown() string {
	if s.Page {
		return "#" + s.body()
	}
	return s.mark("begin") + "\n##" + s.body() + s.mark("end") + "\n"
}

func (s *Section) body() string {
	var b strings.Builder
	fmt.Fprintf(&b, " %s\n\n%s\n", s.Title, s.Intro)
	for _, t := range s.Tables {
		t.head(&b)
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
	return b.String()
}

func (s *Section) mark(which string) string {
	return fmt.Sprintf("<!-- %s: weftbench %s -->", which, s.Verb)
}

// Write prints the section, or puts it into a document, or writes the data as
// JSON, as the flags of a command say.
func (s *Section) Write(out io.Writer, path string, asJSON bool) error {
	if path != "" {
		if !s.Virtual {
			if err := Publishable(path, s.Rounds); err != nil {
				return err
			}
		}
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
	if s.Page {
		return os.WriteFile(path, []byte(s.Markdown()), 0o644)
	}
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

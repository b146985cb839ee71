// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package papers

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"

	"github.com/weftraft/weft/internal/lab"
)

// The papers, in the order of the pages, each with the sides that most of its rows have.
var names = []struct {
	id, name string
	sides    []string
}{
	{"crossword", "Crossword: adaptive consensus for dynamic data-heavy workloads", []string{"full copies", "RSPaxos", "CRaft", "Crossword"}},
	{"flexraft", "FlexRaft: flexible erasure coding for minimum-cost consensus and fast recovery", []string{"full copies", "CRaft", "HRaft", "FlexRaft", "FlexRaft+"}},
	{"bodega", "Bodega: linearizable reads anywhere by roster leases",
		[]string{"ReadIndex", "leader lease", "quorum read", "Quorum Leases", "Quorum Leases, passive", "Bodega, published"}},
	{"compartments", "Compartmentalized Consensus: agreeing with high throughput", nil},
}

// shown are the pictures on the page.
var shown = []string{"crossword/6c", "crossword/7a", "crossword/8", "flexraft/10a", "bodega/11", "bodega/13", "compartments/18b"}

// Write writes the page, the data and the pictures into a directory of documents.
func Write(dir string, list []Measured, seed uint64) error {
	for _, m := range list {
		if err := m.draw(dir, m.picture()); err != nil {
			return err
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "data", "papers.md"), []byte(data(list, seed)), 0o644); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "papers.md"), []byte(page(list)), 0o644)
}

// draw writes a row's picture, if it has one.
func (m *Measured) draw(dir, name string) error {
	if m.Result == nil || len(m.Result.Charts) == 0 {
		return nil
	}
	picture, err := m.Result.Charts[0].SVG()
	if err != nil {
		return fmt.Errorf("%s: %w", m.ID(), err)
	}
	pictures := filepath.Join(dir, "data", "papers")
	if err := os.MkdirAll(pictures, 0o755); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(pictures, name), picture, 0o644)
}

// picture is the name of a row's picture.
func (r *Row) picture() string { return r.Paper + "-" + r.Number + ".svg" }

// realPicture is the name of its picture of processes.
func (r *Row) realPicture() string { return r.Paper + "-" + r.Number + "-real.svg" }

// page is the page: what is run, how Weft compares, and the main pictures.
func page(list []Measured) string {
	var b strings.Builder
	run, not := 0, 0
	for _, m := range list {
		if m.Run != nil || m.Real != nil {
			run++
		} else {
			not++
		}
	}
	fmt.Fprintf(&b, `# Four papers

Weft's design rests on four papers. Each figure and table with results is a row here: what the paper printed, of its own design unless the
cell names another, and how Weft does in the same setting. %d rows are run, %d is not, and says why.

`+"```sh\ngo run ./cmd/weftbench papers --list\ngo run ./cmd/weftbench papers --figure crossword/6c\ngo run ./cmd/weftbench papers --out docs\n```"+`

The last column says by which factor Weft is better than each side that its head names, in that order, and than sides named in the cell,
from the worst cell to the best: above 1 Weft is better. Weft is the best of the sides with the full guarantee, or within 3%% of it, unless the row says **behind**, where, and why. Absolute
figures are of simulated links, in virtual time: a second run writes the same bytes. [data/papers.md](data/papers.md) has all tables,
[data/papers](data/papers) all pictures; [data/papers-real.md](data/papers-real.md) the rows marked *real* as processes (`+"`make papers-real`"+`).
`, run, not)
	b.WriteString("\n## Sides with a weaker guarantee\n\n| side, in the bench only | weaker in |\n|---|---|\n")
	for _, w := range weaker {
		fmt.Fprintf(&b, "| %s | %s |\n", w.What, w.Value)
	}
	for _, n := range names {
		fmt.Fprintf(&b, "\n## %s\n", n.name)
		for _, m := range list {
			if m.Paper == n.id && slices.Contains(shown, m.ID()) && m.Result != nil {
				fmt.Fprintf(&b, "\n![%s](data/papers/%s)\n", m.Title, m.picture())
			}
		}
		beside := ""
		if len(n.sides) > 0 {
			beside = " beside " + strings.Join(n.sides, "; ")
		}
		fmt.Fprintf(&b, "\n| row | published | Weft%s |\n|---|---|---|\n", beside)
		for _, m := range list {
			if m.Paper == n.id {
				fmt.Fprintf(&b, "| [%s](data/papers.md#%s) %s | %s | %s |\n", m.Number, m.anchor(), m.Title, claims(m.Published), brief(m.inPage(), n.sides))
			}
		}
	}
	b.WriteString("\nCrossword's text cites its figures 8 to 12 by two numbers; here they are numbered in the order of the text.\n")
	return b.String()
}

func claims(list []Claim) string {
	var parts []string
	for _, c := range list {
		parts = append(parts, c.What+": "+c.Value)
	}
	return strings.Join(parts, "; ")
}

// inPage is a row's status and outcome in a cell of the page.
func (m *Measured) inPage() string {
	switch {
	case m.Result != nil:
		return m.Status() + ". " + m.outcome(m.Result)
	case m.Reason != "":
		return m.Status() + ": " + m.Reason
	}
	return m.Status() + ": " + m.Ours
}

// The parts of an outcome that brief leaves out or shortens, in this order.
var briefer = []struct {
	long  *regexp.Regexp
	short string
}{
	{regexp.MustCompile(`^run\. `), ""},
	{regexp.MustCompile(`^run, also by processes\. `), besideReal},
	{regexp.MustCompile(`^run on this machine: `), "*real* only: "},
	{regexp.MustCompile(`Weft beside `), ""},
	{regexp.MustCompile(`(\d\.\d\d)x to (\d+\.\d\d)x\b`), "$1-$2"},
	{regexp.MustCompile(`(\d\.\d\d)x\b`), "$1"},
	{regexp.MustCompile(`\. Weft is the best safe side, or within 3% \(at worst ([\d.]+) of it: (.*?)\)`), ". Within 3% of the best safe side ($1: $2)"},
	{regexp.MustCompile(`\. Weft is the best safe side`), ""},
	{regexp.MustCompile(`\. Weft is at [\d.]+ of the best safe side at worst \((.*?)\): `), "; **behind** at $1: "},
	{regexp.MustCompile(`; at [\d.]+ of a side with a weaker guarantee at worst \((.*?)\)`), ""},
	{regexp.MustCompile(`Weft from "[^"]*" to "machines": (\d+) to (\d+) commands a second, ([\d.]+x), on `), "$1 to $2 ($3) on "},
}

const besideReal = "*real*: "

// brief is an outcome in a cell of the page, which says above the tables what holds for most rows, and
// names the sides of most rows in the head of a table.
func brief(outcome string, sides []string) string {
	for _, b := range briefer {
		outcome = b.long.ReplaceAllString(outcome, b.short)
	}
	rest, real := strings.CutPrefix(outcome, besideReal)
	var parts []string
	for _, side := range sides {
		factor, named := strings.CutPrefix(rest, side+" ")
		if !named {
			break
		}
		var part string
		part, rest, named = strings.Cut(factor, ", ")
		if parts = append(parts, part); !named {
			break
		}
	}
	if rest != "" {
		parts = append(parts, rest)
	}
	if real {
		return besideReal + strings.Join(parts, ", ")
	}
	return strings.Join(parts, ", ")
}

func capital(text string) string { return strings.ToUpper(text[:1]) + text[1:] }

// heading and anchor are of a row's section in the data.
func (r *Row) heading() string {
	return strings.ReplaceAll(r.ID(), "/", " ") + ", " + strings.ReplaceAll(r.Title, ",", "")
}

func (r *Row) anchor() string {
	var b strings.Builder
	for _, c := range strings.ToLower(r.heading()) {
		switch {
		case c == ' ':
			b.WriteByte('-')
		case c == '-' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z':
			b.WriteRune(c)
		}
	}
	return b.String()
}

// tables writes what was measured, the outcome, and a link to its picture, if there is one.
func (m *Measured) tables(b *strings.Builder, picture string) {
	for _, t := range m.Result.Tables {
		fmt.Fprintf(b, "\n%s\n\n", strings.TrimSuffix(strings.TrimSuffix(t.Title, ":"), ".")+":")
		for i, row := range t.Rows {
			fmt.Fprintf(b, "| %s |\n", strings.Join(row, " | "))
			if i == 0 {
				b.WriteString("|---" + strings.Repeat("|--:", len(row)-1) + "|\n")
			}
		}
		for _, n := range t.Notes {
			fmt.Fprintf(b, "\n%s\n", n)
		}
	}
	fmt.Fprintf(b, "\n%s.\n", capital(m.outcome(m.Result)))
	if len(m.Result.Charts) > 0 {
		fmt.Fprintf(b, "\n![%s](papers/%s)\n", m.Title, picture)
	}
}

// WriteReal writes the data of rows that were run on this machine into a directory of documents. The page's other rows stay, and may be of
// earlier runs.
func WriteReal(dir string, list []Measured) error {
	file := filepath.Join(dir, "data", "papers-real.md")
	page, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	sections := map[string]string{} // by heading
	for _, s := range strings.Split(string(page), "\n## ")[1:] {
		heading, text, _ := strings.Cut(s, "\n")
		sections[heading] = text
	}
	for _, m := range list {
		if m.Result != nil {
			var b strings.Builder
			m.tables(&b, m.realPicture())
			if err := m.draw(dir, m.realPicture()); err != nil {
				return err
			}
			sections[m.heading()] = b.String()
		}
	}
	var b strings.Builder
	fmt.Fprintf(&b, "# Data: figures of the papers, on real processes\n\nWritten by `make papers-real`: %d processors, %s, %s/%s; processes of kvdemo that send at most 100 Mbit/s each,\n"+
		"at least %d rounds of %v a cell, sides in turns; medians, with the least and the greatest round; every write is on the disks of a majority before it is acknowledged. Processes and clients share the\n"+
		"machine, and so they do in the simulation beside. [papers.md](../papers.md) has what the rows are.\n", runtime.NumCPU(), runtime.Version(), runtime.GOOS, runtime.GOARCH, lab.LeastRounds, long)
	for _, r := range all() {
		if text, ok := sections[r.heading()]; ok && r.Real != nil {
			fmt.Fprintf(&b, "\n## %s\n%s", r.heading(), text)
		}
	}
	return os.WriteFile(file, []byte(b.String()), 0o644)
}

// data is the page with all tables.
func data(list []Measured, seed uint64) string {
	var b strings.Builder
	fmt.Fprintf(&b, "# Data: the figures of four papers\n\nWritten by `go run ./cmd/weftbench papers --out docs`, in virtual time, seed %d; [papers.md](../papers.md) has all in short.\n", seed)
	for _, m := range list {
		fmt.Fprintf(&b, "\n## %s\n\nPaper: %s. Sides: %s. Metric: %s.\n\n| published | |\n|---|---|\n", m.heading(), m.Setting, m.Sides, m.Metric)
		for _, c := range m.Published {
			fmt.Fprintf(&b, "| %s | %s |\n", c.What, c.Value)
		}
		if m.Result == nil {
			fmt.Fprintf(&b, "\n%s.\n", m.inPage())
			continue
		}
		fmt.Fprintf(&b, "\nOurs: %s. World: `weftbench %s`.\n", m.Ours, m.By)
		m.tables(&b, m.picture())
	}
	return b.String()
}

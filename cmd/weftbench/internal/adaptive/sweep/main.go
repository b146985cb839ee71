// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

// Command sweep measures the effect of each constant of the adaptive policy. The command builds the
// policy with the constant halved, and doubled, without touching the files (go build -overlay),
// runs the policy through the model of package adaptive in virtual time, and compares all figures
// with the figures of the unchanged policy. The command writes the table of
// ecraft/adaptive/README.md, in about 20 minutes on two cores:
//
//	go run ./cmd/weftbench/internal/adaptive/sweep -out ecraft/adaptive/README.md
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"math"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/weftraft/weft/cmd/weftbench/internal/adaptive"
	"github.com/weftraft/weft/internal/docs"
)

var (
	figures = flag.Bool("figures", false, "print the figures of the policy as it was built, and nothing else")
	seed    = flag.Uint64("seed", 1, "of networks and clients")
	only    = flag.String("only", "", "constants whose name matches this regular expression")
	rows    = flag.String("rows", "", "a file that keeps rows: those that are there are not measured again")
	out     = flag.String("out", "", "a file with the table between its marks; if empty, it is printed")
)

func main() {
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	run := sweep
	if *figures {
		run = printFigures
	}
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "sweep:", err)
		stop()
		os.Exit(1) //nolint:gocritic // stop was called
	}
}

func printFigures(ctx context.Context) error {
	f, err := adaptive.Figures(ctx, *seed)
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(f)
}

// row is the effect of a change of a constant.
type row struct {
	Mean  float64 `json:"geometric_mean"` // of all figures, divided by those without the change
	Worst float64 `json:"worst"`
	Name  string  `json:"worst_figure"`
}

func sweep(ctx context.Context) error {
	root, err := docs.Root()
	if err != nil {
		return err
	}
	filter, err := regexp.Compile(*only)
	if err != nil {
		return fmt.Errorf("-only: %w", err)
	}
	list, err := constantsOf(root)
	if err != nil {
		return err
	}
	done := map[string]row{}
	if data, err := os.ReadFile(*rows); err == nil {
		if err := json.Unmarshal(data, &done); err != nil {
			return fmt.Errorf("-rows: %w", err)
		}
	}
	scratch, err := os.MkdirTemp("", "sweep")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(scratch) }() // the system's temporary directory is cleaned anyway
	var base map[string]float64
	measure := func(c setting, key, text string) error {
		if _, ok := done[key]; ok {
			return nil
		}
		if base == nil {
			if base, err = measured(ctx, root, scratch, setting{}, ""); err != nil {
				return err
			}
		}
		f, err := measured(ctx, root, scratch, c, text)
		if err != nil {
			return fmt.Errorf("%s = %s: %w", c.name, text, err)
		}
		done[key] = compare(f, base)
		fmt.Fprintln(os.Stderr, key, done[key])
		return save(done)
	}
	for _, c := range list {
		if !filter.MatchString(c.name) {
			continue
		}
		if err := measure(c, c.name+"/2", c.half()); err != nil {
			return err
		}
		if err := measure(c, c.name+"*2", c.double()); err != nil {
			return err
		}
		if c.name == chance {
			if err := measure(c, c.name+"*1.01", "("+c.text+") * 1.01"); err != nil {
				return err
			}
		}
	}
	return write(table(list, done))
}

// chance is a constant that is also changed by a hundredth, to show the effect of chance.
const chance = "forget"

func save(done map[string]row) error {
	if *rows == "" {
		return nil
	}
	data, err := json.MarshalIndent(done, "", "\t")
	if err != nil {
		return err
	}
	return os.WriteFile(*rows, data, 0o600)
}

// measured returns the figures of the policy with another value of a constant.
func measured(ctx context.Context, root, scratch string, c setting, text string) (map[string]float64, error) {
	binary := filepath.Join(scratch, "sweep")
	args := []string{"build", "-o", binary}
	if c.name != "" {
		src, err := os.ReadFile(c.file)
		if err != nil {
			return nil, err
		}
		changed := filepath.Join(scratch, "changed.go")
		src = slices.Concat(src[:c.from], []byte(text), src[c.to:])
		if err := os.WriteFile(changed, src, 0o600); err != nil {
			return nil, err
		}
		overlay, err := json.Marshal(map[string]map[string]string{"Replace": {c.file: changed}})
		if err != nil {
			return nil, err
		}
		file := filepath.Join(scratch, "overlay.json")
		if err := os.WriteFile(file, overlay, 0o600); err != nil {
			return nil, err
		}
		args = append(args, "-overlay", file)
	}
	build := exec.CommandContext(ctx, "go", append(args, "./cmd/weftbench/internal/adaptive/sweep")...)
	build.Dir = root
	if output, err := build.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("it does not compile: %w: %s", err, output)
	}
	data, err := exec.CommandContext(ctx, binary, "-figures", "-seed", fmt.Sprint(*seed)).Output()
	if err != nil {
		return nil, err
	}
	var f map[string]float64
	return f, json.Unmarshal(data, &f)
}

func compare(f, base map[string]float64) (r row) {
	logs := 0.0
	for _, name := range slices.Sorted(maps.Keys(base)) {
		x := f[name] / base[name]
		logs += math.Log(x)
		if x > r.Worst {
			r.Worst, r.Name = x, name
		}
	}
	r.Mean = math.Exp(logs / float64(len(base)))
	return r
}

// String describes the effect, for a cell of the table.
func (r row) String() string {
	if r.Mean == 0 {
		return "not measured"
	}
	if r.Worst < 1.0005 && math.Abs(r.Mean-1) < 0.0005 {
		return "nothing in the model"
	}
	return fmt.Sprintf("%+.1f%%; %.2f: %s", 100*(r.Mean-1), r.Worst, r.Name)
}

func table(list []setting, done map[string]row) string {
	var b strings.Builder
	b.WriteString("| constant | value | what it is for | half | double |\n|---|---|---|---|---|\n")
	for _, c := range list {
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s |\n", c.name, c.text, purposes[c.name], done[c.name+"/2"], done[c.name+"*2"])
	}
	fmt.Fprintf(&b, "\nChance alone, by a hundredth more of `%s`: %s.\n", chance, done[chance+"*1.01"])
	return b.String()
}

const (
	begin = "<!-- begin: sweep -->\n"
	end   = "<!-- end: sweep -->"
)

// write puts the table between the marks of the file, or prints the table.
func write(table string) error {
	if *out == "" {
		fmt.Print(table)
		return nil
	}
	text, err := os.ReadFile(*out)
	if err != nil {
		return err
	}
	before, rest, ok := strings.Cut(string(text), begin)
	_, after, closed := strings.Cut(rest, end)
	if !ok || !closed {
		return fmt.Errorf("%s has no lines %q and %q", *out, strings.TrimSpace(begin), end)
	}
	return os.WriteFile(*out, []byte(before+begin+table+end+after), 0o644) //nolint:gosec // a document
}

// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

// Command sweep measures the effect of each constant of the adaptive policy. The command builds the
// policy with the constant halved, and doubled, without touching the files (go build -overlay),
// runs the policy through the model of package adaptive in virtual time, and compares all figures
// with the figures of the unchanged policy. The command writes the table of
// ecraft/adaptive/README.md, in about 20 minutes on two cores, row by row:
//
//	go run ./cmd/weftbench/internal/adaptive/sweep
//
// What a constant is for, the table's third column, is written there by hand. With -only the other
// rows stay as they are.
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

	"github.com/weftraft/weft/cmd/weftbench/internal/adaptive"
	"github.com/weftraft/weft/internal/docs"
	"github.com/weftraft/weft/internal/lab"
)

var (
	figures = flag.Bool("figures", false, "print the figures of the policy as it was built, and nothing else")
	seed    = flag.Uint64("seed", 1, "of networks and clients")
	only    = flag.String("only", "", "constants whose name matches this regular expression")
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

// chance is a constant that is also changed by a hundredth, to show the effect of chance.
const chance = "forget"

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
	file := filepath.Join(root, document)
	t, err := readTable(file)
	if err != nil {
		return err
	}
	scratch, err := os.MkdirTemp("", "sweep")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(scratch) }() // the system's temporary directory is cleaned anyway
	base, err := measured(ctx, root, scratch, setting{}, "")
	if err != nil {
		return err
	}
	for _, c := range list {
		if !filter.MatchString(c.name) {
			continue
		}
		r := t.row(c.name)
		changes := map[string]*string{c.half(): &r.half, c.double(): &r.double}
		if c.name == chance {
			changes["("+c.text+") * 1.01"] = &t.chance
		}
		for text, cell := range changes {
			f, err := measured(ctx, root, scratch, c, text)
			if err != nil {
				return fmt.Errorf("%s = %s: %w", c.name, text, err)
			}
			*cell = compare(f, base).String()
			fmt.Fprintln(os.Stderr, c.name, "=", text, *cell)
		}
		if err := os.WriteFile(file, []byte(t.text(list)), 0o644); err != nil { //nolint:gosec // a document
			return err
		}
	}
	return nil
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

// effect is the effect of a change of a constant.
type effect struct {
	mean  float64 // geometric, of all figures, divided by those without the change
	worst float64
	name  string // the worst figure
}

func compare(f, base map[string]float64) (e effect) {
	var ratios []float64
	for _, name := range slices.Sorted(maps.Keys(base)) {
		x := f[name] / base[name]
		ratios = append(ratios, x)
		if x > e.worst {
			e.worst, e.name = x, name
		}
	}
	e.mean = lab.GeometricMean(ratios)
	return e
}

// String describes the effect, for a cell of the table.
func (e effect) String() string {
	if e.worst < 1.0005 && math.Abs(e.mean-1) < 0.0005 {
		return "nothing in the model"
	}
	return fmt.Sprintf("%+.1f%%; %.2f: %s", 100*(e.mean-1), e.worst, e.name)
}

// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package mutate

import (
	"context"
	"fmt"
	"go/ast"
	"go/build"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// checker looks whether packages compile with a mutant. It takes a fraction of a build's time: the
// packages that these packages import are read once for all mutants, and no code is made.
type checker struct {
	root    string
	files   *token.FileSet
	imports types.Importer
}

// newChecker has the go command compile, as they are, the packages into which mutants are put.
func newChecker(ctx context.Context, root string, mutants []Mutant) (*checker, error) {
	args := []string{"list", "-export", "-deps", "-f", "{{.ImportPath}}\t{{.Export}}"}
	for _, m := range mutants {
		for _, c := range m.changes() {
			args = append(args, "./"+filepath.Dir(c.File))
		}
	}
	slices.Sort(args[5:])
	cmd := exec.CommandContext(ctx, "go", slices.Compact(args)...)
	cmd.Dir = root
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("compiling the packages of the mutants: %w", err)
	}
	compiled := map[string]string{}
	for line := range strings.Lines(string(out)) {
		path, file, _ := strings.Cut(strings.TrimSpace(line), "\t")
		compiled[path] = file
	}
	files := token.NewFileSet()
	open := func(path string) (io.ReadCloser, error) { return os.Open(compiled[path]) }
	return &checker{root: root, files: files, imports: importer.ForCompiler(files, "gc", open)}, nil
}

// check puts a mutant in and reports why the packages do not compile.
func (c *checker) check(m Mutant) error {
	texts := map[string][]byte{}
	for _, change := range m.changes() {
		text, err := change.Apply(c.root)
		if err != nil {
			return err
		}
		texts[filepath.Join(c.root, change.File)] = text
	}
	for file := range texts {
		if err := c.compile(filepath.Dir(file), texts); err != nil {
			return err
		}
	}
	return nil
}

// compile checks the types of the package in a directory, in which texts stand in the place of files.
func (c *checker) compile(dir string, texts map[string][]byte) error {
	pkg, err := build.ImportDir(dir, 0)
	if err != nil {
		return err
	}
	var parsed []*ast.File
	for _, name := range pkg.GoFiles {
		name = filepath.Join(dir, name)
		var text any // nil: what is on disk
		if t, changed := texts[name]; changed {
			text = t
		}
		f, err := parser.ParseFile(c.files, name, text, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		parsed = append(parsed, f)
	}
	conf := types.Config{Importer: c.imports}
	_, err = conf.Check(pkg.Name, c.files, parsed, nil)
	return err
}

// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package mutate

import (
	"context"
	"errors"
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
	root     string
	files    *token.FileSet
	imports  types.Importer
	packages map[string]sources // by directory
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
	return &checker{root: root, files: files, imports: importer.ForCompiler(files, "gc", open), packages: map[string]sources{}}, nil
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

// source is a file of a package: with all that is in it, and without the bodies of functions. outside is the
// text without these bodies.
type source struct {
	whole, bare *ast.File
	outside     string
}

// sources are the files of a package by name, as they are on disk.
type sources struct {
	pkg   string
	files map[string]source
}

// compile checks the types of the package in a directory, in which texts stand in the place of files.
//
// A mutant mostly changes the bodies of functions. The other files then compile as before, and their bodies, which
// are nine tenths of the work, are left out.
func (c *checker) compile(dir string, texts map[string][]byte) error {
	had, err := c.read(dir)
	if err != nil {
		return err
	}
	var parsed []*ast.File
	inside := true
	for name, was := range had.files {
		text, changed := texts[name]
		if !changed {
			continue
		}
		now, err := c.parse(name, text)
		if err != nil {
			return err
		}
		parsed, inside = append(parsed, now.whole), inside && now.outside == was.outside
	}
	left := map[string]bool{}
	for name, was := range had.files {
		switch _, changed := texts[name]; {
		case changed:
		case inside:
			parsed, left[name] = append(parsed, was.bare), true
		default:
			parsed = append(parsed, was.whole)
		}
	}
	conf := types.Config{Importer: c.imports, Error: func(now error) {
		var e types.Error
		if errors.As(now, &e) && e.Soft && left[c.files.Position(e.Pos).Filename] {
			return // an import that only bodies use
		}
		if err == nil {
			err = now
		}
	}}
	_, _ = conf.Check(had.pkg, c.files, parsed, nil) // its error is the first that Error has heard
	return err
}

// read reads the package in a directory, once.
func (c *checker) read(dir string) (sources, error) {
	if had, ok := c.packages[dir]; ok {
		return had, nil
	}
	pkg, err := build.ImportDir(dir, 0)
	if err != nil {
		return sources{}, err
	}
	had := sources{pkg: pkg.Name, files: map[string]source{}}
	for _, name := range pkg.GoFiles {
		name = filepath.Join(dir, name)
		text, err := os.ReadFile(name)
		if err != nil {
			return sources{}, err
		}
		if had.files[name], err = c.parse(name, text); err != nil {
			return sources{}, err
		}
	}
	c.packages[dir] = had
	return had, nil
}

// parse reads a file. Generic functions, and those that initialize a package, must have bodies.
func (c *checker) parse(name string, text []byte) (source, error) {
	f, err := parser.ParseFile(c.files, name, text, parser.SkipObjectResolution)
	if err != nil {
		return source{}, err
	}
	bare, at := *f, 0
	bare.Decls = slices.Clone(f.Decls)
	var outside strings.Builder
	for i, d := range bare.Decls {
		fn, ok := d.(*ast.FuncDecl)
		if !ok || fn.Body == nil || fn.Type.TypeParams != nil || fn.Recv == nil && fn.Name.Name == "init" {
			continue
		}
		outside.Write(text[at:c.files.Position(fn.Body.Lbrace).Offset])
		at = c.files.Position(fn.Body.Rbrace).Offset
		without := *fn
		without.Body = nil
		bare.Decls[i] = &without
	}
	outside.Write(text[at:])
	return source{whole: f, bare: &bare, outside: outside.String()}, nil
}

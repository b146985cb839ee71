// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"go/ast"
	"go/types"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// extensions has the packages of the extensions. The seam stands between them and plain Raft: the
// interfaces of package raft through which it reaches them.
const extensions = "raft/internal"

// isCoded reports whether a file of package raft belongs to an extension, or to the
// seam: the page, what fills it in, and what is carried out and shown there.
func isCoded(file string) bool {
	return file == "perform.go" || file == "shown.go" || slices.ContainsFunc([]string{"extension", "coding_", "leases_"},
		func(prefix string) bool { return strings.HasPrefix(file, prefix) })
}

func printSeam(w io.Writer, root string, raft *pkg) error {
	fmt.Fprintln(w, "THE SEAM OF PACKAGE RAFT\t")
	var plain, coded []string
	for _, f := range raft.names() {
		if isCoded(f) {
			coded = append(coded, f)
		} else {
			plain = append(plain, f)
		}
	}
	fmt.Fprintf(w, "plain files, lines\t%d\t%d\n", len(plain), raft.lines(plain))
	if len(coded) > 0 {
		fmt.Fprintf(w, "files of the seam, lines\t%d\t%d\n", len(coded), raft.lines(coded))
		in, from := raft.calls(plain, isCoded)
		out, _ := raft.calls(coded, func(f string) bool { return !isCoded(f) })
		fmt.Fprintf(w, "calls into files of the seam, from so many plain files\t%d\t%d\n", in, from)
		fmt.Fprintf(w, "calls of these into plain files\t%d\n", out)
	}
	for _, name := range interfaces(raft.types) {
		t := raft.types.Scope().Lookup(name).Type().Underlying().(*types.Interface)
		n, from := raft.callsOf(t, plain)
		fmt.Fprintf(w, "methods of %s, calls of them, from so many files\t%d\t%d\t%d\n", name, t.NumMethods(), n, from)
	}
	fmt.Fprintf(w, "plain files that name coding otherwise\t%d\n", len(namesCoding(raft, plain)))
	for _, f := range namesCoding(raft, plain) {
		fmt.Fprintf(w, "  %s\n", f)
	}
	return printExtensions(w, root)
}

// printExtensions describes the packages of extensions.
func printExtensions(w io.Writer, root string) error {
	dirs, err := os.ReadDir(filepath.Join(root, extensions))
	if err != nil && !os.IsNotExist(err) {
		return err
	}
	for _, d := range dirs {
		dir := filepath.Join(extensions, d.Name())
		p, err := load(root, dir)
		if err != nil {
			return err
		}
		fmt.Fprintf(w, "files of %s, lines\t%d\t%d\n", dir, len(p.files), p.lines(p.names()))
		for _, imported := range p.types.Imports() {
			if !strings.HasPrefix(imported.Path(), extensions) {
				continue
			}
			for _, name := range interfaces(imported) {
				t := imported.Scope().Lookup(name).Type().Underlying().(*types.Interface)
				n, from := p.callsOf(t, p.names())
				fmt.Fprintf(w, "  methods of %s.%s, calls of them, from so many files\t%d\t%d\t%d\n", imported.Name(), name, t.NumMethods(), n, from)
			}
		}
	}
	fmt.Fprintln(w, "\t")
	return nil
}

// interfaces lists the interfaces that make the seam: in raft those of
// extensions, in an extension what it sees of Raft.
func interfaces(p *types.Package) (out []string) {
	for _, name := range []string{"extension", "leaser", "brakes", "news", "work", "forms", "Log", "View", "Electorate"} {
		if o := p.Scope().Lookup(name); o != nil && types.IsInterface(o.Type()) {
			out = append(out, name)
		}
	}
	return out
}

// calls counts the calls in files of functions and methods that stand in files
// for which to holds, and the files that have any.
func (p *pkg) calls(files []string, to func(file string) bool) (n, from int) {
	for _, f := range files {
		was := n
		p.eachCall(f, func(fn *types.Func) {
			if at := p.fileOf(fn); at != "" && to(at) {
				n++
			}
		})
		if n > was {
			from++
		}
	}
	return n, from
}

// callsOf counts the calls of an interface's methods.
func (p *pkg) callsOf(t *types.Interface, files []string) (n, from int) {
	methods := map[*types.Func]bool{}
	for i := range t.NumMethods() {
		methods[t.Method(i)] = true
	}
	for _, f := range files {
		was := n
		p.eachCall(f, func(fn *types.Func) {
			if methods[fn] {
				n++
			}
		})
		if n > was {
			from++
		}
	}
	return n, from
}

func (p *pkg) eachCall(file string, visit func(*types.Func)) {
	ast.Inspect(p.files[file], func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}
		id, _ := call.Fun.(*ast.Ident)
		if sel, ok := call.Fun.(*ast.SelectorExpr); ok {
			id = sel.Sel
		}
		if fn, ok := p.info.Uses[id].(*types.Func); ok && id != nil {
			visit(fn.Origin())
		}
		return true
	})
}

// namesCoding lists plain files that import an extension.
func namesCoding(p *pkg, plain []string) (out []string) {
	for _, f := range plain {
		if slices.ContainsFunc(p.files[f].Imports, func(i *ast.ImportSpec) bool {
			return strings.Contains(i.Path.Value, "/weft/"+extensions) && !strings.HasSuffix(i.Path.Value, "/extend\"")
		}) {
			out = append(out, f)
		}
	}
	return out
}

// lines counts the lines of files.
func (p *pkg) lines(files []string) (n int) {
	for _, f := range files {
		n += p.fset.Position(p.files[f].FileEnd).Line - 1
	}
	return n
}

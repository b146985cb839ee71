// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"go/ast"
	"go/types"
	"io"
	"maps"
	"slices"
	"strings"
)

// printCycles says which plain files of package raft need each other.
func printCycles(w io.Writer, p *pkg) {
	fmt.Fprintln(w, "FILES OF PACKAGE RAFT THAT NEED EACH OTHER\t")
	n := 0
	for f := range p.files {
		if !isCoded(f) {
			n++
		}
	}
	plain := largest(p.needs(func(f string) bool { return !isCoded(f) }))
	fmt.Fprintf(w, "largest cycle of plain files, of so many\t%d\t%d\n", len(plain), n)
	fmt.Fprintf(w, "  %s\n\t\n", strings.Join(plain, " "))
}

// needs returns which other files' functions and types each file uses.
func (p *pkg) needs(include func(file string) bool) map[string][]string {
	out := map[string][]string{}
	for _, f := range p.names() {
		if !include(f) {
			continue
		}
		out[f] = nil
		p.uses(f, func(_ *ast.Ident, o types.Object) {
			if v, ok := o.(*types.Var); ok && v.IsField() {
				return // the type was named where the value comes from
			}
			if to := p.fileOf(o); to != "" && to != f && include(to) && !slices.Contains(out[f], to) {
				out[f] = append(out[f], to)
			}
		})
	}
	return out
}

// largest returns the largest set of files each of which leads to all others
// (Tarjan 1972).
func largest(graph map[string][]string) (best []string) {
	number, low, on := map[string]int{}, map[string]int{}, map[string]bool{}
	var stack []string
	var visit func(v string)
	visit = func(v string) {
		number[v] = len(number) + 1
		low[v], on[v], stack = number[v], true, append(stack, v)
		for _, w := range graph[v] {
			if number[w] == 0 {
				visit(w)
				low[v] = min(low[v], low[w])
			} else if on[w] {
				low[v] = min(low[v], number[w])
			}
		}
		if low[v] != number[v] {
			return
		}
		var set []string
		for {
			w := stack[len(stack)-1]
			stack, on[w] = stack[:len(stack)-1], false
			if set = append(set, w); w == v {
				break
			}
		}
		if len(set) > len(best) {
			slices.Sort(set)
			best = set
		}
	}
	for _, v := range slices.Sorted(maps.Keys(graph)) {
		if number[v] == 0 {
			visit(v)
		}
	}
	return best
}

// floors are the packages that are read file by file, and the types there whose methods
// fill more than one file.
var floors = []struct {
	dir   string
	types []string
}{
	{"raft", []string{"raft", "leader"}},
	{extensions + "/coding", []string{"Coder", "leading"}},
	{"internal/replica", []string{"Replica"}},
	{"rawnode", []string{"Host"}},
	{"rafttest", nil},
	{"rafttest/nodes", nil},
	{"rafttest/hosts", nil},
}

// printFloors prints how many files of each such package need each other, and how many
// methods its large types have, in how many files.
func printFloors(w io.Writer, root string) error {
	fmt.Fprintln(w, "PACKAGES READ FILE BY FILE\tlargest cycle\tof files\tmethods of a type, in so many files")
	for _, f := range floors {
		p, err := load(root, f.dir)
		if err != nil {
			return err
		}
		fmt.Fprintf(w, "%s\t%d\t%d", f.dir, len(largest(p.needs(func(string) bool { return true }))), len(p.files))
		for _, name := range f.types {
			n, files := p.methods(name)
			fmt.Fprintf(w, "\t%s %d, %d", name, n, files)
		}
		fmt.Fprintln(w, "\t")
	}
	fmt.Fprintln(w, "\t")
	return nil
}

// methods counts the methods of a type, and the files that declare any.
func (p *pkg) methods(of string) (n, files int) {
	for _, file := range p.files {
		before := n
		for _, d := range file.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv != nil && receiver(fn) == of {
				n++
			}
		}
		if n > before {
			files++
		}
	}
	return n, files
}

func receiver(fn *ast.FuncDecl) string {
	t := fn.Recv.List[0].Type
	if star, ok := t.(*ast.StarExpr); ok {
		t = star.X
	}
	id, _ := t.(*ast.Ident)
	if id == nil {
		return ""
	}
	return id.Name
}

// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"unicode"
)

// printTree prints what a reader sees first: the Go files at the top that are no tests,
// and the pages of docs with their words.
func printTree(w io.Writer, root string) error {
	top, err := filepath.Glob(filepath.Join(root, "*.go"))
	if err != nil {
		return err
	}
	pages, err := filepath.Glob(filepath.Join(root, "docs", "*.md"))
	if err != nil {
		return err
	}
	words := 0
	for _, p := range pages {
		text, err := os.ReadFile(p)
		if err != nil {
			return err
		}
		for _, field := range strings.Fields(string(text)) {
			if strings.ContainsFunc(field, func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }) {
				words++ // the bars and dashes of tables are none
			}
		}
	}
	tests := func(path string) bool { return strings.HasSuffix(path, "_test.go") }
	fmt.Fprintf(w, "THE TREE\nGo files at the top that are no tests\t%d\npages of docs, words\t%d\t%d\n\t\n",
		len(slices.DeleteFunc(top, tests)), len(pages), words)
	return nil
}

// printPackages prints, for each package, its size, its exported identifiers,
// and the share of pronouns among the words of its comments.
func printPackages(w io.Writer, root string) error {
	byDir := map[string]*size{}
	err := eachGoFile(root, func(path string) error {
		if strings.HasSuffix(path, "_test.go") {
			return nil
		}
		dir, _ := filepath.Rel(root, filepath.Dir(path))
		s := byDir[dir]
		if s == nil {
			s = &size{}
			byDir[dir] = s
		}
		return s.add(path)
	})
	if err != nil {
		return err
	}
	fmt.Fprintln(w, "PACKAGES\tlines\texported\twords of comments\tpronouns in 100")
	var all size
	for _, dir := range slices.Sorted(maps.Keys(byDir)) {
		s := byDir[dir]
		fmt.Fprintf(w, "%s\t%d\t%d\t%d\t%.1f\n", dir, s.lines, s.exported, s.words, s.share())
		all.lines, all.exported = all.lines+s.lines, all.exported+s.exported
		all.words, all.pronouns = all.words+s.words, all.pronouns+s.pronouns
	}
	fmt.Fprintf(w, "all\t%d\t%d\t%d\t%.1f\n", all.lines, all.exported, all.words, all.share())
	return nil
}

type size struct{ lines, exported, words, pronouns int }

func (s *size) share() float64 { return 100 * float64(s.pronouns) / float64(max(s.words, 1)) }

var (
	word    = regexp.MustCompile(`[A-Za-z']+`)
	pronoun = regexp.MustCompile(`(?i)^(it|that|what|who|whom|those|them|one|ones|such|this|they)$`)
)

func (s *size) add(path string) error {
	fset := token.NewFileSet()
	f, err := parser.ParseFile(fset, path, nil, parser.ParseComments)
	if err != nil {
		return err
	}
	s.lines += fset.Position(f.FileEnd).Line - 1
	for _, c := range f.Comments {
		for _, wd := range word.FindAllString(c.Text(), -1) {
			s.words++
			if pronoun.MatchString(wd) {
				s.pronouns++
			}
		}
	}
	if f.Name.Name != "main" {
		s.exported += exported(f)
	}
	return nil
}

// exported counts the exported identifiers at the top of a file, and methods
// and fields of exported types.
func exported(f *ast.File) (n int) {
	count := func(names ...*ast.Ident) {
		for _, id := range names {
			if id.IsExported() {
				n++
			}
		}
	}
	for _, d := range f.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if d.Recv == nil || ast.IsExported(receiver(d)) {
				count(d.Name)
			}
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				switch spec := spec.(type) {
				case *ast.ValueSpec:
					count(spec.Names...)
				case *ast.TypeSpec:
					count(spec.Name)
					if spec.Name.IsExported() {
						n += members(spec.Type)
					}
				}
			}
		}
	}
	return n
}

func members(t ast.Expr) (n int) {
	var list *ast.FieldList
	switch t := t.(type) {
	case *ast.StructType:
		list = t.Fields
	case *ast.InterfaceType:
		list = t.Methods
	default:
		return 0
	}
	for _, f := range list.List {
		for _, id := range f.Names {
			if id.IsExported() {
				n++
			}
		}
	}
	return n
}

// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// setting is a constant of the policy, and where its value stands.
type setting struct {
	name, file string
	text       string
	from, to   int // in the file
}

// constantsOf lists the constants of package ecraft/adaptive, and the constants of package ecraft
// that decide when an entry is late.
func constantsOf(root string) (list []setting, err error) {
	files, err := filepath.Glob(filepath.Join(root, "ecraft/adaptive/*.go"))
	if err != nil {
		return nil, err
	}
	for _, file := range append(files, filepath.Join(root, "ecraft/policy.go")) {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		src, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		fset := token.NewFileSet()
		f, err := parser.ParseFile(fset, file, src, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		for _, d := range f.Decls {
			g, ok := d.(*ast.GenDecl)
			if !ok || g.Tok != token.CONST {
				continue
			}
			for _, spec := range g.Specs {
				v := spec.(*ast.ValueSpec)
				for i, value := range v.Values {
					s := setting{name: v.Names[i].Name, file: file, from: fset.Position(value.Pos()).Offset, to: fset.Position(value.End()).Offset}
					if s.text = string(src[s.from:s.to]); s.text != "iota" { // the name of a case
						list = append(list, s)
					}
				}
			}
		}
	}
	return list, nil
}

// half returns the text of the halved value, and double the text of the doubled value. For a limit
// near 1, for example a factor of improvement, half and double change the distance to 1.
func (s setting) half() string {
	if v, ok := s.nearOne(); ok {
		return number(1 + (v-1)/2)
	}
	if n, err := strconv.Atoi(s.text); err == nil && n%2 == 1 {
		return "(" + s.text + ") * 0.5"
	}
	return "(" + s.text + ") / 2"
}

func (s setting) double() string {
	if v, ok := s.nearOne(); ok {
		return number(1 + (v-1)*2)
	}
	return "(" + s.text + ") * 2"
}

func (s setting) nearOne() (float64, bool) {
	if slices.Contains([]string{"roundTrip", "crowdMost"}, s.name) {
		return 0, false // shares of another quantity
	}
	v, err := strconv.ParseFloat(s.text, 64)
	return v, err == nil && strings.Contains(s.text, ".") && v >= 0.8 && v < 2 && v != 1
}

func number(v float64) string { return strconv.FormatFloat(v, 'g', 6, 64) }

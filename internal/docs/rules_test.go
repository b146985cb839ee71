// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// rulePackages are the folders of the packages that docs/coded-protocol.md names.
var rulePackages = map[string]string{
	"raft": "raft", "coding": "raft/internal/coding", "gossip": "gossip", "ecraft": "ecraft", "adaptive": "ecraft/adaptive",
	"electorate": "raft/internal/electorate", "extend": "raft/internal/extend",
}

var (
	ruleRow  = regexp.MustCompile(`(?m)^\| [A-Z]\d+ \|.*$`)
	goName   = regexp.MustCompile("`([a-z]+\\.[A-Za-z]+(?:\\.[A-Za-z]+)?)`")
	ruleTest = regexp.MustCompile(`\bTest[A-Za-z]+\b`)
	schedule = regexp.MustCompile(`\b\d\d[a-z]?-[a-z-]+\b`)
)

// TestRulesNameWhatExists holds the tables of docs/coded-protocol.md to the sources: each
// place, test and schedule that a rule names is there, a mutant is found by one of them, and bugs
// name rules that are there.
func TestRulesNameWhatExists(t *testing.T) {
	root, err := Root()
	require.NoError(t, err)
	read := func(path string) string {
		text, err := os.ReadFile(filepath.Join(root, path))
		require.NoError(t, err)
		return string(text)
	}
	protocol, mutants := read("docs/coded-protocol.md"), read("rafttest/mutants/table.go")+read("rafttest/mutants/joints.go")+read("rafttest/mutants/zones.go")
	declared := map[string]bool{}
	for pkg, dir := range rulePackages {
		declarations(t, filepath.Join(root, dir), pkg, declared)
	}
	for _, m := range goName.FindAllStringSubmatch(protocol, -1) {
		if strings.HasPrefix(m[1], "make.") {
			continue
		}
		assert.True(t, declared[m[1]], "docs/coded-protocol.md: %s is not declared", m[1])
	}
	rules := map[string]bool{}
	for _, row := range ruleRow.FindAllString(protocol, -1) {
		cells := strings.Split(strings.Trim(row, "| "), " | ")
		require.GreaterOrEqual(t, len(cells), 5, row)
		rules[cells[0]] = true
		require.Regexp(t, goName, cells[3], "rule %s is kept by a Go name, written package.Type.method", cells[0])
		noticed := strings.Contains(cells[4], "seeds") || cells[0] == "E1"
		for _, name := range ruleTest.FindAllString(cells[4], -1) {
			assert.True(t, declared[name], "rule %s: there is no test %s", cells[0], name)
			noticed = noticed || strings.Contains(mutants, `"`+name+`"`)
		}
		for _, name := range schedule.FindAllString(cells[4], -1) {
			found, err := filepath.Glob(filepath.Join(root, "rafttest/testdata/coded", name+"*"))
			require.NoError(t, err)
			assert.NotEmpty(t, found, "rule %s: there is no schedule %s", cells[0], name)
			noticed = noticed || strings.Contains(mutants, `"`+name)
		}
		assert.True(t, noticed, "rule %s: no mutant is found by %s", cells[0], cells[4])
	}
	require.Greater(t, len(rules), 40)
	for _, m := range regexp.MustCompile(`\(rules? ([A-Z0-9, ]+)\) \|`).FindAllStringSubmatch(read("rafttest/bugs.md"), -1) {
		for _, rule := range strings.Split(m[1], ", ") {
			assert.True(t, rules[rule], "rafttest/bugs.md: there is no rule %s", rule)
		}
	}
}

// declarations notes the names that a package declares: package.Name, package.Type.method,
// and tests by their names alone.
func declarations(t *testing.T, dir, pkg string, into map[string]bool) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	require.NoError(t, err)
	for _, file := range files {
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		require.NoError(t, err)
		for _, d := range f.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				name := d.Name.Name
				if d.Recv != nil {
					recv := d.Recv.List[0].Type
					if star, ok := recv.(*ast.StarExpr); ok {
						recv = star.X
					}
					name = recv.(*ast.Ident).Name + "." + name
				} else if strings.HasPrefix(name, "Test") {
					into[name] = true
				}
				into[pkg+"."+name] = true
			case *ast.GenDecl:
				for _, spec := range d.Specs {
					if s, ok := spec.(*ast.TypeSpec); ok {
						into[pkg+"."+s.Name.Name] = true
					}
				}
			}
		}
	}
}

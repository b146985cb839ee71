// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"
)

// public are the directories whose exported names are for users of the module, so that
// nobody in the module has to use them. Packages below an internal directory, proofs and
// programs are for the module alone.
func public(dir string) bool {
	first, _, _ := strings.Cut(dir, "/")
	return first != "cmd" && first != "rafttest" && !slices.Contains(strings.Split(dir, "/"), "internal")
}

// printUnused lists the exported names at the top of packages that are for the module
// alone, if no other package names them, and if no exported declaration that somebody
// names has them in its signature.
func printUnused(w io.Writer, root string) error {
	unused, err := unusedNames(root)
	if err != nil {
		return err
	}
	n := 0
	for _, names := range unused {
		n += len(names)
	}
	fmt.Fprintf(w, "EXPORTED NAMES THAT NO OTHER PACKAGE USES\t%d\n", n)
	for _, dir := range slices.Sorted(maps.Keys(unused)) {
		fmt.Fprintf(w, "%s\t%d\t%s\n", dir, len(unused[dir]), strings.Join(unused[dir], " "))
	}
	fmt.Fprintln(w, "\t")
	return nil
}

// names is what printUnused knows of a package: the declaration behind each exported
// name, and the exported names that another package uses.
type names struct {
	declared map[string]ast.Node
	used     map[string]bool
}

func unusedNames(root string) (map[string][]string, error) {
	packages := map[string]*names{} // by directory
	at := func(dir string) *names {
		if packages[dir] == nil {
			packages[dir] = &names{declared: map[string]ast.Node{}, used: map[string]bool{}}
		}
		return packages[dir]
	}
	err := eachGoFile(root, func(path string) error {
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			return err
		}
		dir, _ := filepath.Rel(root, filepath.Dir(path))
		dir = filepath.ToSlash(dir)
		for imported, selected := range selections(f) {
			for _, name := range selected {
				at(imported).used[name] = true
			}
		}
		if !strings.HasSuffix(path, "_test.go") && f.Name.Name != "main" && !public(dir) {
			declare(at(dir).declared, f)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	out := map[string][]string{}
	for dir, p := range packages {
		p.spread()
		for _, name := range slices.Sorted(maps.Keys(p.declared)) {
			if !p.used[name] {
				out[dir] = append(out[dir], name)
			}
		}
	}
	return out, nil
}

// eachGoFile calls visit for every Go file of the repository, tests included.
func eachGoFile(root string, visit func(path string) error) error {
	return filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch n := d.Name(); {
		case err != nil:
			return err
		case d.IsDir() && path != root && (strings.HasPrefix(n, ".") || n == "testdata" || n == "bin"):
			return filepath.SkipDir
		case d.IsDir() || !strings.HasSuffix(n, ".go") || strings.HasSuffix(n, ".pb.go"):
			return nil
		}
		return visit(path)
	})
}

// selections returns the names that a file selects from each imported package of this
// module, by the package's directory.
func selections(f *ast.File) map[string][]string {
	dirs := map[string]string{} // by the name under which it is imported
	for _, i := range f.Imports {
		path := strings.Trim(i.Path.Value, `"`)
		dir, ok := strings.CutPrefix(path, module)
		if !ok {
			continue
		}
		name := filepath.Base(dir)
		if i.Name != nil {
			name = i.Name.Name
		}
		dirs[name] = dir
	}
	out := map[string][]string{}
	ast.Inspect(f, func(n ast.Node) bool {
		if s, ok := n.(*ast.SelectorExpr); ok {
			if x, ok := s.X.(*ast.Ident); ok && dirs[x.Name] != "" {
				out[dirs[x.Name]] = append(out[dirs[x.Name]], s.Sel.Name)
			}
		}
		return true
	})
	return out
}

// declare notes the exported names that a file declares at its top.
func declare(declared map[string]ast.Node, f *ast.File) {
	for _, d := range f.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if d.Recv == nil && d.Name.IsExported() {
				declared[d.Name.Name] = d.Type
			} else if d.Recv != nil && d.Name.IsExported() {
				declared[receiver(d)+"."+d.Name.Name] = d.Type // for what its signature names
			}
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				switch spec := spec.(type) {
				case *ast.ValueSpec:
					for _, id := range spec.Names {
						if id.IsExported() {
							declared[id.Name] = spec.Type
						}
					}
				case *ast.TypeSpec:
					if spec.Name.IsExported() {
						declared[spec.Name.Name] = spec.Type
					}
				}
			}
		}
	}
}

// spread counts as used what used declarations name in their signatures: a result's type
// must be exported though its users need not name it. Methods follow their types.
func (p *names) spread() {
	for more := true; more; {
		more = false
		for name, node := range p.declared {
			of, _, method := strings.Cut(name, ".")
			if method && p.used[of] && !p.used[name] {
				p.used[name], more = true, true
			}
			if !p.used[name] || node == nil {
				continue
			}
			ast.Inspect(node, func(n ast.Node) bool {
				if id, ok := n.(*ast.Ident); ok && id.IsExported() && p.declared[id.Name] != nil && !p.used[id.Name] {
					p.used[id.Name], more = true, true
				}
				return true
			})
		}
	}
	for name := range p.declared {
		if strings.Contains(name, ".") {
			delete(p.declared, name)
		}
	}
}

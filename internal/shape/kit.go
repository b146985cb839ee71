// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"go/parser"
	"go/token"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strings"
)

// kit are the parts of internal/lab of which there should be one: what a package that goes without
// the part has to call, and what a package with it does. Tests and examples may have their own.
var kit = []struct{ part, dir, without, with string }{
	{"processes of nodes", "internal/process", "Start", "StartCluster"},
	{"loads on processes", "", "", "Load"},
	{"tables of benches", "", "", "Section"},
}

const kitDir = "internal/lab"

// printKit counts the packages that use each part of the kit of benches, and those that start
// processes of nodes without the kit.
func printKit(w io.Writer, root string) error {
	selected, err := selectedBy(root)
	if err != nil {
		return err
	}
	fmt.Fprintln(w, "THE KIT OF BENCHES\twith the kit\twithout")
	for _, k := range kit {
		var with, without []string
		for _, dir := range slices.Sorted(maps.Keys(selected)) {
			if slices.Contains(selected[dir][kitDir], k.with) {
				with = append(with, dir)
			}
			if k.without != "" && dir != kitDir && slices.Contains(selected[dir][k.dir], k.without) {
				without = append(without, dir)
			}
		}
		alone := "-" // nothing tells
		if k.without != "" {
			alone = strings.TrimSpace(fmt.Sprint(len(without), " ", strings.Join(without, " ")))
		}
		fmt.Fprintf(w, "packages with %s\t%d\t%s\n", k.part, len(with), alone)
	}
	fmt.Fprintln(w, "\t")
	return nil
}

// selectedBy returns the names that each package, without its tests, selects from packages of this
// module.
func selectedBy(root string) (map[string]map[string][]string, error) {
	all := map[string]map[string][]string{}
	err := eachGoFile(root, func(path string) error {
		if strings.HasSuffix(path, "_test.go") {
			return nil
		}
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			return err
		}
		dir, _ := filepath.Rel(root, filepath.Dir(path))
		dir = filepath.ToSlash(dir)
		for from, names := range selections(f) {
			if all[dir] == nil {
				all[dir] = map[string][]string{}
			}
			all[dir][from] = append(all[dir][from], names...)
		}
		return nil
	})
	return all, err
}

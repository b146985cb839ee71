// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package shim

import (
	"bytes"
	"fmt"
	"go/format"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// SwapImports finds the Go files under dir that import upstream's root package
// and returns their paths. With write it makes them import Weft's package
// instead. The sub-packages stay upstream's. Other modules below dir, directories
// named vendor or testdata, and those that begin with a dot or an underscore are
// passed over, as the go command does.
func SwapImports(dir string, write bool) ([]string, error) {
	var found []string
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if e.IsDir() {
			if path != dir && passedOver(path) {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(path, ".go") {
			return nil
		}
		swapped, err := swapFile(path, write)
		if swapped {
			found = append(found, path)
		}
		return err
	})
	if err != nil {
		return found, fmt.Errorf("shim: import swap: %w", err)
	}
	return found, nil
}

func passedOver(dir string) bool {
	name := filepath.Base(dir)
	if name == "vendor" || name == "testdata" || strings.HasPrefix(name, ".") || strings.HasPrefix(name, "_") {
		return true
	}
	_, err := os.Stat(filepath.Join(dir, "go.mod"))
	return err == nil
}

// swapFile reports whether the file imports upstream's root package. It edits
// the bytes of the import path only; all else stays as the author wrote it.
func swapFile(path string, write bool) (bool, error) {
	src, err := os.ReadFile(path)
	if err != nil {
		return false, err
	}
	fset := token.NewFileSet()
	f, err := parser.ParseFile(fset, path, src, parser.ImportsOnly)
	if err != nil {
		return false, err
	}
	swapped := src
	for _, spec := range slices.Backward(f.Imports) { // a file may import a package by several names
		if p, err := strconv.Unquote(spec.Path.Value); err != nil || p != UpstreamPath {
			continue
		}
		at, end := fset.Position(spec.Path.Pos()).Offset, fset.Position(spec.Path.End()).Offset
		swapped = slices.Concat(swapped[:at], []byte(strconv.Quote(WeftPath+"/raft")), swapped[end:])
	}
	if found := !bytes.Equal(swapped, src); !found || !write {
		return found, nil
	}
	return true, rewrite(path, src, swapped)
}

// rewrite puts out in place of src. A file that was gofmt-ed stays so: the new path may sort elsewhere in its group.
func rewrite(path string, src, out []byte) error {
	formatted, err := format.Source(src)
	clean := err == nil && bytes.Equal(formatted, src)
	if clean {
		if out, err = format.Source(out); err != nil {
			return err
		}
	}
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	return os.WriteFile(path, out, info.Mode().Perm())
}

// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

// Command modules keeps the go.mod files of this repository tidy:
//
//	go run ./internal/modules         tidy all of them
//	go run ./internal/modules -check  change nothing, and fail if any is not tidy
//
// The modules require each other at the release that they are next part of, and
// find each other by go.work. `go mod tidy` looks at no go.work, and would ask
// the module proxy for that release. So each go.mod is tidied as a copy that has
// replace directives, which are taken out again.
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"

	"github.com/weftraft/weft/internal/docs"
)

// errUntidy says that a file is not what go mod tidy makes of it.
var errUntidy = errors.New("not tidy; run: make tidy")

func main() {
	check := flag.Bool("check", false, "change nothing, and fail if any is not tidy")
	flag.Parse()
	if err := run(*check); err != nil {
		fmt.Fprintf(os.Stderr, "modules: %v\n", err)
		os.Exit(1)
	}
}

func run(check bool) error {
	root, err := docs.Root()
	if err != nil {
		return err
	}
	all, release, err := modules(root)
	if err != nil {
		return err
	}
	var errs []error
	for _, m := range all {
		errs = append(errs, tidy(m, all, release, check))
	}
	return errors.Join(errs...)
}

// aModule is one of the repository's modules.
type aModule struct{ path, dir string }

// modules returns those that go.work uses, and the release of them that it
// replaces.
func modules(root string) (all []aModule, release string, err error) {
	var work struct {
		Use     []struct{ DiskPath string }
		Replace []struct {
			Old struct{ Path, Version string }
		}
	}
	if err := goJSON(root, &work, "work", "edit", "-json"); err != nil {
		return nil, "", err
	}
	for _, use := range work.Use {
		dir := filepath.Join(root, use.DiskPath)
		var mod struct{ Module struct{ Path string } }
		if err := goJSON(dir, &mod, "mod", "edit", "-json"); err != nil {
			return nil, "", err
		}
		all = append(all, aModule{mod.Module.Path, dir})
	}
	for _, r := range work.Replace {
		if !slices.ContainsFunc(all, func(m aModule) bool { return m.path == r.Old.Path }) {
			continue
		}
		if release != "" && release != r.Old.Version {
			return nil, "", fmt.Errorf("go.work replaces %s of the modules and %s; want the same of all", release, r.Old.Version)
		}
		release = r.Old.Version
	}
	return all, release, nil
}

// tidy tidies one module, or with check only compares.
func tidy(m aModule, all []aModule, release string, check bool) error {
	temp, err := os.MkdirTemp("", "weft-modules-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(temp) }()
	mod := filepath.Join(temp, "go.mod")
	if err := copyFiles(m.dir, temp); err != nil {
		return err
	}
	replace, require := []string{"mod", "edit"}, []string{"mod", "edit"}
	for _, other := range all {
		replace = append(replace, "-replace="+other.path+"="+other.dir)
		require = append(require, "-dropreplace="+other.path)
	}
	if _, err := goOutput(m.dir, append(replace, mod)...); err != nil {
		return err
	}
	if _, err := goOutput(m.dir, "mod", "tidy", "-modfile="+mod); err != nil {
		return err
	}
	needs, err := requirements(temp)
	if err != nil {
		return err
	}
	for _, other := range all {
		if _, ok := needs[other.path]; ok {
			require = append(require, "-require="+other.path+"@"+release) // tidy found it by its directory
		}
	}
	if _, err := goOutput(m.dir, append(require, mod)...); err != nil {
		return err
	}
	if !check {
		return copyFiles(temp, m.dir)
	}
	return compare(m.dir, temp)
}

// requirements returns what the go.mod in dir requires, by path.
func requirements(dir string) (map[string]string, error) {
	var mod struct {
		Require []struct{ Path, Version string }
	}
	if err := goJSON(dir, &mod, "mod", "edit", "-json"); err != nil {
		return nil, err
	}
	versions := map[string]string{}
	for _, r := range mod.Require {
		versions[r.Path] = r.Version
	}
	return versions, nil
}

// moduleFiles are what tidying changes.
var moduleFiles = []string{"go.mod", "go.sum"}

func copyFiles(from, to string) error {
	for _, name := range moduleFiles {
		text, err := os.ReadFile(filepath.Join(from, name))
		if errors.Is(err, os.ErrNotExist) && name == "go.sum" {
			continue // of a module that is new, or needs no other
		}
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(to, name), text, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// compare returns errUntidy for each file in which two directories differ.
func compare(have, want string) error {
	var errs []error
	for _, name := range moduleFiles {
		a, _ := os.ReadFile(filepath.Join(have, name)) // none is like an empty one
		b, _ := os.ReadFile(filepath.Join(want, name))
		if !bytes.Equal(a, b) {
			errs = append(errs, fmt.Errorf("%s: %w", filepath.Join(have, name), errUntidy))
		}
	}
	return errors.Join(errs...)
}

// goOutput runs the go command, outside of the workspace unless it is about that.
func goOutput(dir string, args ...string) ([]byte, error) {
	cmd := exec.Command("go", args...)
	workspace := "off"
	if args[0] == "work" {
		workspace = ""
	}
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "GOWORK="+workspace)
	out, err := cmd.Output()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		err = fmt.Errorf("%w: %s", err, bytes.TrimSpace(exit.Stderr))
	}
	if err != nil {
		return nil, fmt.Errorf("go %s in %s: %w", args[:2], dir, err)
	}
	return out, nil
}

func goJSON(dir string, into any, args ...string) error {
	out, err := goOutput(dir, args...)
	if err != nil {
		return err
	}
	return json.Unmarshal(out, into)
}

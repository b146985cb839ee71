// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/mod/modfile"

	"github.com/weftraft/weft/internal/docs"
	"github.com/weftraft/weft/internal/shim"
)

const (
	coreWeft     = "weft"
	coreUpstream = "upstream"
	// coreCoded is Weft in an environment that turns coding on.
	coreCoded = "coded"
	// coreLeased is Weft in an environment that turns roster leases on.
	coreLeased = "leased"
	// coreLeaderLeased is the same with the leader's lease alone: no follower answers.
	coreLeaderLeased = "leased-leader"

	etcdVersion = "v3.7.3"
	serverPath  = "go.etcd.io/etcd/server/v3"
	testsPath   = "go.etcd.io/etcd/tests/v3"
)

// leftOut are files of etcd's tests that cannot be built here, with the reasons.
var leftOut = map[string]string{
	"integration/cache_test.go": "tests go.etcd.io/etcd/cache/v3, a client-side cache, which module proxies do not serve",
}

// workdir names the directories of a run.
type workdir struct {
	weft   string // the checkout of Weft
	module string // the directory of this module in the checkout
	dir    string // for generated files
	coding int    // payload bytes from which coreCoded codes
}

// newWorkdir returns a workdir in dir, empty for the usual place.
func newWorkdir(dir string) (*workdir, error) {
	weft, err := docs.Root()
	if err != nil {
		return nil, fmt.Errorf("run this in a checkout of Weft: %w", err)
	}
	w := &workdir{weft: weft, module: filepath.Join(weft, "rafttest", "etcd"), dir: dir}
	if w.dir == "" {
		w.dir = filepath.Join(w.weft, ".cache", "conformance-etcd")
	}
	return w, nil
}

func (w *workdir) path(elem ...string) string {
	return filepath.Join(append([]string{w.dir}, elem...)...)
}

// prepare generates the inputs of the go command: the shim; for a run of etcd's tests a copy of the
// tests, without the files that cannot be built; and a go.mod for each core, which is this module's
// go.mod with other replacements, so that both cores get the same versions.
func (w *workdir) prepare(ctx context.Context, withTests bool) error {
	if err := os.MkdirAll(w.path("bin"), 0o700); err != nil {
		return err
	}
	s, err := shim.Generate(ctx, shim.Options{Dir: w.path("shim"), WeftDir: w.weft})
	if err != nil {
		return err
	}
	onUpstream, onWeft := map[string]string{}, map[string]string{shim.UpstreamPath: s.Dir}
	if withTests {
		tests, err := shim.Download(ctx, testsPath, etcdVersion)
		if err != nil {
			return err
		}
		if err := copyTree(tests, w.path("tests")); err != nil {
			return err
		}
		onUpstream[testsPath], onWeft[testsPath] = w.path("tests"), w.path("tests")
	}
	return errors.Join(w.writeModule(coreUpstream, onUpstream), w.writeModule(coreWeft, onWeft))
}

// copyTree makes to a writable copy of from, without the files in leftOut.
func copyTree(from, to string) error {
	err := errors.Join(os.RemoveAll(to), os.CopyFS(to, os.DirFS(from)))
	for file := range leftOut {
		err = errors.Join(err, os.Remove(filepath.Join(to, file)))
	}
	return err
}

// writeModule writes this module's go.mod with more replacements, and its go.sum beside the go.mod.
func (w *workdir) writeModule(core string, replace map[string]string) error {
	name := filepath.Join(w.module, "go.mod")
	data, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	mod, err := modfile.Parse(name, data, nil)
	if err != nil {
		return err
	}
	for path, dir := range replace {
		if err := mod.AddReplace(path, "", dir, ""); err != nil {
			return err
		}
	}
	if data, err = mod.Format(); err != nil {
		return err
	}
	sums, err := os.ReadFile(filepath.Join(w.module, "go.sum"))
	if err != nil {
		return err
	}
	return errors.Join(os.WriteFile(w.path(core+".mod"), data, 0o600), os.WriteFile(w.path(core+".sum"), sums, 0o600))
}

// hasLeases reports whether nodes have leases on a core.
func hasLeases(core string) bool { return core == coreLeased || core == coreLeaderLeased }

// library returns the library that is linked for a core.
func library(core string) string {
	if core == coreCoded || hasLeases(core) {
		return coreWeft
	}
	return core
}

// env returns the variables that a process on a core has in addition, for etcd with its usual tick.
func (w *workdir) env(core string) []string {
	switch core {
	case coreCoded:
		return []string{fmt.Sprintf("%s=%d", shim.CodingVariable, w.coding)}
	case coreLeased:
		return []string{shim.LeasesVariable + "=on"}
	case coreLeaderLeased:
		return []string{shim.LeasesVariable + "=on", shim.LeasesRespondersVariable + "=none"}
	}
	return nil
}

// testEnv returns the variables for etcd's own tests, which tick ten times as fast, and need all
// times as short: a lease of a second would outlast some of these tests.
func (w *workdir) testEnv(core string) []string {
	env := w.env(core)
	if hasLeases(core) {
		env = append(env, shim.LeasesTickVariable+"=10ms", shim.LeasesLengthVariable+"=100ms")
	}
	return env
}

// goCommand prepares a go command in this module on a core. When ctx ends, all processes that the
// command has started are killed.
func (w *workdir) goCommand(ctx context.Context, core, verb string, args ...string) *exec.Cmd {
	args = append([]string{verb, "-modfile=" + w.path(library(core)+".mod")}, args...)
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = w.module
	cmd.Env = append(append(os.Environ(), "GOWORK=off", "GOFLAGS=-buildvcs=false"), w.testEnv(core)...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 10 * time.Second
	return cmd
}

// run executes a go command. The error holds the end of the command's output.
func (w *workdir) run(ctx context.Context, core, verb string, args ...string) error {
	out, err := w.goCommand(ctx, core, verb, args...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("go %s %s: %w:\n%s", verb, strings.Join(args, " "), err, out[max(0, len(out)-8192):])
	}
	return nil
}

// buildServer builds etcd on a core and checks the linked library.
func (w *workdir) buildServer(ctx context.Context, core, name string, flags ...string) (string, error) {
	binary := w.path("bin", name)
	if err := w.run(ctx, core, "build", append(flags, "-o", binary, serverPath)...); err != nil {
		return "", err
	}
	return binary, checkLibrary(core, binary)
}

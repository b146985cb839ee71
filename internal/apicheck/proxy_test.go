// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package apicheck

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/mod/modfile"
	"golang.org/x/mod/module"
	"golang.org/x/mod/zip"

	"github.com/weftraft/weft/internal/docs"
)

const mainModule = "github.com/weftraft/weft"

// shipped are the modules that a release has a tag for.
var shipped = []string{".", "cmd", "internal/shim", "rafttest", "rawnode/metrics", "rawnode/state/pebble", "rawnode/tracing"}

// machine is a host's developer's: the environment of the go command.
type machine struct {
	t   *testing.T
	env []string
}

// presentMachine has the module cache and the proxy of whoever runs the test.
func presentMachine(t *testing.T) machine {
	return machine{t, append(os.Environ(), "GOWORK=off", "GOFLAGS=-mod=mod -modcacherw")}
}

// releasedMachine is the same in a world in which the modules of this checkout are
// released at the version that they require each other at.
func releasedMachine(t *testing.T) (m machine, release string) {
	t.Helper()
	return machineWith(t, docs.Place(t, "released"), func(out io.Writer, m module.Version, root, sub string) error {
		return zip.Create(out, m, filesOf(t, filepath.Join(root, sub)))
	})
}

// packer writes the files of the module in folder sub of the checkout at root.
type packer func(out io.Writer, m module.Version, root, sub string) error

// machineWith is a machine that finds the modules, as pack packs them, at a proxy in dir. The
// module cache is there too: the user's must not hear of a release that is none.
func machineWith(t *testing.T, dir string, pack packer) (m machine, release string) {
	t.Helper()
	root, err := docs.Root()
	require.NoError(t, err)
	release = releaseOf(t, root)
	m = presentMachine(t)
	for _, sub := range shipped {
		addToProxy(t, filepath.Join(dir, "proxy"), root, sub, release, pack)
	}
	out, err := exec.Command("go", "env", "GOMODCACHE", "GOPROXY").Output()
	require.NoError(t, err)
	cache, proxies, _ := strings.Cut(strings.TrimSpace(string(out)), "\n")
	m.env = append(m.env,
		"GOPROXY=file://"+filepath.Join(dir, "proxy")+",file://"+filepath.Join(cache, "cache", "download")+","+proxies,
		"GOMODCACHE="+filepath.Join(dir, "cache"),
		// The go command would go by what it once read of a version, and here each state of the checkout has the same one.
		"GODEBUG=goindex=0",
		"GOSUMDB=off") // which knows no release that is none
	return m, release
}

// releaseOf returns the version of Weft that go.work replaces.
func releaseOf(t *testing.T, root string) string {
	t.Helper()
	path := filepath.Join(root, "go.work")
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	work, err := modfile.ParseWork(path, text, nil)
	require.NoError(t, err)
	for _, r := range work.Replace {
		if r.Old.Path == mainModule {
			return r.Old.Version
		}
	}
	t.Fatalf("%s replaces no version of %s", path, mainModule)
	return ""
}

// addToProxy makes the files of a proxy for a module.
func addToProxy(t *testing.T, proxy, root, sub, release string, pack packer) {
	t.Helper()
	mod, err := os.ReadFile(filepath.Join(root, sub, "go.mod"))
	require.NoError(t, err)
	m := module.Version{Path: modfile.ModulePath(mod), Version: release}
	at := filepath.Join(proxy, filepath.FromSlash(m.Path), "@v")
	require.NoError(t, os.MkdirAll(at, 0o755))
	info := fmt.Sprintf(`{"Version":%q,"Time":%q}`, release, time.Now().UTC().Format(time.RFC3339))
	for name, text := range map[string]string{"list": release + "\n", release + ".mod": string(mod), release + ".info": info} {
		require.NoError(t, os.WriteFile(filepath.Join(at, name), []byte(text), 0o644))
	}
	out, err := os.Create(filepath.Join(at, release+".zip"))
	require.NoError(t, err)
	require.NoError(t, pack(out, m, root, sub))
	require.NoError(t, out.Close())
}

// filesOf returns what the packages of a module are built from.
func filesOf(t *testing.T, dir string) (files []zip.File) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, e os.DirEntry, err error) error {
		_, noModule := os.Stat(filepath.Join(path, "go.mod"))
		switch {
		case err != nil:
			return err
		case e.IsDir() && path != dir && (noModule == nil || strings.HasPrefix(e.Name(), ".") || e.Name() == "testdata" || e.Name() == "bin"):
			return filepath.SkipDir
		case e.Type().IsRegular() && !strings.HasSuffix(path, "_test.go"):
			rel, err := filepath.Rel(dir, path)
			files = append(files, file{filepath.ToSlash(rel), path})
			return err
		}
		return nil
	})
	require.NoError(t, err)
	return files
}

// file is a file of a module.
type file struct{ name, at string }

func (f file) Path() string                 { return f.name }
func (f file) Lstat() (os.FileInfo, error)  { return os.Lstat(f.at) }
func (f file) Open() (io.ReadCloser, error) { return os.Open(f.at) }

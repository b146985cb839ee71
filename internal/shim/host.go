// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package shim

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/mod/semver"
)

// earlierPaths are the modules that upstream's library was in before it had one
// of its own.
var earlierPaths = []string{"go.etcd.io/etcd/raft/v3", "go.etcd.io/etcd", "github.com/coreos/etcd"}

// Host is what a host's go.mod says of upstream's library.
type Host struct {
	// GoMod is the path of the file.
	GoMod string
	// Library is the module of the library, Version the one that the host
	// requires; both are empty if it requires none.
	Library, Version string
	// Vendored says that the host builds from its vendor directory.
	Vendored bool
}

// FindHost reads the go.mod in dir or the nearest directory above it. It returns
// nil if there is none, or if it is Weft's own.
func FindHost(dir string) (*Host, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("shim: host: %w", err)
	}
	for ; ; dir = filepath.Dir(dir) {
		_, err := os.Stat(filepath.Join(dir, "go.mod"))
		switch {
		case err == nil:
			return readHost(dir)
		case !errors.Is(err, fs.ErrNotExist):
			return nil, fmt.Errorf("shim: host: %w", err)
		case dir == filepath.Dir(dir):
			return nil, nil
		}
	}
}

func readHost(dir string) (*Host, error) {
	mod, err := readModule(dir)
	if err != nil {
		return nil, err
	}
	if path := mod.Module.Mod.Path; path == WeftPath || strings.HasPrefix(path, WeftPath+"/") {
		return nil, nil
	}
	h := &Host{GoMod: filepath.Join(dir, "go.mod")}
	_, err = os.Stat(filepath.Join(dir, "vendor", "modules.txt"))
	h.Vendored = err == nil
	for _, path := range append([]string{UpstreamPath}, earlierPaths...) {
		for _, r := range mod.Require {
			if r.Mod.Path == path && h.Library == "" {
				h.Library, h.Version = path, r.Mod.Version
			}
		}
	}
	return h, nil
}

// Note returns what stands in the way of Weft in the host: that its library is
// older than UpstreamVersion, or newer. It is empty if nothing does.
func (h *Host) Note() string {
	if h == nil || h.Library == "" {
		return ""
	}
	has := fmt.Sprintf("%s requires %s %s", h.GoMod, h.Library, h.Version)
	switch order := semver.Compare(h.Version, UpstreamVersion); {
	case h.Library != UpstreamPath || order < 0:
		return has + fmt.Sprintf(`, which is older than %[1]s.
Weft has the API of %[1]s. Before that version, messages and entries were values whose fields were
values (github.com/gogo/protobuf); they are pointers with optional fields and getters since
(google.golang.org/protobuf). So this host will not compile with Weft as it is. Bring it to %[1]s of
upstream's library first, and run its tests:
  go get %[2]s@%[1]s`, UpstreamVersion, UpstreamPath)
	case order > 0:
		return has + fmt.Sprintf(`, which is newer than %[1]s.
Weft has the API of %[1]s: what is new in the host's version is missing, and the host may not compile.`, UpstreamVersion)
	}
	return ""
}

// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

// Package shim generates a Go module that is named like upstream's Raft library
// and is Weft.
//
// A host that imports go.etcd.io/raft/v3 is then compiled against Weft without
// a change in its sources, nor in those of its dependencies: one replace
// directive points at the shim.
//
//	host ──imports──▶ go.etcd.io/raft/v3         (shim's root: aliases)
//	                        │
//	                        ▼
//	                  github.com/weftraft/weft/raft
//	                        │
//	                        ▼
//	                  go.etcd.io/raft/v3/raftpb  (shim's copy of upstream's)
//
// The root package is generated: a type is an alias, so that values pass freely
// between code which imports the shim and code which imports Weft; a function
// is a thin function, so that it cannot be assigned to and `go doc` shows its
// signature; constants and error values are the same constants and values.
//
// The sub-packages (raftpb, quorum, tracker, confchange, rafttest) have to be
// in the shim too, as a replace directive covers a whole module and Weft itself
// imports four of them. They are copied from the module cache of whoever
// generates the shim. The modules require each other in a circle, which Go
// allows; the packages do not.
//
// An overlay on the files of upstream's module would have been less work, but
// the go command refuses overlays on the module cache.
package shim

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/weftraft/weft/ecraft"
)

const (
	// UpstreamPath is the module that a shim stands in for.
	UpstreamPath = "go.etcd.io/raft/v3"
	// UpstreamVersion is the version whose API and sub-packages a shim has.
	UpstreamVersion = "v3.7.0"
	// WeftPath is the module that a shim forwards to.
	WeftPath = "github.com/weftraft/weft"
	// VariablePrefix begins the names of all environment variables of a shim.
	VariablePrefix = "WEFT_"
	// CodingVariable is the environment variable that turns coded replication on
	// in a host on a shim: "on", or the size in bytes from which payloads are coded.
	CodingVariable = "WEFT_CODING"
	// DensifyVariable is the environment variable that, set to anything, keeps a
	// host on a shim from coding anything new; it still reads what is coded.
	DensifyVariable = "WEFT_DENSIFY"
	// LeaderWeightsVariable is the environment variable that says which members are to lead rather than others.
	LeaderWeightsVariable = "WEFT_LEADER_WEIGHTS"
	// LeasesVariable is the environment variable that turns roster leases on in a host
	// on a shim: "on"; "retire" has the group stop using them, and "off" is no leases.
	LeasesVariable = "WEFT_LEASES"
	// LeasesTickVariable is the time between two ticks of the host; 100ms if unset.
	LeasesTickVariable = "WEFT_LEASES_TICK"
	// LeasesLengthVariable is the longest time for which a lease binds; 1s if unset.
	LeasesLengthVariable = "WEFT_LEASES_LENGTH"
	// LeasesRespondersVariable says which nodes answer reads besides the leader; all
	// voters if unset.
	LeasesRespondersVariable = "WEFT_LEASES_RESPONDERS"
)

// placeholderVersion is what go.mod says of a module that a replace directive
// takes from a directory.
const placeholderVersion = "v0.0.0-00010101000000-000000000000"

var (
	// errNotEmpty is returned for a target directory that holds something else
	// than an earlier shim.
	errNotEmpty = errors.New("shim: directory is not empty")
	// errMissing is returned when Weft lacks a name that upstream exports.
	errMissing = errors.New("shim: name missing from Weft")
)

// Options say where a shim goes and what it is made from.
type Options struct {
	// Dir is the directory to write. It is created if it does not exist, and
	// must otherwise be empty or hold an earlier shim, which is replaced.
	Dir string
	// WeftDir is a checkout of Weft; the shim's go.mod then points at it.
	// Empty means WeftVersion, from the module proxy.
	WeftDir string
	// WeftVersion is the version of Weft to require when WeftDir is empty.
	WeftVersion string
	// Coding, if it is not 0, is the size in bytes from which nodes code payloads
	// unless their host, or CodingVariable, says otherwise.
	Coding int
	// Tests adds the tests of upstream's sub-packages, and their test data.
	Tests bool
}

// Result says what was generated.
type Result struct {
	// Dir is the absolute path of the shim.
	Dir string
	// UpstreamDir is where upstream's sources are in the module cache.
	UpstreamDir string
	// WeftDir is where Weft's sources are: a checkout or the module cache.
	WeftDir string
	// Names counts the forwarded names, Packages the copied sub-packages.
	Names, Packages int
}

// Generate writes the shim module. Upstream's sources, and Weft's unless
// o.WeftDir is set, are fetched by the go command if they are not in the module
// cache yet.
func Generate(ctx context.Context, o Options) (Result, error) {
	var res Result
	if o.Coding < 0 || o.Coding > ecraft.MaxPayload {
		return res, fmt.Errorf("shim: --coding is %d, want 0 (off) to %d bytes", o.Coding, ecraft.MaxPayload)
	}
	dir, err := filepath.Abs(o.Dir)
	if err != nil {
		return res, fmt.Errorf("shim: target directory: %w", err)
	}
	res.Dir = dir
	if err := prepare(dir); err != nil {
		return res, err
	}
	if res.UpstreamDir, err = Download(ctx, UpstreamPath, UpstreamVersion); err != nil {
		return res, err
	}
	if res.WeftDir, err = weftSources(ctx, o); err != nil {
		return res, err
	}
	if err := writeModule(o, res); err != nil {
		return res, err
	}
	if res.Names, err = writeRoot(res, o.Coding); err != nil {
		return res, err
	}
	if res.Packages, err = copyPackages(res.UpstreamDir, dir, o.Tests); err != nil {
		return res, err
	}
	return res, settle(ctx, dir)
}

func weftSources(ctx context.Context, o Options) (string, error) {
	switch {
	case o.WeftDir != "":
		return checkout(o.WeftDir)
	case o.WeftVersion != "":
		return Download(ctx, WeftPath, o.WeftVersion)
	}
	return "", fmt.Errorf("shim: no version of %s is known, as this program was built from a checkout; name the checkout's directory, by --weft of raftswap", WeftPath)
}

// writeRoot writes the root package and returns the number of names in it.
func writeRoot(res Result, coding int) (int, error) {
	theirs, err := parseAPI(res.UpstreamDir)
	if err != nil {
		return 0, err
	}
	ours, err := parseAPI(filepath.Join(res.WeftDir, "raft"))
	if err != nil {
		return 0, err
	}
	src, err := forward(theirs, ours)
	if err != nil {
		return 0, err
	}
	reading, err := environmentSource(theirs.pkg, coding)
	if err != nil {
		return 0, fmt.Errorf("shim: generated %s: %w", environmentFile, err)
	}
	leased, err := inPackage(theirs.pkg, leasesEnvironment)
	if err != nil {
		return 0, fmt.Errorf("shim: generated %s: %w", leasesFile, err)
	}
	return len(theirs.decls), errors.Join(
		os.WriteFile(filepath.Join(res.Dir, leasesFile), leased, 0o644),
		os.WriteFile(filepath.Join(res.Dir, environmentFile), reading, 0o644),
		os.WriteFile(filepath.Join(res.Dir, rootFile), src, 0o644))
}

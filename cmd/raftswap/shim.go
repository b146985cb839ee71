// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"path/filepath"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/weftraft/weft/internal/shim"
)

func shimCommand() *cobra.Command {
	var o shim.Options
	cmd := &cobra.Command{
		Use:   "shim DIR",
		Short: "Write a module named " + shim.UpstreamPath + " whose root package is Weft's",
		Long: `Write a module named ` + shim.UpstreamPath + ` whose root package forwards to Weft by
aliases and whose sub-packages are upstream's own, copied from the module cache.
A host that replaces ` + shim.UpstreamPath + ` by it runs on Weft, unedited.

Nodes on it read the environment of their process:
  ` + shim.CodingVariable + `=BYTES   code payloads of so many bytes and more ("on": of 4096; "off": none)
  ` + shim.DensifyVariable + `=1      read coded entries, and code nothing new: the way back
docs/adopt.md has the other variables.`,
		Args: oneDirectory,
		RunE: func(cmd *cobra.Command, args []string) error {
			o.Dir = args[0]
			o.WeftVersion = ownVersion()
			host, err := warn(cmd, filepath.Dir(filepath.Clean(o.Dir)))
			if err != nil {
				return err
			}
			res, err := shim.Generate(cmd.Context(), o)
			if err != nil {
				return err
			}
			report(cmd, o, res, host)
			return nil
		},
	}
	cmd.Flags().StringVar(&o.WeftDir, "weft", "", "directory of a checkout of Weft (default: this program's own version, from the module proxy)")
	cmd.Flags().IntVar(&o.Coding, "coding", 0, "size in bytes from which payloads are coded where "+shim.CodingVariable+" is not set (0: none are)")
	cmd.Flags().BoolVar(&o.Tests, "tests", false, "add the tests of upstream's sub-packages")
	return cmd
}

func report(cmd *cobra.Command, o shim.Options, res shim.Result, host *shim.Host) {
	w := cmd.OutOrStdout()
	fmt.Fprintf(w, "%s: %d names forwarded to %s/raft, %d sub-packages of %s copied\n",
		res.Dir, res.Names, shim.WeftPath, res.Packages, shim.UpstreamVersion)
	fmt.Fprintf(w, "in the host's module, run:\n  go mod edit -replace %s=%s\n", shim.UpstreamPath, res.Dir)
	if o.WeftDir != "" {
		fmt.Fprintf(w, "  go mod edit -replace %s=%s\n", shim.WeftPath, res.WeftDir)
	}
	fmt.Fprintln(w, "  go mod tidy")
	if host != nil && host.Vendored {
		fmt.Fprintln(w, "  go mod vendor")
	}
}

// ownVersion is the version of Weft that this program was built with, or empty
// if it was built from a checkout.
func ownVersion() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	for _, d := range info.Deps {
		if d.Path == shim.WeftPath && d.Version != "(devel)" && d.Replace == nil {
			return d.Version
		}
	}
	return ""
}

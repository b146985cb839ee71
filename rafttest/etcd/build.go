// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
)

// programs are the programs of etcd's releases, and etcd-coded, which reads the log of a member.
var programs = []struct{ name, path string }{
	{"etcd", serverPath},
	{"etcdctl", "go.etcd.io/etcd/etcdctl/v3"},
	{"etcdutl", "go.etcd.io/etcd/etcdutl/v3"},
	{"etcd-coded", "./etcd-coded"},
}

func buildCommand() *cobra.Command {
	var core, out string
	cmd := &cobra.Command{
		Use:   "build",
		Short: "Build etcd, etcdctl and etcdutl " + etcdVersion,
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if core != coreWeft && core != coreUpstream {
				return fmt.Errorf("--core %s: it must be %s or %s", core, coreWeft, coreUpstream)
			}
			w, err := newWorkdir("")
			if err != nil {
				return err
			}
			if out == "" {
				out = filepath.Join(w.weft, "bin")
			}
			if err := w.prepare(cmd.Context(), false); err != nil {
				return err
			}
			return w.buildPrograms(cmd.Context(), core, out)
		},
	}
	cmd.Flags().StringVar(&core, "core", coreWeft, "the Raft library under etcd: "+coreWeft+" or "+coreUpstream)
	cmd.Flags().StringVar(&out, "out", "", "directory for the programs (default: bin in Weft)")
	return cmd
}

// buildPrograms builds all programs into a directory.
func (w *workdir) buildPrograms(ctx context.Context, core, out string) error {
	out, err := filepath.Abs(out)
	if err != nil {
		return fmt.Errorf("--out: %w", err)
	}
	if err := os.MkdirAll(out, 0o755); err != nil {
		return fmt.Errorf("--out: %w", err)
	}
	for _, p := range programs {
		file := filepath.Join(out, p.name)
		progress("%s %s on %s: %s", p.name, etcdVersion, core, file)
		if err := w.run(ctx, core, "build", "-o", file, p.path); err != nil {
			return err
		}
	}
	return checkLibrary(core, filepath.Join(out, programs[0].name))
}

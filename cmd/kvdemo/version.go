// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// upstreamModule is the library of --core upstream.
const upstreamModule = "go.etcd.io/raft/v3"

// revision is the commit of the sources, where the linker is told (make build, deploy/Dockerfile):
// the go command itself names the commit in a clone, but not in a work tree or an image.
var revision string

// versionResult is the output of version --json.
type versionResult struct {
	Version  string `json:"version"`
	Revision string `json:"revision,omitempty"` // commit of the sources, if known
	Modified bool   `json:"modified,omitempty"` // the checkout was not as committed
	Upstream string `json:"upstream"`           // version of go.etcd.io/raft
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

// ownVersion returns the version of this program's source.
func ownVersion() versionResult {
	v := versionResult{Version: "(unknown)", Revision: revision, Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return v
	}
	v.Version = info.Main.Version
	if v.Version == "" {
		v.Version = "(devel)" // as the go command has it
	}
	for _, d := range info.Deps {
		if d.Path == upstreamModule {
			v.Upstream = d.Version
		}
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			v.Revision = s.Value
		case "vcs.modified":
			v.Modified = s.Value == "true"
		}
	}
	return v
}

func (v versionResult) String() string {
	text := "kvdemo " + v.Version
	switch {
	case v.Revision != "":
		text += ", commit " + v.Revision
	case v.Version == "(devel)":
		text += ", commit not known (make build notes it)"
	}
	if v.Modified {
		text += ", modified"
	}
	return fmt.Sprintf("%s, %s %s, %s %s", text, upstreamModule, v.Upstream, v.Go, v.Platform)
}

func newVersion() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Say what this program was built from",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if asJSON {
				return json.NewEncoder(cmd.OutOrStdout()).Encode(ownVersion())
			}
			_, err := fmt.Fprintln(cmd.OutOrStdout(), ownVersion())
			return err
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

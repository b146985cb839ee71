// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A flag counts more than the environment, and that more than the file.
func TestSettingsComeFromFlagsEnvironmentAndFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "kvdemo.yaml")
	require.NoError(t, os.WriteFile(file, []byte("# a node\nid: 7\ngroups: 5\ntick: 30ms\njoin: true\npeers: 1=h:1,2=h:2\ndata: \"a dir\"\n"), 0o644))
	cmd := newServe()
	flags := cmd.Flags()
	require.NoError(t, flags.Parse([]string{"--id", "9"}))
	require.NoError(t, takeSettings(flags, []string{"WEFT_KVDEMO_CONFIG=" + file, "WEFT_KVDEMO_ID=8", "WEFT_KVDEMO_GROUPS=6", "WEFT_KVDEMO_CLIENT_LISTEN=h:3", "KVDEMO_ENDPOINTS=x"}))
	for name, want := range map[string]string{
		"id": "9", "groups": "6", "client-listen": "h:3", "tick": (30 * time.Millisecond).String(), "join": "true", "peers": "1=h:1,2=h:2", "data": "a dir",
		"election-ticks": "10",
	} {
		require.Equal(t, want, flags.Lookup(name).Value.String(), name)
	}
}

func TestMistakesInSettingsAreNamed(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "f")
	for text, want := range map[string]string{
		"nonsense: 1":        "--config: " + file + ":1: nonsense: there is no such setting; want a flag of kvdemo serve without its dashes",
		"\nid: x":            file + ":2: id: --id: \"x\"",
		"id: 1\nid: 2":       file + ":2: id: it is there twice",
		"peers:\n  1: h:1\n": file + ":1: peers: want one value, written as for the flag",
		"config: other":      "config: there is no such setting",
		"orders: true":       "orders: there is no such setting",
		"- id":               "want lines such as \"id: 1\"",
		"id: [":              "--config: " + file + ": yaml:",
	} {
		require.NoError(t, os.WriteFile(file, []byte(text), 0o644))
		r := kvdemo(t.Context(), "", "serve", "--config", file)
		require.Equal(t, exitUsage, r.code, text)
		require.Contains(t, r.err, want, text)
	}
	r := kvdemo(t.Context(), "", "serve", "--config", filepath.Join(dir, "none"))
	require.Contains(t, r.err, "none does not exist")
	require.NoError(t, os.WriteFile(file, make([]byte, maxSettingsBytes+1), 0o644))
	r = kvdemo(t.Context(), "", "serve", "--config", file)
	require.Contains(t, r.err, "1048577 bytes, want at most 1048576")

	t.Setenv("WEFT_KVDEMO_NONSENSE", "1")
	t.Setenv("WEFT_KVDEMO_TICK", "x")
	r = kvdemo(t.Context(), "", "serve")
	require.Equal(t, exitUsage, r.code)
	require.Contains(t, r.err, "WEFT_KVDEMO_NONSENSE: there is no flag --nonsense")
	require.Contains(t, r.err, "WEFT_KVDEMO_TICK: --tick: \"x\", want a duration")
}

// A node runs with nothing but a file.
func TestServeFromAFile(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "kvdemo.yaml")
	text := "id: 1\npeers: 1=" + freePort(t) + "\nclient-listen: " + freePort(t) + "\ndata: " + filepath.Join(dir, "data") + "\nexit-with-stdin: true\n"
	require.NoError(t, os.WriteFile(file, []byte(text), 0o644))
	r := kvdemo(t.Context(), "", "serve", "--config", file)
	require.Zero(t, r.code, r.err)
	require.Contains(t, r.err, "serving")
}

// The file in docs/kvdemo.md is one that serve takes.
func TestDocumentedSettings(t *testing.T) {
	doc, err := os.ReadFile("../../docs/kvdemo.md")
	require.NoError(t, err)
	_, text, ok := strings.Cut(string(doc), "```yaml\n")
	require.True(t, ok)
	text, _, _ = strings.Cut(text, "```")
	file := filepath.Join(t.TempDir(), "kvdemo.yaml")
	require.NoError(t, os.WriteFile(file, []byte(text), 0o644))
	flags := newServe().Flags()
	require.NoError(t, flags.Parse([]string{"--config", file}))
	require.NoError(t, takeSettings(flags, nil))
	for name, want := range map[string]string{"id": "1", "peers": "1=10.0.0.1:7200,2=10.0.0.2:7200,3=10.0.0.3:7200", "client-listen": "10.0.0.1:7300", "data": "/var/lib/kvdemo"} {
		require.Equal(t, want, flags.Lookup(name).Value.String())
	}
}

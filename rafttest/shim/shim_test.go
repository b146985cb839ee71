// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

// Package shim runs upstream's own tests against Weft, through a shim module
// (see internal/shim) that is generated for the occasion. Nothing of upstream's
// is kept here: scenarios and tests come from the module cache.
//
//	go test -v ./rafttest/shim
package shim

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weftraft/weft/internal/docs"
	"github.com/weftraft/weft/internal/shim"
)

// What upstream's v3.7.0 has; fewer would mean that some were passed over.
const (
	wantScenarios    = "28 files, 558 commands"
	wantNetworkTests = 5
)

var (
	//go:embed testdata/interaction_test.go.txt
	interactionTest []byte
	// exportShim reaches into the core for the one thing that scenarios need and
	// the API does not have: setting the election timeout. It is laid over the
	// package for the time of the test, so that the package has no test hook.
	//go:embed testdata/export_shim.go.txt
	exportShim []byte
)

// TestUpstream runs upstream's interaction scenarios and rafttest on Weft.
func TestUpstream(t *testing.T) {
	s := newShim(t)
	t.Run("vet", func(t *testing.T) {
		_, err := s.run(t, s.Dir, "go", "vet", s.overlay, "./...")
		require.NoError(t, err)
	})
	t.Run("host builds", func(t *testing.T) {
		// Host drives both libraries; behind a shim the two are one, and it must
		// still compile.
		_, err := s.run(t, s.Dir, "go", "build", shim.WeftPath+"/rawnode/...")
		require.NoError(t, err)
	})
	t.Run("scenarios", func(t *testing.T) {
		out, err := s.scenarios(t, filepath.Join(s.UpstreamDir, "testdata"))
		require.NoError(t, err)
		require.Contains(t, out, "scenarios: "+wantScenarios)
		t.Log(wantScenarios)
	})
	t.Run("altered scenario is refused", func(t *testing.T) {
		dir := t.TempDir()
		data, err := os.ReadFile(filepath.Join(s.UpstreamDir, "testdata", "campaign.txt"))
		require.NoError(t, err)
		altered := bytes.Replace(data, []byte("Term:1 "), []byte("Term:2 "), 1)
		require.NotEqual(t, data, altered)
		require.NoError(t, os.WriteFile(filepath.Join(dir, "campaign.txt"), altered, 0o644))
		out, err := s.scenarios(t, dir)
		require.Error(t, err, "a scenario that says something else passed")
		require.Contains(t, out, "--- FAIL: TestInteraction/campaign")
	})
	t.Run("rafttest", func(t *testing.T) {
		out, err := s.rafttest(t)
		require.NoError(t, err)
		passed := regexp.MustCompile(`(?m)^--- PASS: (\w+)`).FindAllStringSubmatch(out, -1)
		require.Len(t, passed, wantNetworkTests)
		for _, p := range passed {
			t.Log(p[1])
		}
	})
}

// shimModule is a generated shim with the scenario test laid over it.
type shimModule struct {
	shim.Result
	overlay string // the -overlay flag
}

func newShim(t *testing.T) *shimModule {
	t.Helper()
	root, err := docs.Root()
	require.NoError(t, err)
	dir := docs.Place(t, "shim")
	res, err := shim.Generate(t.Context(), shim.Options{Dir: filepath.Join(dir, "shim"), WeftDir: root, Tests: true})
	require.NoError(t, err)
	replace := map[string]string{}
	lay := func(over, name string, data []byte) {
		file := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(file, data, 0o644))
		replace[over] = file
	}
	lay(filepath.Join(res.Dir, "interaction_test.go"), "interaction.go", interactionTest)
	lay(filepath.Join(res.WeftDir, "raft", "export_shim.go"), "export.go", exportShim)
	data, err := json.Marshal(map[string]any{"Replace": replace})
	require.NoError(t, err)
	overlay := filepath.Join(dir, "overlay.json")
	require.NoError(t, os.WriteFile(overlay, data, 0o644))
	return &shimModule{res, "-overlay=" + overlay}
}

// scenarios runs the interaction scenarios in dir.
func (s *shimModule) scenarios(t *testing.T, dir string) (string, error) {
	return s.run(t, s.Dir, "go", "test", s.overlay, "-vet=off", "-v", "-count=1", "-timeout=60s", "-run=^TestInteraction$", ".", "-args", "-scenarios="+dir)
}

// rafttest runs upstream's network and node tests. They wait for elections in
// real time, so a machine that is busy with other tests may starve them; what
// fails three times is wrong.
func (s *shimModule) rafttest(t *testing.T) (out string, err error) {
	for attempt := range 3 {
		if out, err = s.run(t, s.Dir, "go", "test", "-vet=off", "-v", "-count=1", "-timeout=60s", "./rafttest"); err == nil {
			break
		}
		t.Logf("attempt %d: %v", attempt+1, err)
	}
	return out, err
}

func (s *shimModule) run(t *testing.T, dir string, command ...string) (string, error) {
	t.Helper()
	return run(t, dir, nil, command...)
}

// run executes a command and returns what it printed. The error of a command
// that failed ends with the last of it.
func run(t *testing.T, dir string, env []string, command ...string) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Dir = dir
	cmd.Env = append(append(os.Environ(), "GOFLAGS=-buildvcs=false"), env...)
	cmd.WaitDelay = 5 * time.Second
	out, err := cmd.CombinedOutput()
	if err != nil {
		tail := out[max(0, len(out)-4096):]
		err = fmt.Errorf("%q: %w:\n%s", command, err, tail)
	}
	return string(out), err
}

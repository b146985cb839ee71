// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package main

import (
	"debug/elf"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const (
	unitFile     = deployed + "/systemd/kvdemo.service"
	unitSettings = deployed + "/systemd/kvdemo.yaml"
)

// unit returns the settings of the systemd unit, by section and name.
func unit(t *testing.T) map[string][]string {
	t.Helper()
	text, err := os.ReadFile(unitFile)
	require.NoError(t, err)
	settings, section := map[string][]string{}, ""
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		switch name, value, ok := strings.Cut(line, "="); {
		case line == "" || strings.HasPrefix(line, "#"):
		case strings.HasPrefix(line, "["):
			section = strings.Trim(line, "[]")
		default:
			require.True(t, ok, line)
			settings[section+"."+name] = append(settings[section+"."+name], value)
		}
	}
	return settings
}

// The unit's command is a command of kvdemo with settings that serve accepts, and the
// node's data is in a directory to which the sandbox lets the node write.
func TestUnitFitsItsSettings(t *testing.T) {
	settings := unit(t)
	command := strings.Fields(settings["Service.ExecStart"][0])
	require.Equal(t, []string{"/usr/local/bin/kvdemo", "serve", "--config", "/etc/kvdemo/kvdemo.yaml"}, command)
	cmd := newServe()
	require.NoError(t, cmd.Flags().Set(configFlag, unitSettings))
	require.NoError(t, takeSettings(cmd.Flags(), nil))
	value := func(name string) string { return cmd.Flags().Lookup(name).Value.String() }
	require.Equal(t, "/var/lib/"+settings["Service.StateDirectory"][0], value("data"))
	require.Equal(t, []string{strconv.Itoa(exitUsage)}, settings["Service.RestartPreventExitStatus"])
	for _, name := range []string{"tls-cert", "tls-key", "tls-ca"} {
		require.True(t, strings.HasPrefix(value(name), "/etc/kvdemo/"), name)
	}
	// serve itself accepts every setting, except for files that this machine does not have.
	r := kvdemo(t.Context(), "", "serve", "--config", unitSettings, "--log-level", "nonsense")
	require.Equal(t, exitUsage, r.code)
	require.Regexp(t, `^kvdemo: --log-level: "nonsense", want [^;]*; see the command's --help\n$`, r.err, "the only mistake is ours")
}

// systemd's own program finds no mistake in the unit, and little that the sandbox leaves
// open.
func TestSystemdAcceptsTheUnit(t *testing.T) {
	if _, err := exec.LookPath("systemd-analyze"); err != nil {
		t.Skip("systemd-analyze is not installed; TestUnitFitsItsSettings reads the unit")
	}
	text, err := os.ReadFile(unitFile)
	require.NoError(t, err)
	self, err := os.Executable()
	require.NoError(t, err)
	copied := filepath.Join(t.TempDir(), "kvdemo.service")
	// The program must be there for verify.
	require.NoError(t, os.WriteFile(copied, []byte(strings.ReplaceAll(string(text), "/usr/local/bin/kvdemo", self)), 0o644))
	out, err := exec.CommandContext(t.Context(), "systemd-analyze", "verify", "--man=no", copied).CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.NotContains(t, string(out), copied, "a warning")
	require.NoError(t, os.WriteFile(copied, append(text, "\n[Service]\nNonsense=1\n"...), 0o644))
	out, _ = exec.CommandContext(t.Context(), "systemd-analyze", "verify", "--man=no", copied).CombinedOutput()
	require.Contains(t, string(out), "Nonsense", "verify notices what is wrong")
	out, err = exec.CommandContext(t.Context(), "systemd-analyze", "security", "--offline=true", "--threshold=15", "--no-pager", copied).CombinedOutput()
	if err != nil && strings.Contains(string(out), "unrecognized option") {
		t.Skip("this systemd-analyze cannot look at the security of a unit that is not installed")
	}
	require.NoError(t, err, "the unit is more exposed than 1.5 of 10:\n%s", out)
}

// goVersion finds the Go version that a Dockerfile builds with, or a module needs.
var goVersion = regexp.MustCompile(`(?m)^(?:FROM golang:|go )(\d+\.\d+)`)

// The image is built by the Go version that the module needs, and copies what the first
// stage has made.
func TestDockerfileFitsTheModule(t *testing.T) {
	text, _ := dockerfile(t)
	mod, err := os.ReadFile("../../go.mod")
	require.NoError(t, err)
	require.Equal(t, goVersion.FindStringSubmatch(string(mod))[1], goVersion.FindStringSubmatch(text)[1])
	made := regexp.MustCompile(`/out/\w+`).FindAllString(text[:strings.Index(text, "FROM scratch")], -1)
	copies := regexp.MustCompile(`(?m)^COPY --from=build (?:--chown=65532:65532 )?(\S+) `).FindAllStringSubmatch(text, -1)
	require.Len(t, copies, 3)
	for _, c := range copies {
		require.Contains(t, made, c[1])
	}
	require.Contains(t, text, "\nUSER 65532:65532\n")
}

// ignored reads .dockerignore, whose lines here are paths below the root, or **/ and a
// pattern for names.
func ignored(t *testing.T, root string) func(path string) bool {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, ".dockerignore"))
	require.NoError(t, err)
	var lines []string
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			lines = append(lines, line)
		}
	}
	return func(path string) bool {
		return slices.ContainsFunc(lines, func(line string) bool {
			if pattern, ok := strings.CutPrefix(line, "**/"); ok {
				matched, err := filepath.Match(pattern, filepath.Base(path))
				require.NoError(t, err)
				return matched
			}
			return line == path
		})
	}
}

// The command of the Dockerfile builds a program from the files that .dockerignore leaves,
// and the program needs no other file in its image.
func TestDockerfileBuildsAStaticProgram(t *testing.T) {
	if os.Getenv("KVDEMO_TEST_DEPLOY") == "" {
		t.Skip("it compiles kvdemo without cgo, which takes minutes the first time; run: make test-deploy")
	}
	context, out := t.TempDir(), t.TempDir()
	copyContext(t, "../..", context)
	text, _ := dockerfile(t)
	line := regexp.MustCompile(`(?m)^RUN (.* go build .*)$`).FindStringSubmatch(text)
	require.NotNil(t, line)
	build := exec.CommandContext(t.Context(), "sh", "-c", strings.ReplaceAll(line[1], "/out/", out+"/"))
	build.Dir = context
	build.Env = append(os.Environ(), "GOWORK=", "GOFLAGS=")
	said, err := build.CombinedOutput()
	require.NoError(t, err, "%s", said)
	if file, err := elf.Open(filepath.Join(out, "kvdemo")); err == nil { // else this system has other programs
		defer func() { _ = file.Close() }() // it was only read
		for _, p := range file.Progs {
			require.NotEqual(t, elf.PT_INTERP, p.Type, "the program wants a dynamic linker")
		}
	}
	version := exec.CommandContext(t.Context(), filepath.Join(out, "kvdemo"), "version")
	version.Env = []string{} // as in the image
	said, err = version.CombinedOutput()
	require.NoError(t, err, "%s", said)
	require.Contains(t, string(said), "kvdemo")
}

// copyContext copies what docker would send to the builder.
func copyContext(t *testing.T, root, to string) {
	t.Helper()
	skip := ignored(t, root)
	require.NoError(t, filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, path)
		switch {
		case err != nil:
			return err
		case rel != "." && skip(rel) && d.IsDir():
			return filepath.SkipDir
		case rel != "." && skip(rel):
			return nil
		case d.IsDir():
			return os.MkdirAll(filepath.Join(to, rel), 0o755)
		case !d.Type().IsRegular():
			return nil
		}
		return copyFile(path, filepath.Join(to, rel))
	}))
}

func copyFile(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }() // it was only read
	out, err := os.Create(to)
	if err != nil {
		return err
	}
	if _, err := io.Copy(out, in); err != nil {
		_ = out.Close() // the copy's error says more
		return err
	}
	return out.Close()
}

// The commands in section Deploy of docs/operations.md name services, verbs and files that exist.
func TestDeployPage(t *testing.T) {
	text, err := os.ReadFile("../../docs/operations.md")
	require.NoError(t, err)
	project := composed(t)
	inside, count := false, 0
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "```") {
			inside = line == "```bash"
			continue
		}
		if !inside {
			continue
		}
		count++
		words := strings.Fields(line)
		switch words[0] {
		case "docker":
			rest := words[4:]
			require.Equal(t, []string{"docker", "compose", "-f", "deploy/compose.yaml"}, words[:4])
			switch rest[0] {
			case "up", "down":
			case "start", "stop":
				require.Contains(t, project.Services, rest[1], line)
			case "run":
				require.Contains(t, project.Services, rest[2], line)
				requireVerb(t, rest[3:])
			default:
				require.Fail(t, "a command of docker compose that is not known here", line)
			}
		case "kvdemo":
			requireVerb(t, words[1:])
		case "install":
			for _, w := range words {
				if strings.HasPrefix(w, "deploy/") {
					require.FileExists(t, "../../"+w, line)
				}
			}
		case "systemctl", "groupadd":
			require.Regexp(t, `daemon-reload$|kvdemo\.service$|kvdemo-tls$`, line)
		default:
			require.Fail(t, "a command that is not known here", line)
		}
	}
	require.Greater(t, count, 15)
	require.Equal(t, []string{"kvdemo-tls"}, unit(t)["Service.SupplementaryGroups"])
}

// requireVerb checks that kvdemo has the verb, and the flags that it is given.
func requireVerb(t *testing.T, args []string) {
	t.Helper()
	cmd, rest, err := newRoot().Find(args)
	require.NoError(t, err, args)
	require.True(t, cmd.HasParent() && cmd.Runnable(), args)
	require.NoError(t, cmd.ParseFlags(rest), args)
	require.NoError(t, cmd.ValidateArgs(cmd.Flags().Args()), args)
}

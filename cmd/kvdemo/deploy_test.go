// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/compose-spec/compose-go/v2/cli"
	"github.com/compose-spec/compose-go/v2/types"
	"github.com/stretchr/testify/require"

	"github.com/weftraft/weft/internal/ports"
)

// deployedImage is what deploy/Dockerfile says about containers.
type deployedImage struct {
	env     map[string]string
	exposed []string
	health  []string // the command of the health check, without the program
}

// dockerfile reads deploy/Dockerfile: what concerns the last stage stands there once.
func dockerfile(t *testing.T) (text string, i deployedImage) {
	t.Helper()
	b, err := os.ReadFile(deployed + "/Dockerfile")
	require.NoError(t, err)
	text = regexp.MustCompile(`(?m)^#.*\n`).ReplaceAllString(string(b), "")
	text = strings.ReplaceAll(text, "\\\n", " ")
	i.env = map[string]string{}
	for line := range strings.Lines(text) {
		word, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		switch word {
		case "ENV":
			for _, setting := range strings.Fields(rest) {
				name, value, ok := strings.Cut(setting, "=")
				require.True(t, ok, line)
				i.env[name] = value
			}
		case "EXPOSE":
			i.exposed = strings.Fields(rest)
		case "HEALTHCHECK":
			_, command, ok := strings.Cut(rest, "CMD ")
			require.True(t, ok, line)
			require.NoError(t, json.Unmarshal([]byte(command), &i.health), line)
		}
	}
	require.NotEmpty(t, i.env)
	require.NotEmpty(t, i.exposed)
	require.Equal(t, "/kvdemo", i.health[0])
	i.health = i.health[1:]
	return text, i
}

// composed reads deploy/compose.yaml as Docker Compose does, which takes no field that
// it does not know.
func composed(t *testing.T) *types.Project {
	t.Helper()
	opts, err := cli.NewProjectOptions([]string{deployed + "/compose.yaml"}, cli.WithProfiles([]string{"ops", "readers"}))
	require.NoError(t, err)
	project, err := opts.LoadProject(t.Context())
	require.NoError(t, err)
	return project
}

// composeNodes returns the services that are nodes, by name.
func composeNodes(t *testing.T, p *types.Project) []string { return composeServices(t, p, "node-", 5) }

// reader is the service that is a reader, and starts when it is asked for.
const reader = "reader-6"

// composeGateways returns the services that are gateways, by name.
func composeGateways(t *testing.T, p *types.Project) []string {
	return composeServices(t, p, "gateway-", 2)
}

func composeServices(t *testing.T, p *types.Project, prefix string, count int) (names []string) {
	t.Helper()
	for name := range p.Services {
		if strings.HasPrefix(name, prefix) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	require.Len(t, names, count)
	return names
}

// environment returns the environment of a container of the service.
func (i deployedImage) environment(s types.ServiceConfig) map[string]string {
	env := maps.Clone(i.env)
	for name, value := range s.Environment {
		env[name] = *value
	}
	return env
}

// Docker Compose itself takes the file, if it is installed.
func TestDockerComposeAcceptsWhatIsDeployed(t *testing.T) {
	if err := exec.Command("docker", "compose", "version").Run(); err != nil {
		t.Skip("docker compose is not installed; TestComposeFileFitsImageAndFlags reads the file with Compose's own library")
	}
	out, err := exec.CommandContext(t.Context(), "docker", "compose", "-f", deployed+"/compose.yaml", "--profile", "ops", "--profile", "readers", "config", "--quiet").CombinedOutput()
	require.NoError(t, err, "%s", out)
}

// Every flag, port, volume and file that the compose file names is there.
func TestComposeFileFitsImageAndFlags(t *testing.T) {
	_, img := dockerfile(t)
	project := composed(t)
	nodes := composeNodes(t, project)
	published := map[string]string{}
	require.Equal(t, []string{"readers"}, project.Services[reader].Profiles)
	for n, name := range append(nodes, reader) {
		s := project.Services[name]
		require.Equal(t, types.ShellCommand{"serve"}, s.Command, name)
		var env []string
		for variable, value := range img.environment(s) {
			env = append(env, variable+"="+value)
		}
		cmd := newServe()
		require.NoError(t, takeSettings(cmd.Flags(), env), name)
		require.Equal(t, fmt.Sprint(n+1), cmd.Flags().Lookup("id").Value.String(), name)
		for _, p := range s.Ports {
			require.Contains(t, img.exposed, fmt.Sprint(p.Target), name)
			require.Equal(t, "127.0.0.1", p.HostIP, "%s: nodes on one machine serve that machine only", name)
			require.Empty(t, published[p.Published], "port %s is published twice", p.Published)
			published[p.Published] = name
		}
		require.Len(t, s.Ports, 2, name)
		require.Equal(t, types.ServiceConditionCompletedSuccessfully, s.DependsOn["certs"].Condition, name)
		require.True(t, s.ReadOnly, name)
		require.GreaterOrEqual(t, time.Duration(*s.StopGracePeriod), 12*time.Second, "a node with a full disk takes 10 s")
		require.Nil(t, s.HealthCheck, "%s: the check is that of the image", name)
	}
	for n, name := range composeGateways(t, project) {
		s := project.Services[name]
		require.Equal(t, "gateway", s.Command[0], name)
		cmd := newGateway()
		require.NoError(t, cmd.ParseFlags(s.Command[1:]), name)
		require.Equal(t, fmt.Sprint(101+n), cmd.Flags().Lookup("id").Value.String(), name)
		require.Len(t, s.Ports, 2, name)
		for _, p := range s.Ports {
			require.Equal(t, "127.0.0.1", p.HostIP, name)
			require.Empty(t, published[p.Published], name)
			published[p.Published] = name
		}
		require.Equal(t, types.ServiceConditionCompletedSuccessfully, s.DependsOn["certs"].Condition, name)
		require.True(t, s.ReadOnly, name)
	}
	for name, s := range project.Services {
		require.Equal(t, []string{"ALL"}, s.CapDrop, name)
		require.Equal(t, "deploy/Dockerfile", s.Build.Dockerfile, name)
		for _, v := range s.Volumes {
			if v.Type == types.VolumeTypeVolume {
				require.Contains(t, project.Volumes, v.Source, name)
			}
		}
	}
}

// stage runs the services of the compose file as processes: a service's port at an
// address of its own, and a volume as a folder.
type stage struct {
	t         *testing.T
	project   *types.Project
	image     deployedImage
	dir       string
	addresses map[string]string // by service:port
}

func newStage(t *testing.T) *stage {
	_, img := dockerfile(t)
	s := &stage{t: t, project: composed(t), image: img, dir: t.TempDir(), addresses: map[string]string{}}
	listening := slices.Concat(composeNodes(t, s.project), composeGateways(t, s.project), []string{reader})
	free, err := ports.Free(len(listening) * len(img.exposed))
	require.NoError(t, err)
	for _, name := range listening {
		for _, port := range img.exposed {
			s.addresses[name+":"+port], free = free[0], free[1:]
		}
	}
	for volume := range s.project.Volumes {
		require.NoError(t, os.Mkdir(filepath.Join(s.dir, volume), 0o755))
	}
	return s
}

var (
	composeAddress = regexp.MustCompile(`((?:node|gateway|reader)-\d|0\.0\.0\.0|127\.0\.0\.1):(\d+)`)
	composePath    = regexp.MustCompile(`^/[a-z]+`)
)

// here translates a word of the service's command or environment.
func (s *stage) here(service, word string) string {
	word = composeAddress.ReplaceAllStringFunc(word, func(address string) string {
		host, port, _ := strings.Cut(address, ":")
		if !strings.Contains(host, "-") {
			host = service // it is this container's own
		}
		require.Contains(s.t, s.addresses, host+":"+port, "%s: %s", service, word)
		return s.addresses[host+":"+port]
	})
	return composePath.ReplaceAllStringFunc(word, func(target string) string {
		for _, v := range s.project.Services[service].Volumes {
			if v.Target == target {
				return filepath.Join(s.dir, v.Source)
			}
		}
		require.Fail(s.t, "no volume", "%s: %s is on none", service, word)
		return ""
	})
}

// program is a process of the service.
func (s *stage) program(service string, args ...string) *exec.Cmd {
	words := make([]string, len(args))
	for i, a := range args {
		words[i] = s.here(service, a)
	}
	cmd := program(s.t, words...)
	cmd.Env = []string{"KVDEMO_TEST_AS_PROGRAM=1"}
	// Settings of serve that a service lacks, such as the image's in ops, do no harm.
	env := map[string]string{}
	for name, value := range s.project.Services[service].Environment {
		env[name] = *value
	}
	if s.project.Services[service].Command[0] == "serve" {
		env = s.image.environment(s.project.Services[service])
	}
	for name, value := range env {
		cmd.Env = append(cmd.Env, name+"="+s.here(service, value))
	}
	return cmd
}

// run runs a process of the service to its end.
func (s *stage) run(service string, args ...string) (string, error) {
	out, err := s.program(service, args...).CombinedOutput()
	return string(out), err
}

// The services of the compose file, as processes with the commands and environments that
// it gives them, become a healthy cluster with certificates, twice.
func TestComposeFileRuns(t *testing.T) {
	if testing.Short() {
		t.Skip("starts processes")
	}
	s := newStage(t)
	certs := s.project.Services["certs"].Command
	out, err := s.run("certs", certs...)
	require.NoError(t, err, out)
	again, err := s.run("certs", certs...)
	require.NoError(t, err, again)
	require.Contains(t, again, "all 11 certificates are in")

	nodes, gateways := composeNodes(t, s.project), composeGateways(t, s.project)
	all := slices.Concat(nodes, gateways)
	logged := slices.Concat(all, []string{reader})
	cmds := map[string]*exec.Cmd{}
	start := func(name string) {
		cmds[name] = startLogged(t, s.program(name, s.project.Services[name].Command...), filepath.Join(s.dir, name+".log"))
	}
	t.Cleanup(func() {
		for _, name := range logged {
			if text, err := os.ReadFile(filepath.Join(s.dir, name+".log")); err == nil && t.Failed() {
				t.Logf("log of %s:\n%s", name, text)
			}
		}
	})
	stop := func(name string) {
		require.NoError(t, cmds[name].Process.Signal(syscall.SIGTERM))
		require.NoError(t, cmds[name].Wait(), "a node ends well")
	}
	healthy := func(name string) func() bool {
		return func() bool {
			_, err := s.run(name, s.image.health...)
			return err == nil
		}
	}
	for _, name := range all {
		start(name)
	}
	for _, name := range all {
		eventually(t, name+" to be healthy", healthy(name))
	}
	out, err = s.run("ops", "put", "greeting", "hello")
	require.NoError(t, err, out)
	out, err = s.run("ops", "member", "list")
	require.NoError(t, err, out)
	require.Equal(t, 5, strings.Count(out, "voter"), out)

	// A node is replaced by another container, and the certificates are looked at again.
	stop(nodes[0])
	_, err = s.run(nodes[0], s.image.health...)
	require.Error(t, err, "the check notices a node that is down")
	out, err = s.run("certs", certs...)
	require.NoError(t, err, out)
	start(nodes[0])
	eventually(t, nodes[0]+" to be healthy again", healthy(nodes[0]))
	out, err = s.run("ops", "get", "greeting")
	require.NoError(t, err, out)
	require.Contains(t, out, "hello")
	out, err = s.run("ops", s.project.Services["ops"].Command...)
	require.NoError(t, err, out)
	for _, name := range gateways {
		out, err = s.run("ops", "get", "greeting", "--endpoints", name+":7300")
		require.NoError(t, err, out)
		require.Contains(t, out, "hello", "a gateway answers")
	}

	// A reader is added, as the file's first lines say.
	start(reader)
	out, err = s.run("ops", "member", "add", "6", reader+":7200", "--reader")
	require.NoError(t, err, out)
	eventually(t, reader+" to be healthy", healthy(reader))
	out, err = s.run("ops", "get", "greeting", "--endpoints", reader+":7300")
	require.NoError(t, err, out)
	require.Contains(t, out, "hello", "a reader answers")
	for _, name := range slices.Concat(gateways, nodes, []string{reader}) {
		stop(name)
	}
}

// certs --missing makes the missing certificates, and changes no present one.
func TestMissingCertificatesAreMade(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "tls")
	require.Contains(t, kvdemo(t.Context(), "", "certs", dir, "--missing", "--nodes", "1").out, "1 certificates in")
	before, err := os.ReadFile(filepath.Join(dir, "node-1.pem"))
	require.NoError(t, err)
	require.Contains(t, kvdemo(t.Context(), "", "certs", dir, "--missing", "--nodes", "1,2", "--admins", "ops").out, "2 certificates in")
	after, err := os.ReadFile(filepath.Join(dir, "node-1.pem"))
	require.NoError(t, err)
	require.Equal(t, before, after)
	require.NoError(t, os.Remove(filepath.Join(dir, "ca-key.pem")), "it is kept elsewhere")
	require.Contains(t, kvdemo(t.Context(), "", "certs", dir, "--missing", "--nodes", "2,1").out, "all 2 certificates are in")
	require.NoError(t, os.Remove(filepath.Join(dir, "node-1-key.pem")))
	r := kvdemo(t.Context(), "", "certs", dir, "--missing", "--nodes", "1")
	require.Equal(t, exitFailure, r.code)
	require.Contains(t, r.err, "ca-key.pem: no such file")
}

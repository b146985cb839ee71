// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weftraft/weft/internal/docs"
	"github.com/weftraft/weft/internal/ports"
	"github.com/weftraft/weft/internal/process"
)

// patience is what the test waits for a condition at most.
const patience = time.Minute

// session is README's session in shells, with other ports.
type session struct {
	t       *testing.T
	program string
	http    map[string]string // where a node answers, by id
	nodes   map[string]*process.Process
}

// newSession builds the program with free ports in the place of its own.
func newSession(t *testing.T) *session {
	source, err := os.ReadFile("main.go")
	require.NoError(t, err)
	free, err := ports.Free(6)
	require.NoError(t, err)
	s := &session{t: t, http: map[string]string{"1": free[3], "2": free[4], "3": free[5]}, nodes: map[string]*process.Process{}}
	text := string(source)
	for written, used := range map[string]string{
		"127.0.0.1:7001": free[0], "127.0.0.1:7002": free[1], "127.0.0.1:7003": free[2],
		`fmt.Sprintf("127.0.0.1:%d", 8000+*id)`: fmt.Sprintf("%#v[fmt.Sprint(*id)]", s.http),
	} {
		require.Equal(t, 1, strings.Count(text, written), written)
		text = strings.Replace(text, written, used, 1)
	}
	root, err := docs.Root()
	require.NoError(t, err)
	dir, err := os.MkdirTemp(root, ".counter-") // where the module's packages are found
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	require.NoError(t, os.WriteFile(filepath.Join(dir, "main.go"), []byte(text), 0o600))
	s.program = filepath.Join(dir, "counter")
	build := exec.Command("go", "build", "-ldflags=-s -w", "-o", s.program, ".")
	build.Dir = dir
	out, err := build.CombinedOutput()
	require.NoError(t, err, "%s", out)
	t.Chdir(t.TempDir()) // the program's data is in the working directory
	return s
}

// start starts a node.
func (s *session) start(id string) {
	p, err := process.Start([]string{s.program, "-id", id}, "node-"+id+".log")
	require.NoError(s.t, err)
	s.nodes[id] = p
	s.t.Cleanup(func() {
		if s.t.Failed() {
			log, _ := os.ReadFile("node-" + id + ".log") // one that is not there has nothing to say
			s.t.Logf("node %s: %s", id, log)
		}
		_ = p.Kill() // it may have been killed before
	})
}

// ask sends a request to a node, and returns the number in its answer.
func (s *session) ask(method, id, name string) (int, error) {
	ctx, cancel := context.WithTimeout(s.t.Context(), 5*time.Second)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, method, fmt.Sprintf("http://%s/%s", s.http[id], name), nil)
	require.NoError(s.t, err)
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0, err
	}
	defer func() { _ = response.Body.Close() }() // it is read
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return 0, err
	}
	if response.StatusCode != http.StatusOK {
		return 0, fmt.Errorf("%s: %s", response.Status, body)
	}
	return strconv.Atoi(strings.TrimSpace(string(body)))
}

// eventually repeats f until it succeeds.
func (s *session) eventually(f func() error) {
	s.t.Helper()
	var err error
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		if err = f(); err == nil {
			return
		}
	}
	s.t.Fatalf("not within %v: %v", patience, err)
}

// TestReadme runs the session in README as it stands, then kills each node once.
func TestReadme(t *testing.T) {
	if testing.Short() {
		t.Skip("builds and runs processes")
	}
	root, err := docs.Root()
	require.NoError(t, err)
	snippets, err := docs.Snippets(filepath.Join(root, "README.md"))
	require.NoError(t, err)
	var lines []string
	for _, snippet := range snippets {
		if snippet.Lang == "console" {
			lines = append(lines, strings.Split(strings.TrimSpace(snippet.Text), "\n")...)
		}
	}
	s := newSession(t)
	var requests []request
	for i, line := range lines {
		if id, ok := strings.CutPrefix(line, "$ go run ./examples/counter -id "); ok {
			s.start(strings.TrimSuffix(id, " &"))
			continue
		}
		url, ok := strings.CutPrefix(line, "$ curl ")
		if !ok {
			require.NotContains(t, line, "$", "nothing is known here of this command")
			continue // what a command prints
		}
		r := request{method: "GET", answer: lines[i+1]}
		if rest, post := strings.CutPrefix(url, "-X POST "); post {
			r.method, url = "POST", rest
		}
		r.id, r.name, ok = strings.Cut(strings.TrimPrefix(url, "127.0.0.1:800"), "/")
		require.True(t, ok, line)
		requests = append(requests, r)
	}
	require.Len(t, s.nodes, 3)
	require.Len(t, requests, 2)
	s.answered(requests)
	s.killEach()
}

// request is a request to a node, and the answer in README.
type request struct{ method, id, name, answer string }

// answered checks the answers to requests. A request that fails, as there is no leader yet
// for example, may have taken effect; so all are made again with other names.
func (s *session) answered(requests []request) {
	try := 0
	s.eventually(func() error {
		try++
		for _, r := range requests {
			name := r.name
			if try > 1 {
				name += strconv.Itoa(try)
			}
			got, err := s.ask(r.method, r.id, name)
			if err != nil {
				return err
			}
			require.Equal(s.t, r.answer, strconv.Itoa(got), "%+v", r)
		}
		return nil
	})
}

// killEach kills a node at a time: the others take commands, and the node has them all
// once it is back.
func (s *session) killEach() {
	acknowledged, tried := 0, 0
	others := map[string]string{"1": "2", "2": "3", "3": "1"}
	for _, id := range []string{"1", "2", "3"} {
		require.NoError(s.t, s.nodes[id].Kill())
		for range 5 {
			s.eventually(func() error {
				tried++
				_, err := s.ask("POST", others[id], "pears")
				return err
			})
			acknowledged++
		}
		s.start(id)
		var got int
		s.eventually(func() (err error) { got, err = s.ask("GET", id, "pears"); return err })
		require.GreaterOrEqual(s.t, got, acknowledged, "node %s", id)
		require.LessOrEqual(s.t, got, tried, "node %s", id)
	}
}

// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weftraft/weft/internal/ports"
	"github.com/weftraft/weft/internal/process"
)

// wait is what a test waits for a condition at most.
const wait = time.Minute

// node is a process of a test.
type node struct {
	t       *testing.T
	args    []string // of the command line, the program in front
	address string   // for nodes
	http    string   // for clients
	logFile string
	process *process.Process
}

// program is the program as built by TestMain.
var program string

func TestMain(m *testing.M) {
	flag.Parse()
	os.Exit(runTests(m))
}

func runTests(m *testing.M) int {
	dir, err := os.MkdirTemp("", "kv-")
	if err != nil {
		log.Print(err)
		return 1
	}
	defer func() { _ = os.RemoveAll(dir) }() // the system's directory for such things
	program = filepath.Join(dir, "kv")
	if out, err := exec.Command("go", "build", "-ldflags=-s -w", "-o", program, ".").CombinedOutput(); err != nil {
		log.Printf("build kv: %v: %s", err, out)
		return 1
	}
	return m.Run()
}

// newNodes returns nodes with the ids first, first+1, ..., which are not started.
func newNodes(t *testing.T, first, n int) (all []*node) {
	free, err := ports.Free(2 * n)
	require.NoError(t, err)
	dir := t.TempDir()
	for i := range n {
		id := fmt.Sprint(first + i)
		all = append(all, &node{
			t: t, address: free[2*i], http: free[2*i+1], logFile: filepath.Join(dir, id+".log"),
			args: []string{program, "-id", id, "-dir", filepath.Join(dir, id), "-http", free[2*i+1]},
		})
	}
	return all
}

// peers returns the flag that names nodes, the first of which has the id first.
func peers(first int, nodes []*node) string {
	var list []string
	for i, n := range nodes {
		list = append(list, fmt.Sprintf("%d=%s", first+i, n.address))
	}
	return strings.Join(list, ",")
}

func (n *node) start() {
	n.t.Helper()
	p, err := process.Start(n.args, n.logFile)
	require.NoError(n.t, err)
	n.process = p
	n.t.Cleanup(func() {
		_ = p.Kill() // it may have ended before
		if n.t.Failed() {
			text, _ := os.ReadFile(n.logFile) // one that is not there has nothing to say
			n.t.Logf("%v: %s", n.args, text)
		}
	})
}

// errStatus is an answer other than success.
type errStatus struct {
	code int
	text string
}

func (e errStatus) Error() string { return fmt.Sprintf("%d: %s", e.code, e.text) }

// ask makes a request, and returns the body and the ETag of its answer.
func (n *node) ask(method, path, body, match string) (answer, tag string, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), wait)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, method, "http://"+n.http+path, strings.NewReader(body))
	require.NoError(n.t, err)
	if match != "" {
		r.Header.Set("If-Match", match)
	}
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		return "", "", err
	}
	defer func() { _ = response.Body.Close() }() // it is read
	text, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode >= 300 {
		err = errStatus{response.StatusCode, string(text)}
	}
	return string(text), response.Header.Get("ETag"), err
}

// answered repeats a request, which may take effect twice, until the answer is definite:
// neither for want of a leader nor because a change is not safe yet.
func (n *node) answered(method, path, body, match string) (answer, tag string, err error) {
	n.t.Helper()
	for end := time.Now().Add(wait); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		answer, tag, err = n.ask(method, path, body, match)
		var status errStatus
		if err == nil || errors.As(err, &status) && status.code < 500 && status.code != http.StatusConflict {
			return answer, tag, err
		}
	}
	n.t.Fatalf("not within %v: %s %s: %v", wait, method, path, err)
	return "", "", err
}

// settled is answered for requests that succeed, or find nothing.
func (n *node) settled(method, path, body string) (answer, tag string) {
	n.t.Helper()
	answer, tag, err := n.answered(method, path, body, "")
	var status errStatus
	if errors.As(err, &status) && status.code == http.StatusNotFound {
		return answer, tag
	}
	require.NoError(n.t, err, "%s %s", method, path)
	return answer, tag
}

// has waits for an answer to a read, and compares the answer.
func (n *node) has(key, value string) {
	n.t.Helper()
	got, _ := n.settled("GET", "/kv/"+key, "")
	require.Equal(n.t, value, got, "%s at %s", key, n.http)
}

// threeNodes starts a cluster.
func threeNodes(t *testing.T) []*node {
	if testing.Short() {
		t.Skip("builds and runs processes")
	}
	nodes := newNodes(t, 1, 3)
	for _, n := range nodes {
		n.args = append(n.args, "-peers", peers(1, nodes))
		n.start()
	}
	return nodes
}

func TestEachNodeIsKilledOnceUnderLoadAndNothingAcknowledgedIsLost(t *testing.T) {
	nodes := threeNodes(t)
	acknowledged := map[string]string{}
	write := func(through []*node, name string, from, to int) {
		var mu sync.Mutex
		var writers sync.WaitGroup
		for w := range 4 {
			writers.Go(func() {
				for i := from + w; i < to; i += 4 {
					key, value := fmt.Sprintf("%s/%d", name, i), fmt.Sprint("value ", i)
					through[i%len(through)].settled("PUT", "/kv/"+key, value)
					mu.Lock()
					acknowledged[key] = value
					mu.Unlock()
				}
			})
		}
		writers.Wait()
	}
	write(nodes, "all", 0, 40)
	for i, killed := range nodes {
		others := []*node{nodes[(i+1)%3], nodes[(i+2)%3]}
		require.NoError(t, killed.process.Kill())
		write(others, fmt.Sprint("without ", i+1), 0, 40)
		killed.start()
		for key, value := range acknowledged {
			killed.has(key, value)
		}
	}
	for _, n := range nodes { // an orderly end of all, and another beginning
		require.NoError(t, n.process.Terminate(wait))
	}
	for _, n := range nodes {
		n.start()
	}
	for key, value := range acknowledged {
		nodes[0].has(key, value)
	}
}

func TestMembersComeAndGoByIDAndAddress(t *testing.T) {
	nodes := threeNodes(t)
	nodes[0].settled("PUT", "/kv/greeting", "hello")
	joining := newNodes(t, 4, 2)
	for _, n := range joining {
		n.args = append(n.args, "-join", "-listen", n.address, "-peers", peers(2, nodes[1:2])) // any member will do
		n.start()
	}
	fourth, fifth := joining[0], joining[1]
	nodes[0].settled("PUT", "/members/4", fourth.address)
	fourth.has("greeting", "hello")

	require.NoError(t, nodes[2].process.Kill())
	nodes[0].settled("PUT", "/members/5", fifth.address)
	nodes[0].settled("DELETE", "/members/3", "")
	nodes[1].settled("DELETE", "/members/1", "")
	fifth.has("greeting", "hello")
	list, _ := fifth.settled("GET", "/members", "")
	require.Len(t, strings.Split(strings.TrimSpace(list), "\n"), 3, list)
	for _, n := range []*node{nodes[1], fourth, fifth} {
		require.Contains(t, list, n.address)
	}

	// All members start again. They find each other by the addresses that were replicated.
	left := []*node{nodes[1], fourth, fifth}
	require.NoError(t, nodes[0].process.Kill())
	for _, n := range left {
		require.NoError(t, n.process.Kill())
	}
	for _, n := range left {
		n.start()
	}
	fourth.settled("PUT", "/kv/greeting", "hello again")
	fifth.has("greeting", "hello again")
}

func TestWritesAreConditionalAndAnswersSaySo(t *testing.T) {
	nodes := threeNodes(t)
	_, first := nodes[0].settled("PUT", "/kv/x", "one")
	_, second := nodes[1].settled("PUT", "/kv/x", "two")
	require.NotEqual(t, first, second)
	for _, row := range []struct {
		method, path, body, match string
		want                      int
	}{
		{"PUT", "/kv/x", "three", first, http.StatusPreconditionFailed},
		{"DELETE", "/kv/x", "", first, http.StatusPreconditionFailed},
		{"PUT", "/kv/x", "three", "seven", http.StatusBadRequest},
		{"PUT", "/kv/", "no key", "", http.StatusBadRequest},
		{"PUT", "/kv/%ff", "would be lost", "", http.StatusBadRequest},
		{"DELETE", "/kv/%C3%28", "", "", http.StatusBadRequest},
		{"PUT", "/kv/x", strings.Repeat("x", maxValueBytes+1), "", http.StatusBadRequest},
		{"GET", "/kv/y", "", "", http.StatusNotFound},
		{"DELETE", "/kv/y", "", `"1"`, http.StatusPreconditionFailed},
		{"PUT", "/members/four", "127.0.0.1:1", "", http.StatusBadRequest},
		{"PUT", "/members/4", "nowhere", "", http.StatusBadRequest},
		{"DELETE", "/members/four", "", "", http.StatusBadRequest},
	} {
		_, _, err := nodes[2].answered(row.method, row.path, row.body, row.match)
		var status errStatus
		require.ErrorAs(t, err, &status, "%s %s", row.method, row.path)
		require.Equal(t, row.want, status.code, "%s %s: %s", row.method, row.path, status.text)
	}
	nodes[2].has("x", "two")
	nodes[0].settled("DELETE", "/kv/x", "")
	_, none := nodes[1].settled("GET", "/kv/x", "")
	require.Equal(t, `"0"`, none)
	_, again := nodes[1].settled("PUT", "/kv/x", "one")
	require.NotContains(t, []string{first, second, none}, again, "a number is not used twice")
}

func TestTableIsReadBackAsItWasWritten(t *testing.T) {
	a, b := newTable(), newTable()
	propose := func(c command) any {
		data, err := json.Marshal(c)
		require.NoError(t, err)
		return a.Apply(data)
	}
	require.Equal(t, outcome{version: 1}, propose(command{Key: "k", Value: []byte{0xff, 0}}))
	require.Equal(t, outcome{}, propose(command{Key: "k", Delete: true}))
	absent := uint64(0)
	require.Equal(t, outcome{version: 3}, propose(command{Key: "k", Value: []byte("v"), If: &absent}))
	require.Equal(t, outcome{refused: true, version: 3}, propose(command{Key: "k", If: &absent}))
	require.Error(t, a.Apply([]byte("{")).(error))
	var file bytes.Buffer
	require.NoError(t, a.Write(&file))
	require.NoError(t, b.Read(&file))
	require.Equal(t, a, b)
}

// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weftraft/weft/cmd/kvdemo/internal/page"
)

// viewer looks at a page as a program.
type viewer struct {
	t     *testing.T
	url   string // ends in /page/
	token string
}

// state returns what the page shows of a group; nil without an answer.
func (v *viewer) state(group int) *page.State {
	resp, err := http.Get(fmt.Sprintf("%sstate?group=%d", v.url, group))
	if err != nil {
		return nil
	}
	defer func() { _ = resp.Body.Close() }() // it is read
	s := new(page.State)
	if resp.StatusCode != http.StatusOK || json.NewDecoder(resp.Body).Decode(s) != nil {
		return nil
	}
	return s
}

// until waits until the page of group 1 shows something, and returns that state.
func (v *viewer) until(what string, ok func(s *page.State) bool) (s *page.State) {
	v.t.Helper()
	eventually(v.t, what, func() bool {
		s = v.state(1)
		return s != nil && ok(s)
	})
	return s
}

// press presses a button, and returns the status and what the demonstration said.
func (v *viewer) press(c page.Command) (int, string) {
	v.t.Helper()
	if v.token == "" {
		resp, err := http.Get(v.url + "token")
		require.NoError(v.t, err)
		var got struct{ Token string }
		require.NoError(v.t, errors.Join(json.NewDecoder(resp.Body).Decode(&got), resp.Body.Close()))
		v.token = got.Token
	}
	body, err := json.Marshal(c)
	require.NoError(v.t, err)
	req, err := http.NewRequest(http.MethodPost, v.url+"do", bytes.NewReader(body))
	require.NoError(v.t, err)
	req.Header.Set("X-Kvdemo-Token", v.token)
	resp, err := http.DefaultClient.Do(req)
	require.NoError(v.t, err)
	text, err := io.ReadAll(resp.Body)
	require.NoError(v.t, errors.Join(err, resp.Body.Close()))
	return resp.StatusCode, string(text)
}

// do presses a button that must work.
func (v *viewer) do(c page.Command) {
	v.t.Helper()
	code, text := v.press(c)
	require.Equal(v.t, http.StatusOK, code, text)
}

func member(s *page.State, id uint64) page.MemberState {
	i := slices.IndexFunc(s.Members, func(m page.MemberState) bool { return m.ID == id })
	if i < 0 {
		return page.MemberState{}
	}
	return s.Members[i]
}

// allAre reports whether a number of members are shown, all in a state.
func allAre(s *page.State, size int, state string) bool {
	return len(s.Members) == size && !slices.ContainsFunc(s.Members, func(m page.MemberState) bool { return m.State != state })
}

func link(s *page.State, from, to uint64) (found page.LinkState) {
	for _, l := range s.Links {
		if l.From == from && l.To == to {
			found = l
		}
	}
	return found
}

// demonstration is a demo that runs with a page.
type demonstration struct {
	viewer
	cmd *exec.Cmd

	mu   sync.Mutex
	said bytes.Buffer
}

// Write takes in what the program says.
func (d *demonstration) Write(p []byte) (int, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.said.Write(p)
}

func (d *demonstration) text() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.said.String()
}

// startDemo starts a demonstration with a page, and waits until its buttons work.
func startDemo(t *testing.T, nodes int) *demonstration {
	files := t.TempDir()
	for i := range 24 { // of 1 to 70 kB: most are coded
		require.NoError(t, os.WriteFile(filepath.Join(files, fmt.Sprintf("file-%d", i)), bytes.Repeat([]byte{byte(i)}, 1000+3000*i), 0o644))
	}
	d := &demonstration{viewer: viewer{t: t}}
	d.cmd = program(t, "demo", "--serve", "--nodes", fmt.Sprint(nodes), "--loaders", "4", files)
	d.cmd.Stdout, d.cmd.Stderr = d, d
	require.NoError(t, d.cmd.Start())
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(d.text())
		}
	})
	address := regexp.MustCompile(`page to watch: (http://[0-9.:]+/page/)\n`)
	eventually(t, "the page's address", func() bool {
		m := address.FindStringSubmatch(d.text())
		if m != nil {
			d.url = m[1]
		}
		return m != nil
	})
	d.until("the buttons to work", func(s *page.State) bool { return s.Controls != nil && s.Controls.Busy == "" })
	return d
}

// end interrupts a demonstration, which must end well and leave no process.
func (d *demonstration) end(nodes []page.MemberState) {
	require.NoError(d.t, d.cmd.Process.Signal(syscall.SIGINT))
	require.NoError(d.t, d.cmd.Wait(), d.text())
	require.Contains(d.t, d.text(), "verified: 24 files on")
	for _, m := range nodes {
		require.ErrorIs(d.t, syscall.Kill(m.PID, 0), syscall.ESRCH, "process %d of node %d", m.PID, m.ID)
	}
}

// follower returns a node that does not lead.
func follower(s *page.State) uint64 { return s.Leader%uint64(len(s.Members)) + 1 }

// Each button of a demonstration does what it says, as the page itself shows.
func TestDemoServesAPage(t *testing.T) {
	if testing.Short() {
		t.Skip("starts processes")
	}
	const nodes = 3
	d := startDemo(t, nodes)
	s := d.until("writes, reads at all nodes, and coded entries", func(s *page.State) bool {
		return allAre(s, nodes, page.Up) && s.WritesPerSecond > 1 && s.ReadsPerSecond > 1 && s.BytesPerSecond > 1 && len(s.Entries) > 4 && s.Latency.WriteP99 != nil &&
			!slices.ContainsFunc(s.Members, func(m page.MemberState) bool { return !m.Answers })
	})
	for _, e := range s.Entries {
		require.True(t, slices.ContainsFunc(e.Cells, func(c page.Cell) bool { return c.Node == e.Encoder && c.Own == e.D }), "the leader that coded %v has it", e)
	}
	require.Zero(t, s.Self)
	require.NotNil(t, s.Roster)

	id := follower(s)
	before := member(s, id)
	d.do(page.Command{Do: page.Kill, Node: id})
	s = d.until("the node to be shown as down", func(s *page.State) bool { return member(s, id).State == page.Down })
	require.NotContains(t, s.Controls.Running, id)
	code, text := d.press(page.Command{Do: page.Kill, Node: id})
	require.Equal(t, http.StatusConflict, code)
	require.Contains(t, text, fmt.Sprintf("node %d is down already; start it first", id))
	other := id%nodes + 1
	d.do(page.Command{Do: page.Squeeze, Node: id, To: other, Shape: page.Shape{DelayMs: 3}})
	d.do(page.Command{Do: page.Start, Node: id})
	s = d.until("the node to come back", func(s *page.State) bool { m := member(s, id); return m.State == page.Up && m.PID != before.PID })
	require.Contains(t, eventTexts(s), fmt.Sprintf("node %d was killed (SIGKILL)", id))
	code, text = d.press(page.Command{Do: page.Start, Node: id})
	require.Equal(t, http.StatusConflict, code)
	require.Contains(t, text, "runs already")
	d.until("the shape that the link got meanwhile", func(s *page.State) bool { l := link(s, id, other).Shape; return l != nil && l.DelayMs == 3 })

	d.do(page.Command{Do: page.Pause, Node: id})
	s = d.until("the node to be shown as paused", func(s *page.State) bool { return member(s, id).State == page.Paused })
	require.Equal(t, []uint64{id}, s.Controls.Paused)
	d.do(page.Command{Do: page.Squeeze, Node: id, To: other})
	d.do(page.Command{Do: page.Resume, Node: id})
	d.until("the node to go on, with the shape that its link got", func(s *page.State) bool {
		return member(s, id).State == page.Up && link(s, id, other).Shape == nil
	})

	shape := page.Shape{BytesPerSecond: 1_000_000, DelayMs: 5}
	d.do(page.Command{Do: page.Squeeze, Node: other, To: id, Shape: shape})
	d.until("the link to have its shape", func(s *page.State) bool { l := link(s, other, id).Shape; return l != nil && *l == shape })
	d.do(page.Command{Do: page.Squeeze, Node: other, To: id})
	d.until("the link to lose its shape", func(s *page.State) bool { return link(s, other, id).Shape == nil })
	for want, c := range map[string]page.Command{
		"to: 9, want 1 to 3":                      {Do: page.Squeeze, Node: 1, To: 9},
		"to: 1, want a node other":                {Do: page.Squeeze, Node: 1, To: 1},
		"shape.delayMs: -1, want 0 to 10000":      {Do: page.Squeeze, Node: 1, To: 2, Shape: page.Shape{DelayMs: -1}},
		"node: 7, want 1 to 3":                    {Do: page.Kill, Node: 7},
		`do: \"format\", want one of kill, start`: {Do: "format"},
		"writes: 2001, want 0 to 2000":            {Do: page.Load, Writes: 2001},
		`policy: \"best\", want one of adaptive`:  {Do: page.Code, Policy: "best"},
	} {
		code, text := d.press(c)
		require.Equal(t, http.StatusConflict, code)
		require.Contains(t, text, want)
	}

	d.do(page.Command{Do: page.Code, Policy: page.PolicyWhole})
	s = d.until("all nodes to have the policy", func(s *page.State) bool {
		return !slices.ContainsFunc(s.Members, func(m page.MemberState) bool { return m.Coding == nil || m.Coding.Policy != page.PolicyWhole })
	})
	require.Equal(t, page.PolicyWhole, s.Controls.Policy)
	d.until("recent entries not to be coded", func(s *page.State) bool { return len(s.Entries) == 0 })
	d.do(page.Command{Do: page.Code, Policy: page.PolicyFewest})
	d.until("entries to be coded again", func(s *page.State) bool { return len(s.Entries) > 0 })

	d.do(page.Command{Do: page.Load, Writes: 0})
	d.until("the load to end", func(s *page.State) bool { return s.WritesPerSecond == 0 })
	d.do(page.Command{Do: page.Pause, Node: id}) // a node that stands still must end, too
	d.end(s.Members)
}

func eventTexts(s *page.State) (all []string) {
	for _, e := range s.Events {
		all = append(all, e.Text)
	}
	return all
}

// The page of a node shows the node, and the others as far as their HTTP ports are known.
func TestPageOfANode(t *testing.T) {
	if testing.Short() {
		t.Skip("starts processes")
	}
	var peers, web, endpoints []string
	for id := 1; id <= 3; id++ {
		peers = append(peers, fmt.Sprintf("%d=%s", id, freePort(t)))
		web = append(web, freePort(t))
		endpoints = append(endpoints, freePort(t))
	}
	data := t.TempDir()
	var all []*exec.Cmd
	for i := range 3 {
		args := []string{
			"serve", "--id", fmt.Sprint(i + 1), "--peers", strings.Join(peers, ","), "--client-listen", endpoints[i],
			"--data", filepath.Join(data, fmt.Sprint(i)), "--groups", "2", "--http-listen", web[i],
		}
		if i == 0 { // of the others it knows one
			args = append(args, "--http-peers", fmt.Sprintf("2=%s", web[1]))
		}
		cmd := program(t, args...)
		require.NoError(t, cmd.Start())
		all = append(all, cmd)
	}
	v := &viewer{t: t, url: "http://" + web[0] + "/page/"}
	s := v.until("two nodes to be up", func(s *page.State) bool {
		return member(s, 1).State == page.Up && member(s, 2).State == page.Up && s.Leader != 0
	})
	require.EqualValues(t, 1, s.Self)
	require.Equal(t, 2, s.Groups)
	require.Equal(t, page.Unasked, member(s, 3).State)
	require.NotEmpty(t, member(s, 3).Address)
	require.Nil(t, s.Controls)

	big := strings.Repeat("x", 60_000)
	for group := range 2 {
		eventually(t, "both nodes to tell of coded entries", func() bool {
			s = v.state(group + 1)
			for i := 0; s != nil && len(s.Entries) == 0 && i < 8; i++ { // some in either group; a leader that knows little of the others codes none
				r := kvdemo(t.Context(), big, "put", fmt.Sprint("key", i), "-", "--endpoints", strings.Join(endpoints, ","), "--timeout", limit.String())
				require.Zero(t, r.code, r.err)
			}
			return s != nil && len(s.Entries) > 0 && len(s.Entries[0].Cells) == 2
		})
		require.EqualValues(t, group+1, s.Group)
	}
	require.Positive(t, link(s, 2, 3).Total+link(s, 1, 3).Total)
	resp, err := http.Post(v.url+"do", "application/json", strings.NewReader(`{"do":"kill","node":2}`))
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	require.Equal(t, http.StatusNotFound, resp.StatusCode, "a node takes no command")

	require.NoError(t, all[1].Process.Kill())
	_ = all[1].Wait() // says that it was killed
	s = v.until("the node to be down", func(s *page.State) bool { return member(s, 2).State == page.Down })
	require.Contains(t, eventTexts(s), "node 2 does not answer")
	for _, cmd := range []*exec.Cmd{all[0], all[2]} {
		require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
		require.NoError(t, cmd.Wait())
	}
}

// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// buttons are controls that remember what was pressed.
type buttons struct {
	got  []Command
	fail error
}

func (b *buttons) Do(_ context.Context, c Command) error {
	b.got = append(b.got, c)
	return b.fail
}

func (b *buttons) State() ControlState { return ControlState{Policies: Policies(), Writes: 7} }

// serve starts a server of the page, over a cluster of three.
func serve(t *testing.T, controls Controls) *httptest.Server {
	c := newCluster(3)
	cfg := Config{Collector: c.Collector, Controls: controls}
	if controls == nil {
		cfg.Own = c.sources[0].Read
	}
	s := httptest.NewServer(Handler(cfg))
	t.Cleanup(s.Close)
	return s
}

// ask makes a request, and returns the status and the body.
func ask(t *testing.T, method, url, body string, headers ...string) (*http.Response, string) {
	t.Helper()
	req, err := http.NewRequest(method, url, strings.NewReader(body))
	require.NoError(t, err)
	for i := 0; i < len(headers); i += 2 {
		if headers[i] == "Host" {
			req.Host = headers[i+1]
		}
		req.Header.Set(headers[i], headers[i+1])
	}
	resp, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	text, err := io.ReadAll(resp.Body)
	require.NoError(t, errors.Join(err, resp.Body.Close()))
	return resp, string(text)
}

// The page is whole in itself: a strict policy, nothing inline, nothing from elsewhere.
func TestPageAsksNobodyElse(t *testing.T) {
	s := serve(t, nil)
	index, text := ask(t, "GET", s.URL+"/page/", "")
	require.Equal(t, http.StatusOK, index.StatusCode)
	require.Contains(t, index.Header.Get("Content-Type"), "text/html")
	require.NotRegexp(t, `(?i)<script>|<style|\sstyle=|\son\w+=|javascript:`, text)
	for _, ref := range regexp.MustCompile(`(?:src|href)="([^"]*)"`).FindAllStringSubmatch(text, -1) {
		require.True(t, strings.HasPrefix(ref[1], "/page/"), ref[1])
		resp, body := ask(t, "GET", s.URL+ref[1], "")
		require.Equal(t, http.StatusOK, resp.StatusCode, ref[1])
		require.NotEmpty(t, body)
		require.Equal(t, policy, resp.Header.Get("Content-Security-Policy"))
		require.Equal(t, "nosniff", resp.Header.Get("X-Content-Type-Options"))
		body = strings.ReplaceAll(body, "http://www.w3.org/2000/svg", "") // a name, not an address
		require.NotRegexp(t, `https?://|@import|url\(|innerHTML|eval\(`, body, ref[1])
	}
	for _, unsafe := range []string{"unsafe", "*", "http:"} {
		require.NotContains(t, policy, unsafe)
	}
}

func TestStateIsServed(t *testing.T) {
	s := serve(t, nil)
	resp, text := ask(t, "GET", s.URL+"/page/state", "")
	require.Equal(t, http.StatusOK, resp.StatusCode)
	require.Empty(t, resp.Header.Get("Access-Control-Allow-Origin"), "for this site alone")
	var state State
	require.NoError(t, json.Unmarshal([]byte(text), &state))
	require.Len(t, state.Members, 3)
	require.Nil(t, state.Controls)
	for _, c := range []struct {
		path, want string
		code       int
	}{
		{"/page/state?group=x", `group: \"x\", want a number`, http.StatusBadRequest},
		{"/page/state?group=0", "group: 0, want 1 to 1024", http.StatusBadRequest},
		{"/page/state?group=9", "group: 9, want 1 to 1", http.StatusNotFound},
		{"/page/node?upto=-1", `upto: \"-1\", want a number`, http.StatusBadRequest},
		{"/page/nothing", "404", http.StatusNotFound},
	} {
		resp, text := ask(t, "GET", s.URL+c.path, "")
		require.Equal(t, c.code, resp.StatusCode, c.path)
		require.Contains(t, text, c.want)
	}
}

// Another site may let its name point to this machine, and its pages must not read the pages served here.
func TestForeignNamesAreRefused(t *testing.T) {
	s := serve(t, nil)
	port := s.URL[strings.LastIndexByte(s.URL, ':'):]
	for host, code := range map[string]int{
		"evil.example" + port: http.StatusForbidden, "localhost.evil.example": http.StatusForbidden,
		"localhost" + port: http.StatusOK, "127.0.0.1": http.StatusOK, "[::1]" + port: http.StatusOK, "[::1]": http.StatusOK,
	} {
		for _, path := range []string{"/page/", "/page/state", "/page/node"} {
			resp, text := ask(t, "GET", s.URL+path, "", "Host", host)
			require.Equal(t, code, resp.StatusCode, "%s %s: %s", host, path, text)
		}
	}
}

// A node serves its report, and no command.
func TestNodeServesNoCommands(t *testing.T) {
	s := serve(t, nil)
	resp, text := ask(t, "GET", s.URL+"/page/node", "")
	require.Equal(t, http.StatusOK, resp.StatusCode)
	require.Contains(t, text, `"id":1`)
	for _, path := range []string{"/page/do", "/page/token"} {
		for _, method := range []string{"GET", "POST"} {
			resp, _ := ask(t, method, s.URL+path, "{}")
			require.Equal(t, http.StatusNotFound, resp.StatusCode)
		}
	}
}

// A command needs the token, a page of this server as its origin, and a request to this
// machine's address.
func TestCommandsAreProtected(t *testing.T) {
	b := &buttons{}
	s := serve(t, b)
	resp, text := ask(t, "GET", s.URL+"/page/token", "", "Sec-Fetch-Site", "same-origin")
	require.Equal(t, http.StatusOK, resp.StatusCode)
	var got struct{ Token string }
	require.NoError(t, json.Unmarshal([]byte(text), &got))
	require.GreaterOrEqual(t, len(got.Token), 26)
	const kill = `{"do":"kill","node":2}`
	for _, c := range []struct {
		method, path, body, want string
		code                     int
		headers                  []string
	}{
		{"POST", "/page/do", kill, "not the token", 403, nil},
		{"POST", "/page/do", kill, "not the token", 403, []string{tokenHeader, "x"}},
		{"POST", "/page/do", kill, "another site", 403, []string{tokenHeader, got.Token, "Origin", "http://evil.example"}},
		{"POST", "/page/do", kill, "another site", 403, []string{tokenHeader, got.Token, "Sec-Fetch-Site", "cross-site"}},
		{"POST", "/page/do", kill, `by the name \"evil.example:80\"`, 403, []string{tokenHeader, got.Token, "Host", "evil.example:80"}},
		{"GET", "/page/token", "", `by the name \"evil.example\"`, 403, []string{"Host", "evil.example"}},
		{"GET", "/page/token", "", `comes from \"cross-site\"`, 403, []string{"Sec-Fetch-Site", "cross-site"}},
		{"GET", "/page/do", "", "Method Not Allowed", 405, []string{tokenHeader, got.Token}},
		{"POST", "/page/do", `{"do":"kill","x":1}`, `unknown field \"x\"`, 400, []string{tokenHeader, got.Token}},
		{"POST", "/page/do", kill + kill, "more behind the command", 400, []string{tokenHeader, got.Token}},
		{"POST", "/page/do", `{"do":"` + strings.Repeat("x", maxCommand) + `"}`, "at most 4096 bytes", 400, []string{tokenHeader, got.Token}},
	} {
		resp, text := ask(t, c.method, s.URL+c.path, c.body, c.headers...)
		require.Equal(t, c.code, resp.StatusCode, c.want)
		require.Contains(t, text, c.want)
	}
	require.Empty(t, b.got)

	resp, text = ask(t, "POST", s.URL+"/page/do", kill, tokenHeader, got.Token, "Origin", s.URL)
	require.Equal(t, http.StatusOK, resp.StatusCode)
	require.Contains(t, text, `"writes":7`)
	require.Equal(t, []Command{{Do: Kill, Node: 2}}, b.got)
	b.fail = errors.New("it is down already")
	resp, text = ask(t, "POST", s.URL+"/page/do", kill, tokenHeader, got.Token)
	require.Equal(t, http.StatusConflict, resp.StatusCode)
	require.Contains(t, text, "it is down already")
	_, text = ask(t, "GET", s.URL+"/page/state", "")
	require.Contains(t, text, `"controls":{`)
}

// Reports of other nodes come over HTTP, and are not trusted.
func TestPeer(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	s := serve(t, nil)
	n, err := Peer(1, strings.TrimPrefix(s.URL, "http://")).Read(ctx, Ask{Group: 1, UpTo: 3})
	require.NoError(t, err)
	require.EqualValues(t, 1, n.ID)

	for want, answer := range map[string]http.HandlerFunc{
		"no report":                      func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "hello") },
		"503 Service Unavailable: later": func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "later", http.StatusServiceUnavailable) },
		"with a redirect":                func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/elsewhere", http.StatusFound) },
		"more than 1048576 bytes": func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, `{"core":"`+strings.Repeat("x", maxReport)+`"}`)
		},
	} {
		bad := httptest.NewServer(answer)
		_, err := Peer(1, strings.TrimPrefix(bad.URL, "http://")).Read(ctx, Ask{Group: 1})
		require.ErrorContains(t, err, want)
		bad.Close()
	}
	gone := httptest.NewServer(nil)
	gone.Close()
	_, err = Peer(1, strings.TrimPrefix(gone.URL, "http://")).Read(ctx, Ask{Group: 1})
	require.ErrorContains(t, err, "connection refused")
	require.NotContains(t, err.Error(), "/page/node", "a viewer needs no address of a report")
	ended, end := context.WithDeadline(t.Context(), time.Now().Add(-time.Second))
	defer end()
	_, err = Peer(1, "127.0.0.1:1").Read(ended, Ask{Group: 1})
	require.ErrorContains(t, err, "no answer from 127.0.0.1:1 within")
}

func TestOrders(t *testing.T) {
	for _, o := range []Order{{Policy: PolicyFewest}, {Policy: PolicyWhole}, {Peer: 3}, {Peer: 9, Shape: Shape{BytesPerSecond: 1 << 20, DelayMs: 20}}} {
		got, err := ParseOrder(o.String())
		require.NoError(t, err)
		require.Equal(t, o, got)
	}
	for line, want := range map[string]string{
		"":                "want policy NAME, or shape PEER",
		"shape 1 2":       "want policy NAME, or shape PEER",
		"shape 1 0 0 0":   "want policy NAME, or shape PEER",
		"shape -1 0 0":    "want policy NAME, or shape PEER",
		"policy best":     `policy: "best", want one of adaptive, fewest, copies, off`,
		"shape 1 5 0":     "shape.bytesPerSecond: 5, want 0, or 1024 to 1073741824",
		"shape 1 0 99999": "shape.delayMs: 99999, want 0 to 10000",
	} {
		_, err := ParseOrder(line)
		require.ErrorContains(t, err, want, line)
	}
}

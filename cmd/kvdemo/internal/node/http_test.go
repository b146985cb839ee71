// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package node

import (
	"errors"
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// fetch asks until there is an answer with the status code, and returns it.
func fetch(t *testing.T, url string, code int) string {
	t.Helper()
	deadline := time.Now().Add(30 * time.Second)
	for {
		resp, err := http.Get(url)
		if err == nil {
			body, err := io.ReadAll(resp.Body)
			require.NoError(t, errors.Join(err, resp.Body.Close()))
			if resp.StatusCode == code {
				return string(body)
			}
		}
		require.True(t, time.Now().Before(deadline), "no answer %d from %s: %v", code, url, err)
		time.Sleep(10 * time.Millisecond)
	}
}

func TestHTTP(t *testing.T) {
	cfg := testConfig(t)
	cfg.HTTPListen, cfg.Pprof = freePort(t), true
	stop := start(t, cfg)
	url := "http://" + cfg.HTTPListen
	require.Equal(t, "ok\n", fetch(t, url+"/livez", http.StatusOK))
	require.Equal(t, "ok\n", fetch(t, url+"/readyz", http.StatusOK))
	require.NotEmpty(t, fetch(t, url+"/debug/pprof/heap", http.StatusOK))
	metrics := fetch(t, url+"/metrics", http.StatusOK)
	for _, line := range []string{
		"# HELP weft_group_leader 1 if this node leads the group.",
		"# TYPE weft_group_leader gauge",
		`weft_group_leader{group="1"} 1`,
		"# TYPE weft_log_syncs_total counter",
		`weft_stage_busy_seconds_total{group="1",stage="append"}`,
		"# TYPE weft_log_sync_seconds histogram",
		`weft_log_sync_seconds_bucket{le="5e-05"}`,
		"# HELP weft_state_sessions Sessions of clients.",
		`weft_clients_refusals_total{reason="no certificate"} 0`,
		"go_goroutines",
	} {
		require.Contains(t, metrics, line)
	}
	request, err := http.NewRequest("GET", url+"/metrics", nil)
	require.NoError(t, err)
	request.Host = "evil.example"
	resp, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	require.Equal(t, http.StatusForbidden, resp.StatusCode, "a page of another site, whose name points here")
	require.NoError(t, resp.Body.Close())
	require.NoError(t, stop())
}

// Two members of which one is not there: the node is alive, and not ready.
func TestNotReady(t *testing.T) {
	cfg := testConfig(t)
	cfg.Peers[2] = freePort(t)
	cfg.HTTPListen = freePort(t)
	stop := start(t, cfg)
	url := "http://" + cfg.HTTPListen
	require.Contains(t, fetch(t, url+"/readyz", http.StatusServiceUnavailable), "group 1: no leader is known")
	require.Equal(t, "ok\n", fetch(t, url+"/livez", http.StatusOK))
	require.Contains(t, fetch(t, url+"/metrics", http.StatusOK), `weft_group_has_leader{group="1"} 0`)
	fetch(t, url+"/debug/pprof/heap", http.StatusNotFound)
	require.NoError(t, stop())
}

// visitorConn is a connection that only has an address, and counts the open ones.
type visitorConn struct {
	net.Conn
	ip   net.IP
	open *int
}

func (c visitorConn) RemoteAddr() net.Addr { return &net.TCPAddr{IP: c.ip} }
func (c visitorConn) Close() error         { *c.open--; return nil }

// Whoever opens connections and says nothing takes places from its own address only.
func TestVisitorsOverHTTPAreBounded(t *testing.T) {
	n := newNode(testConfig(t))
	require.NoError(t, n.open(t.Context()))
	defer func() { require.NoError(t, n.close()) }()
	state := n.newWeb(http.NotFoundHandler()).ConnState
	prometheus, strangers := 1, 0
	state(&visitorConn{ip: net.IPv4(10, 0, 0, 1), open: &prometheus}, http.StateNew)
	for range 2000 {
		strangers++
		state(&visitorConn{ip: net.IPv4(10, 0, 0, 2), open: &strangers}, http.StateNew)
	}
	require.Equal(t, 511, strangers)
	require.Equal(t, 1, prometheus)
	gone := &visitorConn{ip: net.IPv4(10, 0, 0, 3), open: &strangers}
	state(gone, http.StateNew)
	require.Equal(t, 510, strangers)
	state(gone, http.StateClosed)
	strangers++
	state(&visitorConn{ip: net.IPv4(10, 0, 0, 2), open: &strangers}, http.StateNew)
	require.Equal(t, 511, strangers, "a connection that ends leaves a place")
}

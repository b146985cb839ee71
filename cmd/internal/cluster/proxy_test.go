// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weftraft/weft/internal/lab"
)

// Members of a protocol over HTTP are as far from each other as is said for each pair, and
// a stream that does not end is passed on as it comes.
func TestProxiesDelayRequestsByWhoAsksAndWhoIsAsked(t *testing.T) {
	const way = 30 * time.Millisecond
	network, err := lab.NewNetwork(lab.NetworkConfig{
		Hosts: 3, Kind: lab.Relay, Delay: func(from, to int) time.Duration { return way * time.Duration(max(from-to, to-from)) },
	})
	require.NoError(t, err)
	for i, h := range network.Hosts {
		id := i + 1
		s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			fmt.Fprintf(w, "member %d got %q\n", id, body)
			if r.URL.Path != "/stream" {
				return
			}
			w.(http.Flusher).Flush()
			<-r.Context().Done() // the stream goes on until the other side ends it
		}))
		require.NoError(t, s.Listener.Close())
		s.Listener, err = net.Listen("tcp", h.Listen)
		require.NoError(t, err)
		s.Start()
		t.Cleanup(s.Close)
	}
	proxies, err := startProxies(network.Links, 3)
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, proxies.close())
		require.NoError(t, network.Close())
	})
	client := func(from int) *http.Client {
		at, err := url.Parse(proxies.url(from))
		require.NoError(t, err)
		return &http.Client{Transport: &http.Transport{Proxy: http.ProxyURL(at)}}
	}
	for from := 1; from <= 3; from++ {
		for to := 1; to <= 3; to++ {
			begun := time.Now()
			resp, err := client(from).Post(peerURL(to)+"/raft", "text/plain", strings.NewReader("hello"))
			require.NoError(t, err)
			body, err := io.ReadAll(resp.Body)
			require.NoError(t, err)
			require.NoError(t, resp.Body.Close())
			require.Equal(t, fmt.Sprintf("member %d got \"hello\"\n", to), string(body))
			require.GreaterOrEqual(t, time.Since(begun), 2*way*time.Duration(max(from-to, to-from)), "%d to %d", from, to)
		}
	}
	resp, err := client(1).Get(peerURL(2) + "/stream")
	require.NoError(t, err)
	line, err := bufio.NewReader(resp.Body).ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, "member 2 got \"\"\n", line)
	require.NoError(t, resp.Body.Close())

	for _, bad := range []string{"http://n4" + peerDomain + ":2380", "http://n0" + peerDomain + ":2380", "http://example.com:2380"} {
		resp, err := client(1).Get(bad)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		require.Equal(t, http.StatusBadGateway, resp.StatusCode, bad)
	}
	_, err = memberOf("nx"+peerDomain+":2380", 3)
	require.ErrorContains(t, err, "want n1.weftbench.invalid to n3.weftbench.invalid")
}

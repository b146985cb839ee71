// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package node

import (
	"crypto/tls"
	"io"
	"log/slog"
	"net/http"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weftraft/weft/cmd/kvdemo/internal/client"
	"github.com/weftraft/weft/cmd/kvdemo/internal/kv"
	"github.com/weftraft/weft/cmd/kvdemo/internal/secure"
	"github.com/weftraft/weft/cmd/kvdemo/kvpb"
	"github.com/weftraft/weft/internal/certs"
)

// lockedLog is what a logger has written.
type lockedLog struct {
	mu sync.Mutex
	b  strings.Builder
}

func (l *lockedLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedLog) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// clientNode is a node that clients talk to, and what it says of them.
type clientNode struct {
	cfg Config
	log *lockedLog
}

func startForClients(t *testing.T, files certs.Files) clientNode {
	n := clientNode{testConfig(t), &lockedLog{}}
	n.cfg.TLS, n.cfg.HTTPListen = files, freePort(t)
	n.cfg.Log = slog.New(slog.NewTextHandler(n.log, nil))
	stop := start(t, n.cfg)
	t.Cleanup(func() { require.NoError(t, stop()) })
	require.Eventually(t, func() bool {
		resp, err := http.Get("http://" + n.cfg.HTTPListen + "/livez")
		return err == nil && resp.Body.Close() == nil && resp.StatusCode == http.StatusOK
	}, time.Minute, 5*time.Millisecond)
	return n
}

// refused returns how many clients were refused for a reason, as /metrics has it.
func (n clientNode) refused(t *testing.T, reason string) string {
	resp, err := http.Get("http://" + n.cfg.HTTPListen + "/metrics")
	require.NoError(t, err)
	text, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	found := regexp.MustCompile(`(?m)^weft_clients_refusals_total\{reason="` + reason + `"\} (\d+)$`).FindSubmatch(text)
	require.NotNil(t, found, "no metric of reason %q", reason)
	return string(found[1])
}

// A client that a node refuses, or that refuses a node, hears why at once, whatever
// its deadline is; and the node's log and its metrics tell of it.
func TestClientAndNodeSayWhyTheyDoNotTalk(t *testing.T) {
	ours, others := t.TempDir(), t.TempDir()
	valid := certs.ValidFor(time.Hour)
	node, ann, ops := certs.Subject{Cluster: 3, Node: 1}, certs.Subject{Cluster: 3, Client: "ann"}, certs.Subject{Cluster: 3, Admin: "ops"}
	require.NoError(t, certs.Generate(ours, valid, node, ann, ops, certs.Subject{Cluster: 4, Client: "bob"}))
	require.NoError(t, certs.Generate(others, valid, ann))
	files := certs.NodeFiles(ours, 1)
	stranger := certs.ClientFiles(others, "ann")
	believing := certs.Files{Cert: stranger.Cert, Key: stranger.Key, CA: filepath.Join(ours, "ca.pem")}
	with := func(files certs.Files) *tls.Config {
		cfg, err := secure.Client(files)
		require.NoError(t, err)
		return cfg
	}
	nameless := with(certs.ClientFiles(ours, "ann"))
	nameless.Certificates = nil

	for _, c := range []struct {
		name   string
		node   certs.Files
		tls    *tls.Config
		admin  bool   // an administrator's call
		hears  string // the client
		logs   string // the node
		reason string
	}{
		{"no TLS", files, nil, false, "node 1 wants a certificate: give --tls-cert, --tls-key and --tls-ca", "a client speaks no TLS", "plain or TLS"},
		{"TLS to a plain node", certs.Files{}, with(certs.ClientFiles(ours, "ann")), false, "the node does not speak TLS: leave out --tls-cert, --tls-key and --tls-ca", "a client speaks TLS, this node does not", "plain or TLS"},
		{"no certificate", files, nameless, false, "you show no certificate", "you show no certificate", "no certificate"},
		{"a certificate of another authority", files, with(believing), false, "your certificate: x509: certificate signed by unknown authority", "certificate signed by unknown authority", "certificate"},
		{"another cluster", files, with(certs.ClientFiles(ours, "bob")), false, "the certificate is for node 1 of cluster 3, want one of cluster 4", "the client may not trust", "handshake"},
		{"a client that does not believe the node", files, with(stranger), false, "the node's certificate: x509: certificate signed by unknown authority", "the client may not trust", "handshake"},
		{"a node's certificate", files, with(files), false, "your certificate is for node 1 of cluster 3, a client needs one of its own", "a client needs one of its own", "role"},
		{"a client's certificate for an operator's call", files, with(certs.ClientFiles(ours, "ann")), true, "your certificate is for client ann of cluster 3, this call needs an administrator's", "this call needs an administrator's", "role"},
	} {
		t.Run(c.name, func(t *testing.T) {
			n := startForClients(t, c.node)
			require.Equal(t, "0", n.refused(t, c.reason))
			cl, err := client.New(client.Config{Endpoints: []string{n.cfg.ClientListen}, TLS: c.tls, Timeout: time.Hour})
			require.NoError(t, err)
			defer func() { require.NoError(t, cl.Close()) }()
			// A node that is about to listen refuses connections, too, and is asked again.
			for _, call := range []func() error{
				func() error { _, err := cl.Put(t.Context(), "k", nil); return err },
				func() error { _, err := cl.Get(t.Context(), &kvpb.GetRequest{Key: "k"}); return err },
				func() error {
					return client.AdminAt(t.Context(), cl, kvpb.AdminClient.Members, &kvpb.MembersRequest{})[0].Err
				},
			} {
				if c.admin {
					call = func() error {
						_, err := client.Admin(t.Context(), cl, kvpb.AdminClient.Transfer, &kvpb.TransferRequest{To: 1})
						return err
					}
				}
				err = call()
				require.ErrorContains(t, err, n.cfg.ClientListen)
				require.ErrorContains(t, err, c.hears)
			}
			require.Eventually(t, func() bool { // the node may notice after the client that they do not talk
				text := n.log.String()
				return strings.Contains(text, `msg="client refused"`) && strings.Contains(text, c.logs) && n.refused(t, c.reason) != "0"
			}, time.Minute, 5*time.Millisecond)
		})
	}

	secured := startForClients(t, files)
	for name, cfg := range map[string]*tls.Config{"client": with(certs.ClientFiles(ours, "ann")), "administrator": with(certs.AdminFiles(ours, "ops"))} {
		t.Run("good "+name, func(t *testing.T) {
			cl, err := client.New(client.Config{Endpoints: []string{secured.cfg.ClientListen}, TLS: cfg, Timeout: time.Minute})
			require.NoError(t, err)
			defer func() { require.NoError(t, cl.Close()) }()
			_, err = cl.Put(t.Context(), name, []byte("v"))
			require.NoError(t, err)
			if name == "administrator" {
				_, err = client.Admin(t.Context(), cl, kvpb.AdminClient.Transfer, &kvpb.TransferRequest{To: 1})
				require.NoError(t, err)
			}
			_, err = cl.Get(t.Context(), &kvpb.GetRequest{Key: "nothing"})
			require.ErrorIs(t, err, kv.ErrNotFound)
		})
	}
}

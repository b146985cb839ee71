// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package secure

import (
	"crypto/tls"
	"math/rand/v2"
	"net"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weftraft/weft/internal/certs"
	"github.com/weftraft/weft/internal/strangers"
)

// A node and a client of the same authority and cluster talk; all others are
// refused, with a reason.
func TestTLS(t *testing.T) {
	ours, others := t.TempDir(), t.TempDir()
	valid := certs.ValidFor(time.Hour)
	require.NoError(t, certs.Generate(ours, valid, certs.Subject{Cluster: 5, Node: 1}, certs.Subject{Cluster: 5, Client: "ann"},
		certs.Subject{Cluster: 5, Admin: "ops"}, certs.Subject{Cluster: 6, Client: "bob"}))
	require.NoError(t, certs.Generate(others, valid, certs.Subject{Cluster: 5, Node: 1}, certs.Subject{Cluster: 5, Client: "ann"}))
	client := func(files certs.Files) *tls.Config {
		cfg, err := Client(files)
		require.NoError(t, err)
		cfg.NextProtos = []string{"h2"}
		return cfg
	}
	ann, node := client(certs.ClientFiles(ours, "ann")), certs.NodeFiles(ours, 1)
	stranger := certs.ClientFiles(others, "ann")
	stranger.CA = filepath.Join(ours, "ca.pem")
	for _, c := range []struct {
		name   string
		server certs.Files
		client *tls.Config
		as     string // what the node takes the client for
		want   string // what either has against the other
		why    Refusal
	}{
		{"client", node, ann, "client ann of cluster 5", "", 0},
		{"administrator", node, client(certs.AdminFiles(ours, "ops")), "admin ops of cluster 5", "", 0},
		{"node as client", node, client(node), "", "your certificate is for node 1 of cluster 5, a client needs one of its own", refusedRole},
		{"client of another authority", node, client(stranger), "", "unknown authority", refusedCertificate},
		{"node of another authority", certs.NodeFiles(others, 1), ann, "", "unknown authority", refusedHandshake},
		{"another cluster at the client", node, client(certs.ClientFiles(ours, "bob")), "", "for node 1 of cluster 5, want one of cluster 6", refusedHandshake},
		{"no certificate", node, &tls.Config{InsecureSkipVerify: true}, "", "you show no certificate", refusedNone},
	} {
		t.Run(c.name, func(t *testing.T) {
			keyring, err := certs.NewKeyring(c.server)
			require.NoError(t, err)
			why := []Refusal{}
			info, err := handshake(&Server{Keyring: keyring, Strangers: strangers.New(strangers.Limit, 1, rand.IntN), Refused: func(r Refusal, _ net.Addr, _ error) { why = append(why, r) }}, c.client)
			if c.want == "" {
				require.NoError(t, err)
				require.NoError(t, info.refused)
				require.Equal(t, c.as, info.who.String())
				require.Empty(t, why)
				return
			}
			if err == nil {
				err = info.refused
			} else {
				require.NotNil(t, Explain(err), "the client gives up")
			}
			require.ErrorContains(t, err, c.want)
			require.Equal(t, []Refusal{c.why}, why)
			require.NotEmpty(t, c.why.String())
		})
	}
}

// handshake returns what a node finds out about a client, or what the client has
// against the node.
func handshake(server *Server, client *tls.Config) (info authInfo, err error) {
	a, b := net.Pipe()
	deadline := time.Now().Add(30 * time.Second)
	_, _ = a.SetDeadline(deadline), b.SetDeadline(deadline) // a pipe takes them
	served := make(chan authInfo, 1)
	go func() {
		_, info, err := serverCredentials{server}.ServerHandshake(a)
		if err != nil {
			served <- authInfo{}
		} else {
			served <- info.(authInfo)
		}
	}()
	err = tls.Client(b, client).Handshake()
	if err != nil {
		_ = b.Close() // it is of no use any more
	}
	info = <-served
	_, _ = a.Close(), b.Close() // the same
	return info, err
}

func TestClientFiles(t *testing.T) {
	dir := t.TempDir()
	_, err := Client(certs.ClientFiles(dir, "ann"))
	require.ErrorContains(t, err, "client-ann.pem")
	require.NoError(t, certs.Generate(dir, certs.ValidFor(time.Hour), certs.Subject{Cluster: 5, Client: "ann"}))
	files := certs.ClientFiles(dir, "ann")
	files.CA = files.Key
	_, err = Client(files)
	require.ErrorContains(t, err, "client-ann-key.pem has no certificate")
}

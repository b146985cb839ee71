// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package secure

import (
	"crypto/tls"
	"errors"
	"net"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weftraft/weft/rawnode/transport/certs"
)

// A node and a client of the same authority and cluster talk; all others are
// refused, with a reason.
func TestTLS(t *testing.T) {
	ours, others := t.TempDir(), t.TempDir()
	valid := certs.ValidFor(time.Hour)
	require.NoError(t, certs.Generate(ours, valid, certs.Subject{Cluster: 5, Node: 1}, certs.Subject{Cluster: 5, Client: "ann"}, certs.Subject{Cluster: 6, Client: "bob"}))
	require.NoError(t, certs.Generate(others, valid, certs.Subject{Cluster: 5, Node: 1}, certs.Subject{Cluster: 5, Client: "ann"}))
	server := func(files certs.Files) *tls.Config {
		keyring, err := certs.NewKeyring(files)
		require.NoError(t, err)
		return Server(keyring)
	}
	client := func(files certs.Files) *tls.Config {
		cfg, err := Client(files)
		require.NoError(t, err)
		return cfg
	}
	ann := client(certs.ClientFiles(ours, "ann"))
	asClient := server(certs.NodeFiles(ours, 1)) // a client that says it is a node
	asClient.GetCertificate = func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return &ann.Certificates[0], nil }
	for _, c := range []struct {
		name           string
		server, client *tls.Config
		want           string
	}{
		{"good", server(certs.NodeFiles(ours, 1)), ann, ""},
		{"node as client", server(certs.NodeFiles(ours, 1)), client(certs.NodeFiles(ours, 1)), ""},
		{"client of another authority", server(certs.NodeFiles(ours, 1)), client(certs.Files{Cert: certs.ClientFiles(others, "ann").Cert, Key: certs.ClientFiles(others, "ann").Key, CA: filepath.Join(ours, "ca.pem")}), "unknown authority"},
		{"node of another authority", server(certs.NodeFiles(others, 1)), ann, "unknown authority"},
		{"another cluster", server(certs.NodeFiles(ours, 1)), client(certs.ClientFiles(ours, "bob")), "for cluster"},
		{"no certificate", server(certs.NodeFiles(ours, 1)), &tls.Config{InsecureSkipVerify: true}, "certificate"},
		{"no node", asClient, ann, "incompatible key usage"},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := handshake(c.server, c.client)
			if c.want == "" {
				require.NoError(t, err)
			} else {
				require.ErrorContains(t, err, c.want)
			}
		})
	}
}

// handshake returns what either end has against the other.
func handshake(server, client *tls.Config) error {
	a, b := net.Pipe()
	deadline := time.Now().Add(30 * time.Second)
	_, _ = a.SetDeadline(deadline), b.SetDeadline(deadline) // a pipe takes them
	served := make(chan error, 1)
	go func() {
		served <- tls.Server(a, server).Handshake()
		_ = a.Close() // whatever it was
	}()
	err := tls.Client(b, client).Handshake()
	_ = b.Close()
	if s := <-served; s != nil && (err == nil || isRemote(err)) {
		return s
	}
	return err
}

// isRemote reports whether an error only says that the other end has one.
func isRemote(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "remote error"
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

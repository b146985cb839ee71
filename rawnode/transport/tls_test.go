// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package transport

import (
	"crypto/tls"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weftraft/weft/internal/certs"
	"github.com/weftraft/weft/internal/wire"
)

// generate makes certificates of cluster 5 in a directory of their own.
func generate(t *testing.T, v certs.Validity, nodes ...uint64) (dir string) {
	dir = t.TempDir()
	generateIn(t, dir, v, 5, nodes...)
	return dir
}

func generateIn(t *testing.T, dir string, v certs.Validity, cluster uint64, nodes ...uint64) {
	for _, id := range nodes {
		require.NoError(t, certs.Generate(dir, v, certs.Subject{Cluster: cluster, Node: id}))
	}
}

// eventually waits until a condition holds.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	deadline := time.Now().Add(patience)
	for !holds() {
		if time.Now().After(deadline) {
			t.Fatalf("it never comes true that %s", what)
		}
		time.Sleep(time.Millisecond)
	}
}

// deliver sends heartbeats until one arrives.
func deliver(t *testing.T, from *TCP, to *inbox, m wire.Message) {
	t.Helper()
	eventually(t, "a message arrives", func() bool {
		from.Send([]wire.Message{m})
		select {
		case <-to.got:
			return true
		case <-time.After(2 * time.Millisecond):
			return false
		}
	})
}

func TestTLS(t *testing.T) {
	dir := generate(t, certs.ValidFor(time.Hour), 1, 2)
	la, lb := listen(t), listen(t)
	peers := map[uint64]string{1: la.Addr().String(), 2: lb.Addr().String()}
	a, boxA := start(t, Config{Node: 1, Listener: la, Peers: peers, TLS: certs.NodeFiles(dir, 1)})
	b, boxB := start(t, Config{Node: 2, Listener: lb, Peers: peers, TLS: certs.NodeFiles(dir, 2)})
	for i := range uint64(50) {
		a.Send([]wire.Message{appends(1, 2, i, int(i)*10_000)})
	}
	for i := range uint64(50) {
		require.Equal(t, i, boxB.next(t).Body.(wire.Raft).GetIndex())
	}
	b.Send([]wire.Message{heartbeat(2, 1)})
	boxA.next(t)
	require.WithinDuration(t, time.Now().Add(time.Hour), a.Stats().CertificateExpiry, time.Minute)

	// A replaced certificate is used for the next connection.
	first := a.Stats().CertificateExpiry
	require.NoError(t, os.Remove(certs.NodeFiles(dir, 1).Cert))
	require.NoError(t, os.Remove(certs.NodeFiles(dir, 1).Key))
	a.RemovePeer(2)
	a.SetPeer(2, peers[2])
	deliver(t, a, boxB, heartbeat(1, 2)) // with the certificate from before
	require.NotZero(t, a.Stats().CertificateErrors)
	generateIn(t, dir, certs.ValidFor(2*time.Hour), 5, 1)
	a.RemovePeer(2)
	a.SetPeer(2, peers[2])
	deliver(t, a, boxB, heartbeat(1, 2))
	require.True(t, a.Stats().CertificateExpiry.After(first))
}

// Each mismatch is refused, says so at both ends, is counted, and ends in time.
func TestTLSRefusals(t *testing.T) {
	dir, foreign := generate(t, certs.ValidFor(time.Hour), 1, 2, 3), generate(t, certs.ValidFor(time.Hour), 1, 2)
	good := certs.NodeFiles(dir, 1)
	// A certificate of another authority, whose owner believes both authorities.
	trusting := certs.NodeFiles(foreign, 2)
	trusting.CA = filepath.Join(foreign, "both.pem")
	require.NoError(t, os.WriteFile(trusting.CA, append(readFile(t, good.CA), readFile(t, certs.NodeFiles(foreign, 2).CA)...), 0o600))
	// The same authority, another cluster.
	cluster6 := t.TempDir()
	for _, name := range []string{"ca.pem", "ca-key.pem"} {
		require.NoError(t, os.WriteFile(filepath.Join(cluster6, name), readFile(t, filepath.Join(dir, name)), 0o600))
	}
	generateIn(t, cluster6, certs.ValidFor(time.Hour), 6, 2)

	for _, c := range []struct {
		name           string
		server, dialer certs.Files
		cluster        uint64        // of the dialer
		later          time.Duration // by so much the server's clock is ahead
		reason         refusalReason
		wants          string // what the dialer finds, or is told
	}{
		{name: "plain to TLS", server: good, reason: refusedPlain, wants: "refused by node 1 at ADDR: node 1 wants TLS, you do not speak it"},
		{name: "TLS to plain", dialer: certs.NodeFiles(dir, 2), reason: refusedPlain, wants: "node 1 at ADDR does not speak TLS, this node does"},
		{name: "another authority at the dialer", server: good, dialer: trusting, reason: refusedCertificate,
			wants: "refused by node 1 at ADDR: your certificate: certs: invalid: the certificate is not signed by an authority in the CA file"},
		{name: "another authority at both", server: good, dialer: certs.NodeFiles(foreign, 2), reason: refusedCertificate,
			wants: "the certificate of the other end: certs: invalid: the certificate is not signed by an authority in the CA file"},
		{name: "another node at the dialer", server: good, dialer: certs.NodeFiles(dir, 3), reason: refusedCertificate,
			wants: "your certificate is for node 3 of cluster 5, you say that you are node 2 of cluster 5"},
		{name: "another node at the server", server: certs.NodeFiles(dir, 3), dialer: certs.NodeFiles(dir, 2), reason: refusedCertificate,
			wants: "the certificate is for node 3 of cluster 5, want node 1 of cluster 5"},
		{name: "another cluster", server: good, dialer: certs.NodeFiles(cluster6, 2), cluster: 6, reason: refusedCertificate,
			wants: "the certificate is for node 1 of cluster 5, want node 1 of cluster 6"},
		{name: "another cluster in the hello only", server: good, dialer: certs.NodeFiles(cluster6, 2), reason: refusedCertificate,
			wants: "your certificate is for node 2 of cluster 6, you say that you are node 2 of cluster 5"},
		{name: "expired", server: good, dialer: certs.NodeFiles(dir, 2), later: 2 * time.Hour, reason: refusedCertificate,
			wants: "refused by node 1 at ADDR: your certificate: certs: invalid: the certificate has expired at "},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := listen(t)
			address := l.Addr().String()
			server, inside := startWith(t, Config{Node: 1, Listener: l, Peers: map[uint64]string{2: "", 3: ""}}, c.server, c.later)
			dialer, box := startWith(t, Config{Cluster: c.cluster, Node: 2, Listen: "127.0.0.1:0", Peers: map[uint64]string{1: address}}, c.dialer, 0)
			dialer.Send([]wire.Message{heartbeat(2, 1)})
			require.Equal(t, uint64(1), box.unreachable(t))
			got := dialer.Stats().Peers[1][wire.ClassControl]
			require.Contains(t, got.Error, strings.ReplaceAll(c.wants, "ADDR", address))
			require.NotZero(t, got.DialFailures)
			require.NotZero(t, got.Dropped[dropDial.String()])
			eventually(t, "the server counts it as "+c.reason.String(), func() bool { return server.Stats().Refusals[c.reason.String()] > 0 })
			require.Empty(t, inside.got)
			eventually(t, "nobody waits", func() bool { return server.Stats().Strangers == 0 })
		})
	}
}

func readFile(t *testing.T, name string) []byte {
	b, err := os.ReadFile(name)
	require.NoError(t, err)
	return b
}

// startWith starts a node with any certificate, also one that New would refuse.
func startWith(t *testing.T, cfg Config, files certs.Files, later time.Duration) (*TCP, *inbox) {
	if cfg.Cluster == 0 {
		cfg.Cluster = 5
	}
	cfg.DialTimeout = patience
	require.NoError(t, cfg.Validate())
	var keys *certs.Keyring
	if files != (certs.Files{}) {
		var err error
		keys, err = certs.NewKeyring(files)
		require.NoError(t, err)
	}
	tr, err := open(cfg, keys, func() time.Time { return time.Now().Add(later) })
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, tr.Close()) })
	box := newInbox()
	require.NoError(t, tr.Join(1, box))
	return tr, box
}

// A client's certificate opens nothing, and neither does none.
func TestTLSStrangers(t *testing.T) {
	dir := generate(t, certs.ValidFor(time.Hour), 1, 2)
	require.NoError(t, certs.Generate(dir, certs.ValidFor(time.Hour), certs.Subject{Cluster: 5, Client: "ann"}))
	a, box := start(t, Config{Node: 1, Listen: "127.0.0.1:0", Peers: map[uint64]string{2: ""}, TLS: certs.NodeFiles(dir, 1)})
	client, err := tls.LoadX509KeyPair(certs.ClientFiles(dir, "ann").Cert, certs.ClientFiles(dir, "ann").Key)
	require.NoError(t, err)
	say := func(own ...tls.Certificate) (wire.Answer, error) {
		c, err := tls.Dial("tcp", a.Addr().String(), &tls.Config{InsecureSkipVerify: true, Certificates: own})
		require.NoError(t, err)          // with TLS 1.3 the dialer is done before the server has looked
		defer func() { _ = c.Close() }() // the server may have done so
		require.NoError(t, c.SetDeadline(time.Now().Add(patience)))
		require.NoError(t, wire.Hello{Cluster: 5, Node: 2, Peer: 1}.Write(c))
		return wire.ReadAnswer(c)
	}
	answer, err := say(client)
	require.NoError(t, err)
	require.Contains(t, answer.Refused, `the certificate is for "weft://cluster/5/client/ann"`)
	_, err = say()
	require.ErrorContains(t, err, "certificate required")
	_, err = tls.Dial("tcp", a.Addr().String(), &tls.Config{InsecureSkipVerify: true, MaxVersion: tls.VersionTLS12})
	require.ErrorContains(t, err, "protocol version")
	eventually(t, "all three are counted", func() bool { return a.Stats().Refusals[refusedCertificate.String()] == 3 })
	require.Empty(t, box.got)

	// A node is not started with a certificate of another one.
	_, err = New(Config{Cluster: 5, Node: 2, Listen: "127.0.0.1:0", TLS: certs.NodeFiles(dir, 1)})
	require.ErrorIs(t, err, ErrInvalid)
	require.ErrorContains(t, err, "node-1.pem is for node 1 of cluster 5, this is node 2 of cluster 5")
	_, err = New(Config{Cluster: 5, Node: 2, Listen: "127.0.0.1:0", TLS: certs.Files{Cert: "x"}})
	require.ErrorContains(t, err, "TLS: certs: invalid: no CA file is given")
}

// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package certs

import (
	"crypto/tls"
	"crypto/x509"
	"net/url"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func nodes(ids ...uint64) (s []Subject) {
	for _, id := range ids {
		s = append(s, Subject{Cluster: 5, Node: id})
	}
	return s
}

func TestGenerate(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "certs")
	require.NoError(t, Generate(dir, ValidFor(time.Hour), nodes(1, 2)...))
	require.NoError(t, Generate(dir, ValidFor(time.Minute), nodes(3)...), "by the authority that is there")
	var all []*Credentials
	for node := range uint64(3) {
		c, err := NodeFiles(dir, node+1).Load(time.Now())
		require.NoError(t, err)
		require.Equal(t, Identity{Cluster: 5, Node: node + 1}, c.Identity)
		all = append(all, c)
		info, err := os.Stat(NodeFiles(dir, node+1).Key)
		require.NoError(t, err)
		require.Equal(t, os.FileMode(0o600), info.Mode())
	}
	id, err := all[0].Verify([]*x509.Certificate{all[1].Certificate.Leaf}, x509.ExtKeyUsageClientAuth, time.Now())
	require.NoError(t, err)
	require.Equal(t, uint64(2), id.Node)
	require.ErrorContains(t, Generate(dir, ValidFor(time.Hour), nodes(2)...), "node-2.pem is there already; remove it to make a new one")
	require.ErrorContains(t, Generate(dir, ValidFor(time.Hour), nodes(0)...), "Node is 0, Client is \"\" and Admin is \"\", want one of them")

	other := t.TempDir()
	require.NoError(t, Generate(other, ValidFor(time.Hour), nodes(1)...))
	require.NoError(t, os.Rename(filepath.Join(other, caKeyFile), filepath.Join(dir, caKeyFile)))
	require.ErrorContains(t, Generate(dir, ValidFor(time.Hour), nodes(4)...), "ca-key.pem is not the key of ")
	require.ErrorContains(t, Generate(other, ValidFor(time.Hour), nodes(4)...), "ca-key.pem: no such file")
}

// A client's certificate is good for a client, and for nothing else.
func TestClientCertificates(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, Generate(dir, ValidFor(time.Hour), Subject{Cluster: 5, Client: "ann-2"},
		Subject{Cluster: 5, Node: 1, Hosts: []string{"127.0.0.1", "node1.example"}}))
	node, err := NodeFiles(dir, 1).Load(time.Now())
	require.NoError(t, err)
	require.NoError(t, node.Certificate.Leaf.VerifyHostname("node1.example"))
	require.NoError(t, node.Certificate.Leaf.VerifyHostname("127.0.0.1"))
	client, err := tls.LoadX509KeyPair(ClientFiles(dir, "ann-2").Cert, ClientFiles(dir, "ann-2").Key)
	require.NoError(t, err)
	_, err = client.Leaf.Verify(x509.VerifyOptions{Roots: node.Roots(), KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
	require.NoError(t, err)
	chain := []*x509.Certificate{client.Leaf}
	_, err = node.Verify(chain, x509.ExtKeyUsageServerAuth, time.Now())
	require.ErrorContains(t, err, "incompatible key usage")
	_, err = node.Verify(chain, x509.ExtKeyUsageClientAuth, time.Now())
	require.ErrorContains(t, err, `is for "weft://cluster/5/client/ann-2", want weft://cluster/<number>/node/<number>`)
	require.NoError(t, Generate(dir, ValidFor(time.Hour), Subject{Cluster: 5, Admin: "ops"}))
	admin, err := tls.LoadX509KeyPair(AdminFiles(dir, "ops").Cert, AdminFiles(dir, "ops").Key)
	require.NoError(t, err)
	require.Equal(t, "weft://cluster/5/admin/ops", admin.Leaf.URIs[0].String())
	for want, s := range map[string]Subject{
		"Cluster is 0":         {Node: 1},
		`the client is "../x"`: {Cluster: 5, Client: "../x"},
		`the admin is "a b"`:   {Cluster: 5, Admin: "a b"},
		"want one of them":     {Cluster: 5, Client: "x", Node: 2},
		`Admin is "y", want `:  {Cluster: 5, Client: "x", Admin: "y"},
		`Client is "" and `:    {Cluster: 5},
		"want up to 64 small ": {Cluster: 5, Client: "Ann"},
	} {
		require.ErrorContains(t, Generate(dir, ValidFor(time.Hour), s), want)
	}
}

// A certificate ends with its authority, also if it was renewed since, and says so before and afterwards.
func TestCertificateEndsWithItsAuthority(t *testing.T) {
	dir, now := t.TempDir(), time.Now()
	require.NoError(t, Generate(dir, ValidFor(time.Hour), nodes(1)...))
	ca, err := authority(dir, Validity{})
	require.NoError(t, err)
	require.Greater(t, ca.cert.NotAfter.Sub(now), 9*365*24*time.Hour)
	c, err := NodeFiles(dir, 1).Load(now)
	require.NoError(t, err)
	require.WithinDuration(t, now.Add(time.Hour), c.NotAfter, time.Minute)
	require.ErrorContains(t, Generate(dir, ValidFor(11*365*24*time.Hour), nodes(2)...), "make it good for fewer days, or make a new authority")

	early := *ca.cert
	early.NotAfter = now.Add(time.Minute)
	cert, err := sign(&early, &early, ca.key, ca.key)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, caFile), encodeCert(cert), 0o600))
	c, err = NodeFiles(dir, 1).Load(now)
	require.NoError(t, err)
	require.WithinDuration(t, early.NotAfter, c.NotAfter, time.Second)
	_, err = NodeFiles(dir, 1).Load(now.Add(2 * time.Minute))
	require.ErrorContains(t, err, `the certificate of its authority "CN=Weft" is good from`)
}

// A keyring follows its files, and keeps what it has while they are no good.
func TestKeyring(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, Generate(dir, ValidFor(time.Hour), nodes(1)...))
	k, err := NewKeyring(NodeFiles(dir, 1))
	require.NoError(t, err)
	first, err := k.Current()
	require.NoError(t, err)
	again, err := k.Current()
	require.NoError(t, err)
	require.Same(t, first, again)

	require.NoError(t, os.Remove(NodeFiles(dir, 1).Cert))
	kept, err := k.Current()
	require.Same(t, first, kept)
	require.ErrorContains(t, err, "node-1.pem: no such file")
	require.NoError(t, os.Remove(NodeFiles(dir, 1).Key))
	require.NoError(t, Generate(dir, ValidFor(2*time.Hour), nodes(1)...))
	second, err := k.Current()
	require.NoError(t, err)
	require.True(t, second.NotAfter.After(first.NotAfter))

	// Another node's certificate is not taken.
	require.NoError(t, Generate(dir, ValidFor(2*time.Hour), nodes(2)...))
	require.NoError(t, os.Rename(NodeFiles(dir, 2).Cert, NodeFiles(dir, 1).Cert))
	require.NoError(t, os.Rename(NodeFiles(dir, 2).Key, NodeFiles(dir, 1).Key))
	kept, err = k.Current()
	require.Same(t, second, kept)
	require.ErrorContains(t, err, "is for node 2 of cluster 5, the one in use is for node 1 of cluster 5")
	_, err = NewKeyring(NodeFiles(dir, 7))
	require.ErrorIs(t, err, ErrInvalid)
}

// Each mistake is named, with the file it is in.
func TestLoadSaysWhatIsWrong(t *testing.T) {
	dir, other := t.TempDir(), t.TempDir()
	require.NoError(t, Generate(dir, ValidFor(time.Hour), nodes(1, 2)...))
	require.NoError(t, Generate(other, ValidFor(time.Hour), nodes(1)...))
	good, foreign := NodeFiles(dir, 1), NodeFiles(other, 1)
	garbage, large := filepath.Join(dir, "garbage"), filepath.Join(dir, "large")
	require.NoError(t, os.WriteFile(garbage, []byte("certainly"), 0o600))
	require.NoError(t, os.WriteFile(large, make([]byte, maxFile+1), 0o600))
	damaged := filepath.Join(dir, "damaged")
	require.NoError(t, os.WriteFile(damaged, []byte("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"), 0o600))
	now := time.Now()
	for want, c := range map[string]struct {
		files Files
		at    time.Time
	}{
		"no key file is given": {Files{Cert: good.Cert, CA: good.CA}, now},
		"certificate file: stat /nowhere/cert.pem: no such file":   {Files{Cert: "/nowhere/cert.pem", Key: good.Key, CA: good.CA}, now},
		"CA file: stat /nowhere/ca.pem: no such file":              {Files{Cert: good.Cert, Key: good.Key, CA: "/nowhere/ca.pem"}, now},
		"it is no file of at most":                                 {Files{Cert: dir, Key: good.Key, CA: good.CA}, now},
		"large: it is no file of at most":                          {Files{Cert: good.Cert, Key: large, CA: good.CA}, now},
		"garbage: there is nothing in PEM format in it":            {Files{Cert: good.Cert, Key: garbage, CA: good.CA}, now},
		"damaged: x509: malformed certificate":                     {Files{Cert: damaged, Key: good.Key, CA: good.CA}, now},
		"node-1-key.pem: it has a PRIVATE KEY where a CERTIFICATE": {Files{Cert: good.Key, Key: good.Key, CA: good.CA}, now},
		"node-2-key.pem for certificate file " + good.Cert:         {Files{Cert: good.Cert, Key: NodeFiles(dir, 2).Key, CA: good.CA}, now},
		"is not a certificate of an authority":                     {Files{Cert: good.Cert, Key: good.Key, CA: good.Cert}, now},
		"is not signed by an authority in the CA file":             {Files{Cert: good.Cert, Key: good.Key, CA: foreign.CA}, now},
		"the certificate has expired at ":                          {good, now.Add(2 * time.Hour)},
		"the certificate is not valid before ":                     {good, now.Add(-2 * time.Hour)},
	} {
		t.Run(want, func(t *testing.T) {
			_, err := c.files.Load(c.at)
			require.ErrorIs(t, err, ErrInvalid)
			require.ErrorContains(t, err, want)
		})
	}
}

func TestIdentity(t *testing.T) {
	id := Identity{Cluster: 5, Node: 1<<64 - 1}
	require.Equal(t, "weft://cluster/5/node/18446744073709551615", id.URI().String())
	parse := func(names ...string) (Identity, error) {
		var c x509.Certificate
		for _, name := range names {
			uri, err := url.Parse(name)
			require.NoError(t, err)
			c.URIs = append(c.URIs, uri)
		}
		return identityOf(&c)
	}
	got, err := parse("spiffe://other/name", id.URI().String())
	require.NoError(t, err, "names for other programs are left alone")
	require.Equal(t, id, got)
	for _, bad := range []string{
		"weft://cluster/5/node/0", "weft://cluster/0/node/1", "weft://cluster/5/node/01", "weft://cluster/5/node/+1", "weft://cluster/5/node/1/",
		"weft://cluster/5/node/1?x", "weft://cluster/5/node/18446744073709551616", "weft://other/5/node/1", "weft://cluster/5/gateway/1", "weft:5", "weft://u@cluster/5/node/1",
	} {
		_, err := parse(bad)
		require.ErrorIs(t, err, ErrInvalid, bad)
	}
	_, err = parse()
	require.ErrorContains(t, err, "names 0 nodes")
	_, err = parse("weft://cluster/5/node/1", "weft://cluster/5/node/2")
	require.ErrorContains(t, err, "names 2 nodes")
}

// FuzzIdentity gives a certificate any name.
func FuzzIdentity(f *testing.F) {
	f.Add("weft://cluster/5/node/2")
	f.Fuzz(func(t *testing.T, name string) {
		uri, err := url.Parse(name)
		if err != nil {
			return
		}
		if id, err := identityOf(&x509.Certificate{URIs: []*url.URL{uri}}); err == nil {
			require.Equal(t, uri.String(), id.URI().String())
		}
	})
}

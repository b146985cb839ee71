// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package certs

import (
	"crypto/x509"
	"net/url"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestGenerate(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "certs")
	require.NoError(t, Generate(dir, 5, []uint64{1, 2}, ValidFor(time.Hour)))
	require.NoError(t, Generate(dir, 5, []uint64{3}, ValidFor(time.Minute)), "by the authority that is there")
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
	require.ErrorContains(t, Generate(dir, 5, []uint64{2}, ValidFor(time.Hour)), "node-2.pem is there already; remove it to make a new one")
	require.ErrorContains(t, Generate(dir, 5, []uint64{0}, ValidFor(time.Hour)), "want numbers of 1 or more")

	other := t.TempDir()
	require.NoError(t, Generate(other, 5, []uint64{1}, ValidFor(time.Hour)))
	require.NoError(t, os.Rename(filepath.Join(other, caKeyFile), filepath.Join(dir, caKeyFile)))
	require.ErrorContains(t, Generate(dir, 5, []uint64{4}, ValidFor(time.Hour)), "ca-key.pem is not the key of ")
	require.ErrorContains(t, Generate(other, 5, []uint64{4}, ValidFor(time.Hour)), "ca-key.pem: no such file")
}

// Each mistake is named, with the file it is in.
func TestLoadSaysWhatIsWrong(t *testing.T) {
	dir, other := t.TempDir(), t.TempDir()
	require.NoError(t, Generate(dir, 5, []uint64{1, 2}, ValidFor(time.Hour)))
	require.NoError(t, Generate(other, 5, []uint64{1}, ValidFor(time.Hour)))
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
		return IdentityOf(&c)
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
		if id, err := IdentityOf(&x509.Certificate{URIs: []*url.URL{uri}}); err == nil {
			require.Equal(t, uri.String(), id.URI().String())
		}
	})
}

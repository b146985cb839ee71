// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

// Package secure is mutual TLS between kvdemo's clients and nodes. Both show
// certificates of package certs: a node its own, which it also shows its peers,
// a client one for clients. Each wants the other to be of its own cluster. Names
// of machines are not looked at.
package secure

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"regexp"
	"time"

	"github.com/weftraft/weft/rawnode/transport/certs"
)

// ErrInvalid wraps what is wrong with a certificate or a file.
var ErrInvalid = errors.New("TLS")

// Server returns how a node talks to clients. The files behind the keyring may
// change while it runs.
func Server(keyring *certs.Keyring) *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS13,
		ClientAuth: tls.RequireAnyClientCert, // VerifyConnection looks at it
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
			own, err := keyring.Current()
			if err != nil {
				return nil, err
			}
			return &own.Certificate, nil
		},
		VerifyConnection: func(state tls.ConnectionState) error {
			own, err := keyring.Current()
			if err != nil {
				return err
			}
			return verify(state.PeerCertificates, own.Roots(), x509.ExtKeyUsageClientAuth, own.Identity.Cluster, anybody)
		},
	}
}

// Client returns how a client talks to nodes, and errors that name the file.
func Client(files certs.Files) (*tls.Config, error) {
	pair, err := tls.LoadX509KeyPair(files.Cert, files.Key)
	if err != nil {
		return nil, fmt.Errorf("%w: certificate %s with key %s: %w", ErrInvalid, files.Cert, files.Key, err)
	}
	pem, err := os.ReadFile(files.CA)
	if err != nil {
		return nil, fmt.Errorf("%w: authorities: %w", ErrInvalid, err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("%w: authorities: %s has no certificate in PEM", ErrInvalid, files.CA)
	}
	cluster, _, err := nameOf(pair.Leaf)
	if err != nil {
		return nil, fmt.Errorf("certificate %s: %w", files.Cert, err)
	}
	return &tls.Config{
		MinVersion:   tls.VersionTLS13,
		Certificates: []tls.Certificate{pair},
		// The names that the system would look at are those of machines;
		// VerifyConnection looks at everything else.
		InsecureSkipVerify: true,
		VerifyConnection: func(state tls.ConnectionState) error {
			return verify(state.PeerCertificates, roots, x509.ExtKeyUsageServerAuth, cluster, nodesOnly)
		},
	}, nil
}

// Whom the other end may be.
const (
	anybody   = ""
	nodesOnly = "node"
)

// verify checks the other end's certificates, its own first.
func verify(chain []*x509.Certificate, roots *x509.CertPool, usage x509.ExtKeyUsage, cluster uint64, kind string) error {
	if len(chain) == 0 {
		return fmt.Errorf("%w: the other end has no certificate", ErrInvalid)
	}
	between := x509.NewCertPool()
	for _, c := range chain[1:] {
		between.AddCert(c)
	}
	_, err := chain[0].Verify(x509.VerifyOptions{
		Roots: roots, Intermediates: between, CurrentTime: time.Now(), KeyUsages: []x509.ExtKeyUsage{usage},
	})
	if err != nil {
		return fmt.Errorf("%w: the other end's certificate: %w", ErrInvalid, err)
	}
	theirs, is, err := nameOf(chain[0])
	switch {
	case err != nil:
		return fmt.Errorf("the other end: %w", err)
	case theirs != cluster:
		return fmt.Errorf("%w: the other end's certificate is for cluster %d, this is cluster %d", ErrInvalid, theirs, cluster)
	case kind != anybody && is != kind:
		return fmt.Errorf("%w: the other end's certificate is for a %s, want one for a %s", ErrInvalid, is, kind)
	}
	return nil
}

var name = regexp.MustCompile(`^weft://cluster/([0-9]{1,20})/(node|client)/[a-z0-9-]+$`)

// nameOf returns the cluster of a certificate and whether it is for a node or a
// client.
func nameOf(cert *x509.Certificate) (cluster uint64, kind string, err error) {
	for _, uri := range cert.URIs {
		m := name.FindStringSubmatch(uri.String())
		if m == nil {
			continue
		}
		if _, err := fmt.Sscan(m[1], &cluster); err == nil {
			return cluster, m[2], nil
		}
	}
	return 0, "", fmt.Errorf("%w: the certificate names no node and no client: want a URI such as weft://cluster/1/client/ann", ErrInvalid)
}

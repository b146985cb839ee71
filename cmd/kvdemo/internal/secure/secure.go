// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

// Package secure is mutual TLS between kvdemo's clients and nodes. Both ends show
// certificates of package certs: a node shows the certificate that its peers also
// see, a client shows a client's certificate, or an administrator's for changes of
// the cluster. Each end requires that the other belongs to its own cluster. Names of
// machines are not checked.
//
// If a connection is refused, both ends give the reason. A failed handshake could
// tell the other end only a word or two; therefore a node checks a client's
// certificate after the handshake, and refuses the calls: see [Server].
package secure

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"regexp"
	"time"

	"github.com/weftraft/weft/internal/certs"
)

// ErrInvalid wraps a mistake in a certificate or a file, or the reason why a node and a
// client refuse each other. Trying again does not help.
var ErrInvalid = errors.New("TLS")

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
	own, err := nameOf(pair.Leaf)
	if err != nil {
		return nil, fmt.Errorf("certificate %s: %w", files.Cert, err)
	}
	return &tls.Config{
		MinVersion:   tls.VersionTLS13,
		Certificates: []tls.Certificate{pair},
		// The standard check would compare names of machines; VerifyConnection
		// checks everything else.
		InsecureSkipVerify: true,
		VerifyConnection: func(state tls.ConnectionState) error {
			who, err := verify(state.PeerCertificates, roots, x509.ExtKeyUsageServerAuth)
			switch {
			case err != nil:
			case who.role != node:
				err = fmt.Errorf("the certificate is for %v, want one for a node", who)
			case who.cluster != own.cluster:
				err = fmt.Errorf("the certificate is for %v, want one of cluster %d", who, own.cluster)
			default:
				return nil
			}
			return fmt.Errorf("%w: the node's certificate: %w", ErrInvalid, err)
		},
	}, nil
}

// Explain returns in a client's words why a handshake failed, or nil if that may be
// another time.
func Explain(err error) error {
	var record tls.RecordHeaderError
	var op *net.OpError
	switch {
	case errors.Is(err, ErrInvalid):
		return err
	case errors.As(err, &record):
		return fmt.Errorf("%w: the node does not speak TLS: leave out --tls-cert, --tls-key and --tls-ca", ErrInvalid)
	case errors.As(err, &op) && op.Op == "remote error":
		return fmt.Errorf("%w: the node ended the handshake: %w", ErrInvalid, err)
	}
	return nil
}

// The roles that certificates are for.
const (
	node   = "node"
	client = "client"
	admin  = "admin"
)

// who is the holder of a certificate.
type who struct {
	cluster    uint64
	role, name string
}

// String says it in words.
func (w who) String() string { return fmt.Sprintf("%s %s of cluster %d", w.role, w.name, w.cluster) }

// verify checks the other end's certificates, its own first, and returns its holder.
func verify(chain []*x509.Certificate, roots *x509.CertPool, usage x509.ExtKeyUsage) (who, error) {
	if len(chain) == 0 {
		return who{}, errors.New("there is none")
	}
	between := x509.NewCertPool()
	for _, c := range chain[1:] {
		between.AddCert(c)
	}
	_, err := chain[0].Verify(x509.VerifyOptions{
		Roots: roots, Intermediates: between, CurrentTime: time.Now(), KeyUsages: []x509.ExtKeyUsage{usage},
	})
	if err != nil {
		return who{}, err
	}
	return nameOf(chain[0])
}

var name = regexp.MustCompile(`^weft://cluster/([0-9]{1,20})/(node|client|admin)/([a-z0-9-]+)$`)

// nameOf returns the holder of a certificate.
func nameOf(cert *x509.Certificate) (w who, err error) {
	for _, uri := range cert.URIs {
		m := name.FindStringSubmatch(uri.String())
		if m == nil {
			continue
		}
		if _, err := fmt.Sscan(m[1], &w.cluster); err == nil {
			w.role, w.name = m[2], m[3]
			return w, nil
		}
	}
	return who{}, fmt.Errorf("%w: the certificate names no node and no client: want a URI such as weft://cluster/1/client/ann", ErrInvalid)
}

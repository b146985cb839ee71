// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package certs

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"os"
	"time"
)

// Files names the files of a node.
type Files struct {
	Cert string // the node's certificate, and intermediates behind it, if any
	Key  string // its private key
	CA   string // the authorities whose certificates are believed
}

// Credentials are what a node shows to others, and what it believes of them.
type Credentials struct {
	// Certificate is the node's own.
	Certificate tls.Certificate
	// Identity is the node that it names.
	Identity Identity
	// NotAfter is when others believe it no more: it expires, or its authority does.
	NotAfter time.Time

	roots *x509.CertPool
}

// Load reads the files. An error names the file and what is wrong with it.
func (f Files) Load(now time.Time) (*Credentials, error) {
	ca, err := readCertificates("CA file", f.CA)
	if err != nil {
		return nil, err
	}
	chain, err := readCertificates("certificate file", f.Cert)
	if err != nil {
		return nil, err
	}
	key, err := readBlock("key file", f.Key)
	if err != nil {
		return nil, err
	}
	c := &Credentials{roots: x509.NewCertPool()}
	for _, cert := range ca {
		if !cert.IsCA {
			return nil, fmt.Errorf("%w: CA file %s: %q is not a certificate of an authority", ErrInvalid, f.CA, cert.Subject)
		}
		c.roots.AddCert(cert)
	}
	var blocks []byte
	for _, cert := range chain {
		blocks = append(blocks, encodeCert(cert)...)
	}
	if c.Certificate, err = tls.X509KeyPair(blocks, key); err != nil {
		return nil, fmt.Errorf("%w: key file %s for certificate file %s: %w", ErrInvalid, f.Key, f.Cert, err)
	}
	// What others would not believe is an error here and now.
	for _, usage := range []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth} {
		if c.Identity, c.NotAfter, err = verify(chain, c.roots, usage, now); err != nil {
			return nil, fmt.Errorf("certificate file %s, with CA file %s: %w", f.Cert, f.CA, err)
		}
	}
	return c, nil
}

// Verify says which node a peer's chain of certificates, its own first, speaks
// for, or why it is not believed. Usage is what the peer uses it for.
func (c *Credentials) Verify(chain []*x509.Certificate, usage x509.ExtKeyUsage, now time.Time) (Identity, error) {
	id, _, err := verify(chain, c.roots, usage, now)
	return id, err
}

// Roots returns the authorities that are believed.
func (c *Credentials) Roots() *x509.CertPool { return c.roots }

const certBlock = "CERTIFICATE"

// maxFile bounds what is read of a file, which may be anything.
const maxFile = 1 << 20

func read(what, name string) ([]byte, error) {
	if name == "" {
		return nil, fmt.Errorf("%w: no %s is given", ErrInvalid, what)
	}
	info, err := os.Stat(name)
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrInvalid, what, err)
	}
	if !info.Mode().IsRegular() || info.Size() > maxFile {
		return nil, fmt.Errorf("%w: %s %s: it is no file of at most %d bytes", ErrInvalid, what, name, maxFile)
	}
	b, err := os.ReadFile(name)
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrInvalid, what, err)
	}
	return b, nil
}

// readBlock returns a PEM file as it is.
func readBlock(what, name string) ([]byte, error) {
	b, err := read(what, name)
	if err != nil {
		return nil, err
	}
	if block, _ := pem.Decode(b); block == nil {
		return nil, fmt.Errorf("%w: %s %s: there is nothing in PEM format in it", ErrInvalid, what, name)
	}
	return b, nil
}

// readCertificates reads all certificates of a PEM file; there is at least one.
func readCertificates(what, name string) ([]*x509.Certificate, error) {
	rest, err := readBlock(what, name)
	if err != nil {
		return nil, err
	}
	var certs []*x509.Certificate
	for {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			break
		}
		if block.Type != certBlock {
			return nil, fmt.Errorf("%w: %s %s: it has a %s where a %s belongs", ErrInvalid, what, name, block.Type, certBlock)
		}
		cert, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, fmt.Errorf("%w: %s %s: %w", ErrInvalid, what, name, err)
		}
		certs = append(certs, cert)
	}
	return certs, nil
}

// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package certs

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"net/url"
	"os"
	"path/filepath"
	"time"
)

// Authority signs the certificates of nodes.
type Authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// Validity is a span of time in which a certificate is good.
type Validity struct {
	NotBefore, NotAfter time.Time
}

// ValidFor returns the span from now on, with an hour before it for clocks that
// are behind.
func ValidFor(d time.Duration) Validity {
	now := time.Now()
	return Validity{NotBefore: now.Add(-time.Hour), NotAfter: now.Add(d)}
}

// NewAuthority makes an authority with a new key.
func NewAuthority(name string, v Validity) (*Authority, error) {
	key, serial, err := newKey()
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: name},
		NotBefore: v.NotBefore, NotAfter: v.NotAfter,
		IsCA: true, BasicConstraintsValid: true, MaxPathLenZero: true,
		KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageCRLSign,
	}
	cert, err := sign(template, template, key, key)
	return &Authority{cert: cert, key: key}, err
}

// newKey also draws the number of the certificate that it will be for.
func newKey() (*ecdsa.PrivateKey, *big.Int, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	return key, serial, err
}

func sign(template, parent *x509.Certificate, key, by *ecdsa.PrivateKey) (*x509.Certificate, error) {
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, by)
	if err != nil {
		return nil, err
	}
	return x509.ParseCertificate(der)
}

// Issue makes a key and a certificate for a node. Both are PEM.
func (a *Authority) Issue(id Identity, v Validity) (certPEM, keyPEM []byte, err error) {
	if id.Cluster == 0 || id.Node == 0 {
		return nil, nil, fmt.Errorf("%w: identity %v, want numbers of 1 or more", ErrInvalid, id)
	}
	key, serial, err := newKey()
	if err != nil {
		return nil, nil, err
	}
	cert, err := sign(&x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: id.String()},
		NotBefore: v.NotBefore, NotAfter: v.NotAfter, BasicConstraintsValid: true,
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth},
		URIs:        []*url.URL{id.URI()},
	}, a.cert, key, a.key)
	if err != nil {
		return nil, nil, err
	}
	keyPEM, err = encodeKey(key)
	return encodeCert(cert), keyPEM, err
}

// CertPEM returns the authority's own certificate, which is the CA file of nodes.
func (a *Authority) CertPEM() []byte { return encodeCert(a.cert) }

func encodeCert(cert *x509.Certificate) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: certBlock, Bytes: cert.Raw})
}

const keyBlock = "PRIVATE KEY"

func encodeKey(key *ecdsa.PrivateKey) ([]byte, error) {
	der, err := x509.MarshalPKCS8PrivateKey(key)
	return pem.EncodeToMemory(&pem.Block{Type: keyBlock, Bytes: der}), err
}

const (
	caFile    = "ca.pem"
	caKeyFile = "ca-key.pem"
)

// NodeFiles returns the names that Generate gives the files of a node.
func NodeFiles(dir string, node uint64) Files {
	return Files{
		Cert: filepath.Join(dir, fmt.Sprintf("node-%d.pem", node)),
		Key:  filepath.Join(dir, fmt.Sprintf("node-%d-key.pem", node)),
		CA:   filepath.Join(dir, caFile),
	}
}

// Generate makes certificates for nodes of a cluster in a directory: ca.pem and
// ca-key.pem, unless they are there, and node-N.pem and node-N-key.pem for each
// node. Nothing is overwritten: to renew a certificate, remove its two files
// first. Keys are readable by the owner only; ca-key.pem is best kept elsewhere.
func Generate(dir string, cluster uint64, nodes []uint64, v Validity) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("certs: %w", err)
	}
	ca, err := authority(dir, cluster, v)
	if err != nil {
		return err
	}
	for _, node := range nodes {
		cert, key, err := ca.Issue(Identity{Cluster: cluster, Node: node}, v)
		if err != nil {
			return err
		}
		files := NodeFiles(dir, node)
		if err := createPair(files.Cert, cert, files.Key, key); err != nil {
			return err
		}
		if _, err := files.Load(time.Now()); err != nil {
			return err // of another authority, or of one that expires before
		}
	}
	return nil
}

// authority reads the authority in dir, or makes one if neither of its files is
// there.
func authority(dir string, cluster uint64, v Validity) (*Authority, error) {
	certName, keyName := filepath.Join(dir, caFile), filepath.Join(dir, caKeyFile)
	if missing(certName) && missing(keyName) {
		ca, err := NewAuthority(fmt.Sprintf("Weft cluster %d", cluster), v)
		if err != nil {
			return nil, err
		}
		key, err := encodeKey(ca.key)
		if err != nil {
			return nil, err
		}
		return ca, createPair(certName, ca.CertPEM(), keyName, key)
	}
	chain, err := readCertificates("CA file", certName)
	if err != nil {
		return nil, err
	}
	b, err := readBlock("CA's key file", keyName)
	if err != nil {
		return nil, err
	}
	block, _ := pem.Decode(b)
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	key, ok := parsed.(*ecdsa.PrivateKey)
	if err != nil || !ok || !key.PublicKey.Equal(chain[0].PublicKey) {
		return nil, fmt.Errorf("%w: CA's key file %s is not the key of %s", ErrInvalid, keyName, certName)
	}
	return &Authority{cert: chain[0], key: key}, nil
}

func missing(name string) bool {
	_, err := os.Stat(name)
	return errors.Is(err, fs.ErrNotExist)
}

// createPair writes a certificate and its key. Neither may exist.
func createPair(certName string, cert []byte, keyName string, key []byte) error {
	for _, name := range []string{certName, keyName} {
		if !missing(name) {
			return fmt.Errorf("%w: %s is there already; remove it to make a new one", ErrInvalid, name)
		}
	}
	if err := create(keyName, key, 0o600); err != nil {
		return err
	}
	return create(certName, cert, 0o644)
}

// create writes a file that must not exist.
func create(name string, data []byte, mode fs.FileMode) error {
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return fmt.Errorf("certs: %w", err)
	}
	_, err = f.Write(data)
	return errors.Join(err, f.Close())
}

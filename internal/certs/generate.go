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
	"net"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"time"
)

// issuer signs the certificates of nodes.
type issuer struct {
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

// authorityLasts is how long an authority lasts at least. All certificates end with it, however late they were made.
const authorityLasts = 10 * 365 * 24 * time.Hour

// newAuthority makes an authority with a new key.
func newAuthority(name string, v Validity) (*issuer, error) {
	key, serial, err := newKey()
	if err != nil {
		return nil, err
	}
	if least := v.NotBefore.Add(authorityLasts); least.After(v.NotAfter) {
		v.NotAfter = least
	}
	template := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: name},
		NotBefore: v.NotBefore, NotAfter: v.NotAfter,
		IsCA: true, BasicConstraintsValid: true, MaxPathLenZero: true,
		KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageCRLSign,
	}
	cert, err := sign(template, template, key, key)
	return &issuer{cert: cert, key: key}, err
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

// Subject is whom a certificate is for: a node, a client of nodes, or a client that
// may change the cluster. One of Node, Client and Admin is set.
type Subject struct {
	Cluster uint64
	Node    uint64
	Client  string // a name, of small letters, digits and dashes
	Admin   string // the same
	// Hosts are names and addresses of the machine, for programs that look at
	// those. Nodes among themselves do not.
	Hosts []string
}

var clientName = regexp.MustCompile(`^[a-z0-9-]{1,64}$`)

// uri is the name by which others know the subject.
func (s Subject) uri() (*url.URL, error) {
	switch {
	case s.Cluster == 0:
		return nil, fmt.Errorf("%w: Cluster is 0, want 1 or more", ErrInvalid)
	case s.Node != 0 && s.Client == "" && s.Admin == "":
		return Identity{Cluster: s.Cluster, Node: s.Node}.URI(), nil
	case s.Node != 0 || (s.Client == "") == (s.Admin == ""):
		return nil, fmt.Errorf("%w: Node is %d, Client is %q and Admin is %q, want one of them", ErrInvalid, s.Node, s.Client, s.Admin)
	}
	role, name := s.client()
	if !clientName.MatchString(name) {
		return nil, fmt.Errorf("%w: the name of the %s is %q, want up to 64 small letters, digits and dashes", ErrInvalid, role, name)
	}
	return &url.URL{Scheme: scheme, Host: "cluster", Path: fmt.Sprintf("/%d/%s/%s", s.Cluster, role, name)}, nil
}

// client returns the role and the name of a client.
func (s Subject) client() (role, name string) {
	if s.Admin != "" {
		return "admin", s.Admin
	}
	return "client", s.Client
}

// Files returns the names that Generate gives the subject's files.
func (s Subject) Files(dir string) Files {
	switch {
	case s.Node != 0:
		return NodeFiles(dir, s.Node)
	case s.Admin != "":
		return AdminFiles(dir, s.Admin)
	}
	return ClientFiles(dir, s.Client)
}

// Issue makes a key and a certificate. Both are PEM. A node's is good for both
// ends of a connection, a client's for its own.
func (a *issuer) Issue(s Subject, v Validity) (certPEM, keyPEM []byte, err error) {
	uri, err := s.uri()
	if err != nil {
		return nil, nil, err
	}
	if end := a.cert.NotAfter; v.NotAfter.Truncate(time.Second).After(end) {
		return nil, nil, fmt.Errorf("%w: the certificate of %s is to be good until %s, and that of its authority is until %s: make it good for fewer days, or make a new authority, in another directory",
			ErrInvalid, uri, v.NotAfter.Format(time.RFC3339), end.Format(time.RFC3339))
	}
	key, serial, err := newKey()
	if err != nil {
		return nil, nil, err
	}
	template := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: uri.String()},
		NotBefore: v.NotBefore, NotAfter: v.NotAfter, BasicConstraintsValid: true,
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
		URIs:        []*url.URL{uri},
	}
	if s.Node != 0 {
		template.ExtKeyUsage = append(template.ExtKeyUsage, x509.ExtKeyUsageServerAuth)
	}
	for _, host := range s.Hosts {
		if ip := net.ParseIP(host); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, host)
		}
	}
	cert, err := sign(template, a.cert, key, a.key)
	if err != nil {
		return nil, nil, err
	}
	keyPEM, err = encodeKey(key)
	return encodeCert(cert), keyPEM, err
}

// CertPEM returns the authority's own certificate, which is the CA file of nodes.
func (a *issuer) CertPEM() []byte { return encodeCert(a.cert) }

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
func NodeFiles(dir string, node uint64) Files { return files(dir, fmt.Sprintf("node-%d", node)) }

// ClientFiles returns the names that Generate gives the files of a client.
func ClientFiles(dir, client string) Files { return files(dir, "client-"+client) }

// AdminFiles returns the names that Generate gives the files of an administrator.
func AdminFiles(dir, admin string) Files { return files(dir, "admin-"+admin) }

func files(dir, name string) Files {
	return Files{
		Cert: filepath.Join(dir, name+".pem"),
		Key:  filepath.Join(dir, name+"-key.pem"),
		CA:   filepath.Join(dir, caFile),
	}
}

// Generate makes certificates in a directory: ca.pem and ca-key.pem, unless they
// are there, good for ten years at least, and a certificate and a key for each subject: node-N.pem and
// node-N-key.pem, client-NAME.pem and so on, or admin-NAME.pem and so on. Nothing is overwritten: to renew a
// certificate, remove its two files first. Keys are readable by their owner
// only; ca-key.pem is best kept elsewhere.
func Generate(dir string, v Validity, subjects ...Subject) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("certs: %w", err)
	}
	ca, err := authority(dir, v)
	if err != nil {
		return err
	}
	for _, s := range subjects {
		cert, key, err := ca.Issue(s, v)
		if err != nil {
			return err
		}
		files := s.Files(dir)
		if err := createPair(files.Cert, cert, files.Key, key); err != nil {
			return err
		}
	}
	return nil
}

// authority reads the authority in dir, or makes one if neither of its files is
// there.
func authority(dir string, v Validity) (*issuer, error) {
	certName, keyName := filepath.Join(dir, caFile), filepath.Join(dir, caKeyFile)
	if missing(certName) && missing(keyName) {
		ca, err := newAuthority("Weft", v)
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
	return &issuer{cert: chain[0], key: key}, nil
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

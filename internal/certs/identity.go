// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package certs

import (
	"crypto/x509"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// ErrInvalid wraps what is wrong with a certificate, a key or a file.
var ErrInvalid = errors.New("certs: invalid")

// Identity is which node a certificate speaks for.
type Identity struct {
	Cluster, Node uint64
}

const scheme = "weft"

// URI returns the name that stands in the node's certificate.
func (id Identity) URI() *url.URL {
	return &url.URL{Scheme: scheme, Host: "cluster", Path: fmt.Sprintf("/%d/node/%d", id.Cluster, id.Node)}
}

// String says it in words.
func (id Identity) String() string {
	return fmt.Sprintf("node %d of cluster %d", id.Node, id.Cluster)
}

// identityOf returns which node a certificate names. It must name exactly one.
// Whether to believe it is for [Credentials.Verify] to say.
func identityOf(cert *x509.Certificate) (Identity, error) {
	var found []Identity
	for _, uri := range cert.URIs {
		if uri.Scheme != scheme {
			continue
		}
		id, ok := parseURI(uri)
		if !ok {
			return Identity{}, fmt.Errorf("%w: the certificate is for %q, want %s", ErrInvalid, uri, "weft://cluster/<number>/node/<number>")
		}
		found = append(found, id)
	}
	if len(found) != 1 {
		return Identity{}, fmt.Errorf("%w: the certificate names %d nodes, want 1, as a URI such as %s", ErrInvalid, len(found), Identity{1, 2}.URI())
	}
	return found[0], nil
}

// parseURI accepts what URI returns and nothing else.
func parseURI(uri *url.URL) (Identity, bool) {
	words := strings.Split(uri.Path, "/") // "", cluster, "node", node
	if len(words) != 4 {
		return Identity{}, false
	}
	cluster, err1 := strconv.ParseUint(words[1], 10, 64)
	node, err2 := strconv.ParseUint(words[3], 10, 64)
	id := Identity{Cluster: cluster, Node: node}
	ok := err1 == nil && err2 == nil && cluster > 0 && node > 0 && id.URI().String() == uri.String()
	return id, ok
}

// verify says which node a chain of certificates, leaf first, speaks for, if it
// leads to one of the roots and is good for usage, and until when.
func verify(chain []*x509.Certificate, roots *x509.CertPool, usage x509.ExtKeyUsage, now time.Time) (id Identity, end time.Time, err error) {
	if len(chain) == 0 {
		return id, end, fmt.Errorf("%w: there is no certificate", ErrInvalid)
	}
	leaf := chain[0]
	between := x509.NewCertPool()
	for _, c := range chain[1:] {
		between.AddCert(c)
	}
	ways, err := leaf.Verify(x509.VerifyOptions{Roots: roots, Intermediates: between, CurrentTime: now, KeyUsages: []x509.ExtKeyUsage{usage}})
	if err != nil {
		return id, end, fmt.Errorf("%w: %s", ErrInvalid, explain(err, leaf, now))
	}
	id, err = identityOf(leaf)
	return id, endOf(ways), err
}

// endOf returns when a certificate is not believed any more: at the first end in the way to an authority, of several
// ways the last.
func endOf(ways [][]*x509.Certificate) (end time.Time) {
	for _, way := range ways {
		first := slices.MinFunc(way, func(a, b *x509.Certificate) int { return a.NotAfter.Compare(b.NotAfter) })
		if first.NotAfter.After(end) {
			end = first.NotAfter
		}
	}
	return end
}

// explain says in words of our own why a certificate is not believed.
func explain(err error, leaf *x509.Certificate, now time.Time) string {
	var unknown x509.UnknownAuthorityError
	var invalid x509.CertificateInvalidError
	switch {
	case now.After(leaf.NotAfter):
		return fmt.Sprintf("the certificate has expired at %s", leaf.NotAfter.Format(time.RFC3339))
	case now.Before(leaf.NotBefore):
		return fmt.Sprintf("the certificate is not valid before %s", leaf.NotBefore.Format(time.RFC3339))
	case errors.As(err, &unknown):
		return fmt.Sprintf("the certificate is not signed by an authority in the CA file (its issuer is %q)", leaf.Issuer)
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return fmt.Sprintf("the certificate of its authority %q is good from %s to %s", invalid.Cert.Subject, invalid.Cert.NotBefore.Format(time.RFC3339), invalid.Cert.NotAfter.Format(time.RFC3339))
	}
	return err.Error()
}

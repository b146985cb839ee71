// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package transport

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"

	"github.com/weftraft/weft/internal/certs"
	"github.com/weftraft/weft/internal/strangers"
	"github.com/weftraft/weft/internal/wire"
)

// badge is the proven identity of the other end of an incoming connection.
type badge struct {
	shown bool // with TLS
	certs.Identity
}

// covers reports whether a hello fits the badge.
func (b badge) covers(h wire.Hello) error {
	if b.shown && (b.Cluster != h.Cluster || b.Node != h.Node) {
		return refuse(refusedCertificate, "your certificate is for %v, you say that you are node %d of cluster %d", b.Identity, h.Node, h.Cluster)
	}
	return nil
}

// loadKeys reads the certificate files, if there are any.
func loadKeys(cfg Config) (*certs.Keyring, error) {
	if cfg.TLS == (certs.Files{}) {
		return nil, nil
	}
	keys, err := certs.NewKeyring(cfg.TLS)
	if err != nil {
		return nil, fmt.Errorf("%w: TLS: %w", ErrInvalid, err)
	}
	c, err := keys.Current()
	if err != nil {
		return nil, fmt.Errorf("%w: TLS: %w", ErrInvalid, err)
	}
	if want := (certs.Identity{Cluster: cfg.Cluster, Node: cfg.Node}); c.Identity != want {
		return nil, fmt.Errorf("%w: TLS: certificate file %s is for %v, this is %v", ErrInvalid, cfg.TLS.Cert, c.Identity, want)
	}
	return keys, nil
}

// credentials returns this node's certificate and its authorities, from the files as
// they are now, or as they were when last valid.
func (t *TCP) credentials() *certs.Credentials {
	c, err := t.keys.Current()
	if err != nil {
		t.count.badCertificates.Add(1)
		t.log(slog.LevelError, about{}, "the certificate files have changed and are no good, the certificate from before is used", "error", err, "expires", c.NotAfter)
	}
	return c
}

// tlsConfig has the settings common to both ends. Chains and names are verified by this
// package: names of machines mean nothing here.
func tlsConfig(c *certs.Credentials) *tls.Config {
	return &tls.Config{
		MinVersion:             tls.VersionTLS13,
		Certificates:           []tls.Certificate{c.Certificate},
		SessionTicketsDisabled: true, // so that each connection shows a certificate
		// Records of full size from the start: connections live long.
		DynamicRecordSizingDisabled: true,
	}
}

// firstOfFrame is the first byte of a connection without TLS.
const firstOfFrame = 'W'

// unveil identifies the connecting node. With an error, the connection that it returns
// is the one to say it on, if any.
func (t *TCP) unveil(raw net.Conn) (net.Conn, badge, error) {
	conn, err := strangers.Peek(raw)
	if err != nil {
		return raw, badge{}, fmt.Errorf("nothing is said: %w", err)
	}
	switch {
	case t.keys == nil && conn.First == strangers.FirstOfTLS:
		return conn, badge{}, refuse(refusedPlain, "you speak TLS, node %d does not", t.cfg.Node)
	case t.keys == nil:
		return conn, badge{}, nil
	case conn.First == firstOfFrame:
		return conn, badge{}, refuse(refusedPlain, "node %d wants TLS, you do not speak it", t.cfg.Node)
	}
	credentials := t.credentials()
	cfg := tlsConfig(credentials)
	// The chain is checked after the handshake, when the other end can be told the
	// mistake.
	cfg.ClientAuth = tls.RequireAnyClientCert
	secure := tls.Server(conn, cfg)
	if err := secure.HandshakeContext(t.context); err != nil {
		if errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, io.EOF) {
			return nil, badge{}, fmt.Errorf("TLS handshake: %w", err)
		}
		return nil, badge{}, refuse(refusedCertificate, "TLS handshake (the other end may not trust this node's authority): %w", err)
	}
	id, err := credentials.Verify(secure.ConnectionState().PeerCertificates, x509.ExtKeyUsageClientAuth, t.now())
	if err != nil {
		return secure, badge{}, refuse(refusedCertificate, "your certificate: %w", err)
	}
	return secure, badge{shown: true, Identity: id}, nil
}

// secure is the dialer's half, and makes sure that node is at the other end.
func (t *TCP) secure(ctx context.Context, raw net.Conn, node uint64) (net.Conn, error) {
	if t.keys == nil {
		return raw, nil
	}
	credentials := t.credentials()
	cfg := tlsConfig(credentials)
	cfg.InsecureSkipVerify = true // the standard verification; ours is here:
	cfg.VerifyConnection = func(s tls.ConnectionState) error {
		id, err := credentials.Verify(s.PeerCertificates, x509.ExtKeyUsageServerAuth, t.now())
		if err == nil && (id.Node != node || id.Cluster != t.cfg.Cluster) {
			err = fmt.Errorf("%w: the certificate is for %v, want node %d of cluster %d", certs.ErrInvalid, id, node, t.cfg.Cluster)
		}
		if err != nil {
			return fmt.Errorf("the certificate of the other end: %w", err)
		}
		return nil
	}
	conn := tls.Client(raw, cfg)
	if err := conn.HandshakeContext(ctx); err != nil {
		var other tls.RecordHeaderError
		if errors.As(err, &other) && other.RecordHeader[0] == firstOfFrame {
			return nil, fmt.Errorf("%w: node %d at %v does not speak TLS, this node does", errRefused, node, raw.RemoteAddr())
		}
		return nil, fmt.Errorf("TLS handshake with node %d at %v: %w", node, raw.RemoteAddr(), err)
	}
	return conn, nil
}

// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

// Package certs has the certificates by which the nodes of a cluster know each
// other: what is in them, how they are read from files, and a small authority
// that makes them.
//
// # Identity
//
// A node's certificate names one node, by a URI among its alternative names:
//
//	weft://cluster/5/node/2
//
// No name of a machine and no address is looked at, so a node may move. The
// certificate is good for both ends of a connection (extended key usages client
// and server), and is signed, directly or through intermediates that stand
// behind it in its file, by an authority in the CA file. Any tool that can make
// such certificates will do; [Generate] is one for trying things out, and for
// those who have no other.
//
// [Generate] also makes certificates for clients, weft://cluster/5/client/ann, and
// for those that may change the cluster, weft://cluster/5/admin/ops: the transport
// refuses them, and servers for clients may ask for them.
//
// # Files
//
// All files are PEM. [Files.Load] reads them and says what is wrong with which:
// missing, of another kind, a key that is not the certificate's, expired, not
// signed by the CA, without an identity. A [Keyring] reads them again when they
// change.
package certs

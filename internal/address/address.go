// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

// Package address knows which hosts an address host:port may name.
package address

import (
	"net/netip"
	"strings"
)

// maxHost is longer than any name in DNS.
const maxHost = 256

// nameBytes are the bytes of names. Names in other scripts have a form in these bytes in DNS.
const nameBytes = "abcdefghijklmnopqrstuvwxyz" + "ABCDEFGHIJKLMNOPQRSTUVWXYZ" + "0123456789" + "-_."

// IsHost reports whether host is an IP address or has the form of a name. An address goes into logs,
// JSON and terminals: bytes that are no UTF-8 would come back as others, and controls would write there.
func IsHost(host string) bool {
	name := host
	if ip, err := netip.ParseAddr(host); err == nil {
		name = "ip" + ip.Zone()
	}
	return name != "" && len(name) <= maxHost && !strings.ContainsFunc(name, func(r rune) bool { return !strings.ContainsRune(nameBytes, r) })
}

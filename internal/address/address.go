// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

// Package address knows which addresses host:port a node may have, and how long the name of a zone may be.
package address

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"
)

// Err is weft.ErrAddress.
var Err = errors.New("weft: the address cannot be used")

// MaxBytes bounds an address.
const MaxBytes = 261 // a DNS name, a colon and a port

// MaxZoneBytes bounds the name of a zone.
const MaxZoneBytes = 64

// Check returns what is wrong with an address to dial.
func Check(at string) error {
	bad := func(why string) error {
		return fmt.Errorf("%w: %q %s; want host:port, such as 10.0.0.4:7000", Err, at, why)
	}
	if len(at) > MaxBytes {
		return fmt.Errorf("%w: it has %d bytes, want at most %d", Err, len(at), MaxBytes)
	}
	host, port, err := net.SplitHostPort(at)
	if err != nil {
		return bad("is no address")
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		return bad("names no host that others can dial")
	}
	if !IsHost(host) {
		return bad("names a host that is neither an IP address nor a name of letters, digits, '-', '_' and '.'")
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
		return bad("names no port of 1 to 65535")
	}
	return nil
}

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

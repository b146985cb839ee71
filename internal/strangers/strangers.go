// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

// Package strangers bounds the connections whose other ends have not said who they are.
package strangers

import (
	"net"
	"net/netip"
	"slices"
	"sync"
)

// Limit is how many strangers a port has use for.
const Limit = 512

// Table has the connections of strangers, by source. When there are too many,
// the source with most connections loses one, drawn at random: a fast-dialing stranger
// takes places from itself. Sources with no more connections than a peer may have count
// as equal. A peer that shares its source with strangers, or meets strangers of very
// many sources, has a chance with each dial, however distant the peer is.
//
// The methods may be called by several goroutines.
type Table struct {
	limit, fair int
	random      func(n int) int // below n

	mu      sync.Mutex
	n       int // of all sources
	sources []*source
	gone    map[net.Conn]bool // was closed, not yet known to the caller
}

// source is an address, or a network, of possibly one stranger.
type source struct {
	prefix netip.Prefix
	conns  []net.Conn // never empty, in no order
}

// New returns a table of at most limit connections, 1 or more. A source with up to fair of
// them counts as one with few. random returns a number below n.
func New(limit, fair int, random func(n int) int) *Table {
	return &Table{limit: limit, fair: fair, random: random, gone: map[net.Conn]bool{}}
}

// sourceOf returns where a connection comes from: an address, or with IPv6 a network,
// whose machines choose their addresses freely.
func sourceOf(conn net.Conn) netip.Prefix {
	tcp, ok := conn.RemoteAddr().(*net.TCPAddr)
	if !ok {
		return netip.Prefix{}
	}
	address := tcp.AddrPort().Addr().Unmap()
	bits := address.BitLen()
	if address.Is6() {
		bits = 64
	}
	prefix, _ := address.Prefix(bits) // none if there is no address
	return prefix
}

// Add takes a connection in. If there are too many, one is closed, perhaps this one.
func (s *Table) Add(conn net.Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.n == s.limit {
		s.pushOut()
	}
	s.n++
	prefix := sourceOf(conn)
	if i := s.find(prefix); i >= 0 {
		s.sources[i].conns = append(s.sources[i].conns, conn)
		return
	}
	s.sources = append(s.sources, &source{prefix, []net.Conn{conn}})
}

func (s *Table) find(prefix netip.Prefix) int {
	return slices.IndexFunc(s.sources, func(from *source) bool { return from.prefix == prefix })
}

// pushOut closes a connection of a source with the most.
func (s *Table) pushOut() {
	most := 0
	for _, from := range s.sources {
		most = max(most, len(from.conns))
	}
	if most <= s.fair {
		most = 0
	}
	i, j, among := 0, 0, 0
	for k, from := range s.sources {
		if n := len(from.conns); n >= most {
			among += n
			if r := s.random(among); r < n {
				i, j = k, r
			}
		}
	}
	conn := s.sources[i].conns[j]
	s.drop(i, j)
	s.gone[conn] = true
	_ = conn.Close() // not yet published
}

// drop takes the j-th connection of a source out.
func (s *Table) drop(i, j int) {
	from := s.sources[i]
	from.conns = slices.Delete(from.conns, j, j+1)
	if len(from.conns) == 0 {
		s.sources = slices.Delete(s.sources, i, i+1)
	}
	s.n--
}

// Remove forgets a connection: its other end is known, or it has ended. Remove of another
// connection does nothing.
func (s *Table) Remove(conn net.Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.gone, conn)
	i := s.find(sourceOf(conn))
	if i < 0 {
		return
	}
	if j := slices.Index(s.sources[i].conns, conn); j >= 0 {
		s.drop(i, j)
	}
}

// PushedOut reports, until Remove, whether a connection was closed because there were too many.
func (s *Table) PushedOut(conn net.Conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.gone[conn]
}

// Len returns how many strangers there are.
func (s *Table) Len() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.n
}

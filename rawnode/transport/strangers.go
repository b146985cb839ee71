// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package transport

import (
	"net"
	"net/netip"
	"slices"
	"sync"

	"github.com/weftraft/weft/internal/wire"
)

// maxStrangers bounds the connections before their hello.
const maxStrangers = 512

// strangers are the connections before their hello, by source. When there are too many,
// the source with most connections loses one, drawn at random: a fast-dialing stranger
// takes places from itself. Sources with no more connections than a peer may have count
// as equal. A peer that shares its source with strangers, or meets strangers of very
// many sources, has a chance with each dial, however distant the peer is.
type strangers struct {
	random func(n int) int // below n

	mu      sync.Mutex
	n       int // of all sources
	sources []*source
	gone    map[net.Conn]bool // was closed, not yet known to the goroutine that serves it
}

// source is an address, or a network, of possibly one stranger.
type source struct {
	prefix netip.Prefix
	conns  []net.Conn // never empty, in no order
}

func newStrangers(random func(n int) int) *strangers {
	return &strangers{random: random, gone: map[net.Conn]bool{}}
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

func (s *strangers) add(conn net.Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.n == maxStrangers {
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

func (s *strangers) find(prefix netip.Prefix) int {
	return slices.IndexFunc(s.sources, func(from *source) bool { return from.prefix == prefix })
}

// pushOut closes a connection of a source with the most.
func (s *strangers) pushOut() {
	most := 0
	for _, from := range s.sources {
		most = max(most, len(from.conns))
	}
	if most <= int(wire.NumClasses) { // a peer needs a connection for each class
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
func (s *strangers) drop(i, j int) {
	from := s.sources[i]
	from.conns = slices.Delete(from.conns, j, j+1)
	if len(from.conns) == 0 {
		s.sources = slices.Delete(s.sources, i, i+1)
	}
	s.n--
}

// remove forgets a connection.
func (s *strangers) remove(conn net.Conn) {
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

// pushedOut reports whether a connection was closed because there were too many.
func (s *strangers) pushedOut(conn net.Conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.gone[conn]
}

func (s *strangers) len() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.n
}

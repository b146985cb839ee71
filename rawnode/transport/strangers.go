// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package transport

import (
	"net"
	"slices"
	"sync"
)

// maxStrangers bounds the connections that have not said hello yet.
const maxStrangers = 128

// strangers are the connections that have not said hello yet, oldest first. When
// there are too many, the oldest is closed: one that says hello at once gets
// through, however many others keep silent.
type strangers struct {
	mu    sync.Mutex
	conns []net.Conn
	gone  map[net.Conn]bool // was closed, by the goroutine that serves it not known yet
}

func (s *strangers) add(conn net.Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.conns) == maxStrangers {
		oldest := s.conns[0]
		s.conns = slices.Delete(s.conns, 0, 1)
		s.gone[oldest] = true
		_ = oldest.Close() // nobody has heard of it yet
	}
	s.conns = append(s.conns, conn)
}

// remove forgets a connection.
func (s *strangers) remove(conn net.Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if i := slices.Index(s.conns, conn); i >= 0 {
		s.conns = slices.Delete(s.conns, i, i+1)
	}
	delete(s.gone, conn)
}

// pushedOut reports whether a connection was closed as the oldest.
func (s *strangers) pushedOut(conn net.Conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.gone[conn]
}

func (s *strangers) len() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.conns)
}

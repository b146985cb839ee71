// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package strangers

import (
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// callerConn is a connection that only has an address.
type callerConn struct {
	net.Conn
	from net.Addr
}

func (c *callerConn) RemoteAddr() net.Addr { return c.from }
func (*callerConn) Close() error           { return nil }

// classes is how many connections a peer has.
const classes = 4

// rule decides who loses a place when there are too many strangers.
type rule interface {
	Add(net.Conn)
	PushedOut(net.Conn) bool
	Remove(net.Conn)
}

// oldestOut is the rule that there was: of 128, the oldest loses its place.
type oldestOut struct{ conns []net.Conn }

func (s *oldestOut) Add(c net.Conn) {
	if len(s.conns) == 128 {
		s.conns = s.conns[1:]
	}
	s.conns = append(s.conns, c)
}
func (s *oldestOut) PushedOut(c net.Conn) bool { return !slices.Contains(s.conns, c) }
func (s *oldestOut) Remove(c net.Conn) {
	s.conns = slices.DeleteFunc(s.conns, func(have net.Conn) bool { return have == c })
}

// flood says how strangers dial.
type flood struct {
	dials   int  // a second
	sources int  // addresses that they dial from
	near    bool // a peer dials from one of them
}

// share returns which share of a peer's hellos gets through. The hello of each comes
// some time after the connection, as the peer is that far away; a stranger's never
// comes.
func share(s rule, f flood, away time.Duration) float64 {
	address := func(i int) net.Addr { return &net.TCPAddr{IP: net.IPv4(10, 1, byte(i>>8), byte(i)), Port: 1000} }
	peer := address(f.sources)
	if f.near {
		peer = address(0)
	}
	type hello struct {
		conn net.Conn
		at   time.Duration
	}
	var hellos []hello
	through, n := 0, 0
	step := time.Second / time.Duration(f.dials)
	for i := range 3 * f.dials {
		now := time.Duration(i) * step
		s.Add(&callerConn{from: address(i % f.sources)})
		if len(hellos) < classes && i%7 == 0 { // a peer dials once for each class
			c := &callerConn{from: peer}
			s.Add(c)
			hellos = append(hellos, hello{c, now + away})
		}
		for len(hellos) > 0 && hellos[0].at <= now {
			if n++; !s.PushedOut(hellos[0].conn) {
				through++
			}
			s.Remove(hellos[0].conn)
			hellos = hellos[1:]
		}
	}
	return float64(through) / float64(n)
}

// The share of honest hellos that get through while strangers take places, by the rule
// that there was and by the present one. DESIGN.md of package transport has these numbers.
func TestHonestHellosGetThroughAFloodOfStrangers(t *testing.T) {
	const ms = time.Millisecond
	for _, c := range []struct {
		name          string
		flood         flood
		away          time.Duration
		before, after float64 // percent; what is not 0 or 100 is a few percent more or less
	}{
		{"one address", flood{dials: 10_000, sources: 1}, 10 * ms, 100, 100},
		{"one address", flood{dials: 10_000, sources: 1}, 30 * ms, 0, 100},
		{"one address", flood{dials: 10_000, sources: 1}, 100 * ms, 0, 100},
		{"one address", flood{dials: 100_000, sources: 1}, 100 * ms, 0, 100},
		{"the peer's own address", flood{dials: 10_000, sources: 1, near: true}, 30 * ms, 0, 56},
		{"the peer's own address", flood{dials: 10_000, sources: 1, near: true}, 100 * ms, 0, 14},
		{"100 addresses", flood{dials: 10_000, sources: 100}, 100 * ms, 0, 100},
		{"10,000 addresses", flood{dials: 10_000, sources: 10_000}, 30 * ms, 0, 56},
		{"10,000 addresses", flood{dials: 10_000, sources: 10_000}, 100 * ms, 0, 14},
	} {
		name := fmt.Sprintf("%d dials a second from %s, hello after %v", c.flood.dials, c.name, c.away)
		t.Run(name, func(t *testing.T) {
			before := 100 * share(&oldestOut{}, c.flood, c.away)
			after := 100 * share(New(Limit, classes, rand.New(rand.NewPCG(1, 2)).IntN), c.flood, c.away)
			t.Logf("%s: %.0f%% before, %.0f%% now", name, before, after)
			require.InDelta(t, c.before, before, 0.5)
			require.InDelta(t, c.after, after, 10*min(1, c.after*(100-c.after)))
		})
	}
}

// Addresses of one network of IPv6 are one source: a machine has as many of them as it
// likes. An address of IPv4 is the same however it is written.
func TestSourcesOfStrangers(t *testing.T) {
	of := func(ip string) string {
		return sourceOf(&callerConn{from: &net.TCPAddr{IP: net.ParseIP(ip)}}).String()
	}
	require.Equal(t, "10.1.2.3/32", of("10.1.2.3"))
	require.Equal(t, "10.1.2.3/32", of("::ffff:10.1.2.3"))
	require.Equal(t, "2001:db8:1:2::/64", of("2001:db8:1:2:3:4:5:6"))
	here, there := net.Pipe()
	defer func() { _, _ = here.Close(), there.Close() }() // nothing was said
	require.Equal(t, sourceOf(here), sourceOf(there), "what has no address has one source")
}

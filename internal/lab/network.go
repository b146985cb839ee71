// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/weftraft/weft/internal/ports"
)

// The kinds of networks.
const (
	// direct has nothing between hosts. It needs nothing, and has no bound.
	direct = "direct"
	// Namespaces is a network of the kernel's: hosts are network namespaces, and the kernel shapes
	// the links, so that programs and their TCP are as they are on machines of their own. It needs
	// Linux, root, and the programs ip and tc.
	Namespaces = "namespaces"
	// Relay is a network of connections through this process. It needs nothing. A card's bound is on
	// what its host sends over connections that others have opened to it, and on what it receives
	// over them; what a host sends over connections that it has opened itself is bounded by the
	// receiver's card. Alone among the kinds it has delays, cuts and slow directions.
	Relay = "relay"
)

// Bounds of [NetworkConfig].
const (
	maxHosts = 100
	minRate  = 100_000         // bits a second
	maxRate  = 100_000_000_000 // bits a second
)

// NetworkConfig says what network to make.
type NetworkConfig struct {
	Hosts int    // 1 to 100
	Rate  int64  // bits a second that a card sends, and receives; 0: no bound
	Kind  string // empty: Namespaces, or Relay if that fails
	// Delay, for a Relay, is the time of a byte from one host to another; hosts count from 1. nil:
	// no time.
	Delay func(from, to int) time.Duration
	// Dialer, for a Relay, reads from the beginning of a connection which host dials. Without it a
	// relay does not know, and directions have neither delays nor cuts.
	Dialer func(io.Reader) (host int, err error)
}

// Validate returns an error that names every mistake, or nil.
func (c NetworkConfig) Validate() error {
	var errs []error
	if c.Hosts < 1 || c.Hosts > maxHosts {
		errs = append(errs, fmt.Errorf("network: Hosts is %d, want 1 to %d", c.Hosts, maxHosts))
	}
	if c.Rate != 0 && (c.Rate < minRate || c.Rate > maxRate) {
		errs = append(errs, fmt.Errorf("network: Rate is %d bits a second, want 0 (no bound), or %d to %d", c.Rate, minRate, int64(maxRate)))
	}
	switch {
	case c.Kind == direct && c.Rate != 0:
		errs = append(errs, fmt.Errorf("network: Rate is %d bits a second, want 0 with Kind %s", c.Rate, direct))
	case c.Kind != "" && c.Kind != Namespaces && c.Kind != Relay && c.Kind != direct:
		errs = append(errs, fmt.Errorf("network: Kind is %q, want %s, %s, %s, or empty for what the machine allows", c.Kind, Namespaces, Relay, direct))
	case c.Kind != Relay && (c.Delay != nil || c.Dialer != nil):
		errs = append(errs, fmt.Errorf("network: Kind is %q, want %s for Delay and Dialer", c.Kind, Relay))
	}
	return errors.Join(errs...)
}

// Host is a machine in a network. A host's programs talk to those of other hosts through its card.
// This process talks to every host beside the cards, without a bound: what a measurement asks of
// the hosts is not what it measures.
type Host struct {
	// Listen is the address, host and port, at which a program of this host waits for those of
	// others, and Address the one under which they find it.
	Listen, Address string
	// Client is the address at which a program of this host waits for this process.
	Client string
	// run is what a command line begins with.
	run []string
	// sent returns the bytes that its card has sent.
	sent func() (uint64, error)
}

// Sent returns how many bytes have left by the host's card, with what they are wrapped in if the
// kernel counts them. A relay counts what others have read from the host over connections that they
// have opened, and no more.
func (h Host) Sent() (uint64, error) { return h.sent() }

// Command returns the command line that runs a program on this host.
func (h Host) Command(args ...string) []string { return append(append([]string{}, h.run...), args...) }

// Network is a number of hosts.
type Network struct {
	Kind  string
	Hosts []Host
	// Why says why the kind is Relay though none was asked for, or nil.
	Why error
	// Links are those of a Relay whose ends are known; nil else.
	Links *Links
	close func() error
}

// Close takes the network down. The programs of its hosts must have ended.
func (n *Network) Close() error { return n.close() }

// NewNetwork makes a network.
func NewNetwork(c NetworkConfig) (*Network, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	switch c.Kind {
	case direct:
		return newDirect(c)
	case Relay:
		return newRelays(c)
	}
	n, err := newNamespaces(c)
	if err == nil || c.Kind == Namespaces {
		return n, err
	}
	why := err
	if n, err = newRelays(c); err != nil {
		return nil, errors.Join(why, err)
	}
	n.Why = why
	return n, nil
}

func newDirect(c NetworkConfig) (*Network, error) {
	free, err := ports.Free(2 * c.Hosts)
	if err != nil {
		return nil, err
	}
	n := &Network{Kind: c.Kind, close: func() error { return nil }}
	for i := range c.Hosts {
		n.Hosts = append(n.Hosts, Host{Listen: free[i], Address: free[i], Client: free[c.Hosts+i], sent: func() (uint64, error) {
			return 0, fmt.Errorf("network: Kind is %s, want %s or %s to count what hosts send", direct, Namespaces, Relay)
		}})
	}
	return n, nil
}

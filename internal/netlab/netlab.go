// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

// Package netlab gives programs on one machine a network with links of a known
// rate, for measurements that have to be those of several machines.
//
// A network has hosts. A host's programs talk to those of other hosts through its
// card, which sends so many bits a second, and receives as many. This process
// talks to every host beside the cards, without a bound: what a measurement asks
// of the hosts is not what it measures.
//
// Where the machine allows it, hosts are network namespaces, and the kernel
// shapes the links: programs and their TCP are then as they are on machines of
// their own. Elsewhere a relay in this process stands between hosts, see [Relay].
package netlab

import (
	"errors"
	"fmt"
)

// The kinds of networks.
const (
	// Namespaces is a network of the kernel's. It needs Linux, root, and the
	// programs ip and tc.
	Namespaces = "namespaces"
	// Relay is a network of connections through this process. It needs nothing.
	// A card's bound is on what its host sends over connections that others have
	// opened to it, and on what it receives over them; what a host sends over
	// connections that it has opened itself is bounded by the receiver's card.
	Relay = "relay"
)

// Bounds of [Config].
const (
	MaxHosts = 100
	MinRate  = 100_000         // bits a second
	MaxRate  = 100_000_000_000 // bits a second
)

// Config says what network to make.
type Config struct {
	Hosts int    // 1 to MaxHosts
	Rate  int64  // bits a second that a card sends, and receives; 0: no bound
	Kind  string // Namespaces or Relay; empty: Namespaces, or Relay if that fails
}

// Validate returns an error that names every mistake, or nil.
func (c Config) Validate() error {
	var errs []error
	if c.Hosts < 1 || c.Hosts > MaxHosts {
		errs = append(errs, fmt.Errorf("netlab: Hosts is %d, want 1 to %d", c.Hosts, MaxHosts))
	}
	if c.Rate != 0 && (c.Rate < MinRate || c.Rate > MaxRate) {
		errs = append(errs, fmt.Errorf("netlab: Rate is %d bits a second, want 0 (no bound), or %d to %d", c.Rate, MinRate, int64(MaxRate)))
	}
	if c.Kind != "" && c.Kind != Namespaces && c.Kind != Relay {
		errs = append(errs, fmt.Errorf("netlab: Kind is %q, want %s, %s, or empty for what the machine allows", c.Kind, Namespaces, Relay))
	}
	return errors.Join(errs...)
}

// Host is a machine in a network.
type Host struct {
	// Listen is the address, host and port, at which a program of this host waits
	// for those of others, and Address the one under which they find it.
	Listen, Address string
	// Client is the address at which a program of this host waits for this
	// process.
	Client string
	// run is what a command line begins with.
	run []string
	// sent returns the bytes that its card has sent.
	sent func() (uint64, error)
}

// Sent returns how many bytes have left by the host's card, with what they are
// wrapped in if the kernel counts them. A relay counts what others have read from
// the host over connections that they have opened, and no more.
func (h Host) Sent() (uint64, error) { return h.sent() }

// Command returns the command line that runs a program on this host.
func (h Host) Command(args ...string) []string { return append(append([]string{}, h.run...), args...) }

// Network is a number of hosts.
type Network struct {
	Kind  string
	Hosts []Host
	// Why says why the kind is Relay though none was asked for, or nil.
	Why   error
	close func() error
}

// Close takes the network down. The programs of its hosts must have ended.
func (n *Network) Close() error { return n.close() }

// New makes a network.
func New(c Config) (*Network, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	if c.Kind == Relay {
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

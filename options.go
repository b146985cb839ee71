// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package weft

import (
	"errors"
	"log/slog"
	"maps"
	"net"
	"slices"
	"time"

	"github.com/weftraft/weft/internal/address"
	"github.com/weftraft/weft/internal/book"
	"github.com/weftraft/weft/internal/invalid"
	"github.com/weftraft/weft/rawnode/transport"
)

// Options configures a [Node]. Cluster, ID, Dir, and Listen or Peers must be set.
type Options struct {
	// Cluster is a number of the user's own, 1 or more. Nodes of different clusters refuse each
	// other.
	Cluster uint64
	// ID is the node's identity in all groups, 1 to [MaxID]. An id is used once: a node that was
	// removed, or has lost its directory, comes back under another id.
	ID uint64
	// Dir is the directory for the log and the addresses of members, made if there is none. It
	// belongs to this node as long as the node is a member.
	Dir string
	// Listen is the address to listen at, host:port; empty means Peers[ID].
	Listen string
	// Advertise is the address at which other nodes reach this one; empty means Peers[ID], or,
	// without one, the address of the listener. It is replicated: see [Group.SetAddress].
	Advertise string
	// Peers are the addresses of the first members, this node among them, and the same at each
	// of these nodes. A group that has no log yet begins with these members
	// ([FirstMembers] names others). Empty means that this node is alone. For a node that joins, Peers are
	// members to ask. Replicated addresses are newer than Peers, unless Peers has changed
	// since the last start.
	Peers map[uint64]string
	// Join says that this node begins no group, and waits to be added.
	Join bool
	// TLS names the files by which nodes prove their identity; empty means that a node's word is
	// believed.
	TLS TLS

	// TickInterval is the clock of all groups, 1 ms to 1 h; 0 means 100 ms. An election begins after 10 to 20
	// ticks without a leader.
	TickInterval time.Duration
	// BudgetBytes bounds the commands that wait, over all groups; 0 means 256 MiB. Commands
	// beyond the bound are refused with [ErrOverloaded], and a command that is larger than the bound
	// with [ErrTooLarge].
	BudgetBytes int64
	// Balance is the time between two looks at which node leads how many groups; 0
	// means 5 s, and less than 0 never.
	Balance time.Duration
	// Metrics, unless nil, is told what the node and its groups do: for Prometheus a *metrics.Set.
	Metrics Metrics `json:"-"`
	// Calls, unless nil, is called when a group is opened, and returns what [Group.Propose] and
	// [Group.Read] call in place of the group's host: for OpenTelemetry the result of tracing.Wrap.
	Calls func(group uint64, host Calls) Calls `json:"-"`
	// Logger is told what an operator may want to know; nil means silence.
	Logger *slog.Logger
}

// TLS names PEM files. When a file changes, the next connection uses the new one.
type TLS struct {
	Cert string // the node's certificate, and intermediates behind it, if any
	Key  string // its private key
	CA   string // the authorities whose certificates are believed
}

// Bounds of options.
const (
	// MaxID is the highest id of a node.
	MaxID = book.MaxID
	// MaxAddressBytes bounds an address.
	MaxAddressBytes = address.MaxBytes

	defaultTick    = 100 * time.Millisecond
	maxTick        = time.Hour
	defaultBudget  = 256 << 20
	defaultBalance = 5 * time.Second
)

func (o Options) withDefaults() Options {
	o.Peers = maps.Clone(o.Peers)
	if o.Listen == "" {
		o.Listen = o.Peers[o.ID]
	}
	if o.Advertise == "" {
		o.Advertise = o.Peers[o.ID]
	}
	if o.TickInterval == 0 {
		o.TickInterval = defaultTick
	}
	if o.BudgetBytes == 0 {
		o.BudgetBytes = defaultBudget
	}
	if o.Balance == 0 {
		o.Balance = defaultBalance
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return o
}

// Validate returns an error that names every mistake, or nil.
func (o Options) Validate() error {
	o = o.withDefaults()
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, invalid.Errorf("Options."+format, args...)) }
	if o.Cluster == 0 {
		bad("Cluster is 0, want 1 or more, the same at all nodes")
	}
	if o.ID == 0 || o.ID > MaxID {
		bad("ID is %d, want 1 to %d", o.ID, uint64(MaxID))
	}
	if o.Dir == "" {
		bad("Dir is empty, want a directory of this node's own")
	}
	if o.Listen == "" {
		bad("Listen is empty, and so is Peers[%d]: want an address such as 127.0.0.1:7000", o.ID)
	} else if _, _, err := net.SplitHostPort(o.Listen); err != nil {
		bad("Listen is %q, want host:port: %w", o.Listen, err)
	}
	if o.Advertise != "" {
		if err := address.Check(o.Advertise); err != nil {
			bad("Advertise: %w", err)
		}
		for _, id := range slices.Sorted(maps.Keys(o.Peers)) {
			if !o.Join && id != o.ID && o.Peers[id] == o.Advertise { // a node that joins may replace another
				bad("Advertise is %s, and so is Peers[%d]: want an address for each node", o.Advertise, id)
			}
		}
	}
	errs = append(errs, o.validatePeers()...)
	if o.TLS != (TLS{}) && (o.TLS.Cert == "" || o.TLS.Key == "" || o.TLS.CA == "") {
		bad("TLS is %+v, want all three files, or none", o.TLS)
	}
	if o.TickInterval < time.Millisecond || o.TickInterval > maxTick {
		bad("TickInterval is %v, want 1ms to %v", o.TickInterval, maxTick)
	}
	if o.BudgetBytes < 0 {
		bad("BudgetBytes is %d, want 0 or more", o.BudgetBytes)
	}
	return errors.Join(errs...)
}

func (o Options) validatePeers() (errs []error) {
	bad := func(format string, args ...any) { errs = append(errs, invalid.Errorf("Options.Peers"+format, args...)) }
	seen := map[string]uint64{}
	for _, id := range slices.Sorted(maps.Keys(o.Peers)) {
		at := o.Peers[id]
		if id == 0 || id > MaxID {
			bad(" has the id %d (%s), want 1 to %d", id, at, uint64(MaxID))
		}
		if err := address.Check(at); err != nil {
			bad("[%d]: %w", id, err)
		} else if other, twice := seen[at]; twice {
			bad("[%d] and Peers[%d] are both %s: want an address for each node", other, id, at)
		}
		seen[at] = id
	}
	_, named := o.Peers[o.ID]
	switch {
	case o.Join && len(o.Peers) == 0:
		bad(" is empty: a node that joins needs the address of at least one member")
	case o.Join && named && len(o.Peers) == 1:
		bad(" has this node (%d) alone: a node that joins needs the address of at least one member", o.ID)
	case !o.Join && len(o.Peers) > 0 && !named:
		bad(" are %v, this node (%d) is not among them: name the same first members at all of them, or set Join if this node is to be added to a group that runs",
			slices.Sorted(maps.Keys(o.Peers)), o.ID)
	}
	return errs
}

// book returns what the book is told.
func (o Options) book() book.Config {
	return book.Config{Cluster: o.Cluster, Node: o.ID, Dir: o.Dir, Peers: o.Peers, Logger: o.Logger}
}

// transportConfig returns what the transport is told.
func (o Options) transportConfig(peers map[uint64]string) transport.Config {
	c := transport.Config{Cluster: o.Cluster, Node: o.ID, Listen: o.Listen, Peers: peers, Logger: o.Logger}
	c.TLS.Cert, c.TLS.Key, c.TLS.CA = o.TLS.Cert, o.TLS.Key, o.TLS.CA
	return c
}

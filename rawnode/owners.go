// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package rawnode

import (
	"errors"
	"fmt"
	"slices"

	"github.com/weftraft/weft/internal/replica"
	"github.com/weftraft/weft/storage"
)

// ownedLog is a Log that knows its node, cluster and group.
type ownedLog interface {
	Log
	// Identity returns cluster and node, ID the group.
	Identity() storage.Identity
	ID() uint64
	// Acquire reserves the log for one host until release is called, or returns an error if the log
	// is reserved already.
	Acquire() (release func(), err error)
}

// ownedTransport is a Transport that knows its node and cluster.
type ownedTransport interface {
	Transport
	Identity() storage.Identity
}

// addressBook is a Transport that knows the members with an address.
type addressBook interface {
	HasAddress(node uint64) bool
}

var _ ownedLog = (*storage.Group)(nil)

// checkOwners returns an error that names all parts of another node, another group, or another
// cluster.
func (c Config) checkOwners() error {
	var errs []error
	bad := func(format string, args ...any) {
		errs = append(errs, fmt.Errorf("%w: "+format, append([]any{ErrInvalid}, args...)...))
	}
	log, hasLog := c.Replica.Log.(ownedLog)
	tr, hasTransport := c.Transport.(ownedTransport)
	if hasLog {
		if node := log.Identity().Node; node != c.Replica.ID {
			bad("Replica.ID is %d, Replica.Log is that of node %d: open the log of this node", c.Replica.ID, node)
		}
		if group := log.ID(); group != c.Replica.Group {
			bad("Replica.Group is %d, Replica.Log is that of group %d: give each group its own log", c.Replica.Group, group)
		}
	}
	if hasTransport {
		if node := tr.Identity().Node; node != c.Replica.ID {
			bad("Replica.ID is %d, Transport is that of node %d: give the transport of this node", c.Replica.ID, node)
		}
	}
	if hasLog && hasTransport {
		if of, to := log.Identity().Cluster, tr.Identity().Cluster; of != to {
			bad("Replica.Log is that of cluster %d, Transport is that of cluster %d: want one cluster", of, to)
		}
	}
	return errors.Join(errs...)
}

// acquireLog reserves the log if the log is an ownedLog.
func (c Config) acquireLog() (release func(), err error) {
	if log, ok := c.Replica.Log.(ownedLog); ok {
		return log.Acquire()
	}
	return func() {}, nil
}

// lookForAddresses gives the replica the members without an address in the transport, and logs a
// new set of such members.
func (h *Host) lookForAddresses(r *replica.Replica) {
	book, ok := h.cfg.Transport.(addressBook)
	if !ok || h.ticks%uint64(h.cfg.Replica.ElectionTick) != 0 {
		return
	}
	var lacking []uint64
	conf := r.Members()
	for _, ids := range [...][]uint64{conf.GetVoters(), conf.GetVotersOutgoing(), conf.GetLearners(), conf.GetLearnersNext()} {
		for _, id := range ids {
			if id != h.cfg.Replica.ID && !book.HasAddress(id) && !slices.Contains(lacking, id) {
				lacking = append(lacking, id)
			}
		}
	}
	if r.Unaddressed(lacking) {
		h.cfg.Logger.Warn("the transport has no address for members, nothing can be sent to them",
			"node", h.cfg.Replica.ID, "group", h.cfg.Replica.Group, "members", lacking)
	}
}

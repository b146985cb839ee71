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

// OwnedLog is an optional interface of a [Log] that knows whose it is:
// *storage.Group does. [New] refuses the log of another node or group, and a log
// that another host of this process still uses: two groups in one log would each
// be told, after a restart, that the other's commands are its own.
type OwnedLog interface {
	Log
	// Identity returns cluster and node, ID the group.
	Identity() storage.Identity
	ID() uint64
	// Acquire reserves the log for one host until release is called, or returns an
	// error if it is reserved.
	Acquire() (release func(), err error)
}

// OwnedTransport is an optional interface of a [Transport] that knows whose it is.
// [New] refuses the transport of another node, or of another cluster than the
// log's.
type OwnedTransport interface {
	Transport
	// Identity returns cluster and node.
	Identity() storage.Identity
}

// AddressBook is an optional interface of a [Transport] that knows whom it can
// send to. A host logs a member that it cannot send to, once, and names it in
// [Status.Unaddressed] and in the errors of calls that time out. It is no error, as
// the address may come later.
type AddressBook interface {
	// HasAddress reports whether messages for a node can be sent. It does not wait.
	HasAddress(node uint64) bool
}

var _ OwnedLog = (*storage.Group)(nil)

// checkOwners returns an error that names all parts which are not of this node,
// this group, or of one cluster.
func (c Config) checkOwners() error {
	var errs []error
	bad := func(format string, args ...any) {
		errs = append(errs, fmt.Errorf("%w: "+format, append([]any{ErrInvalid}, args...)...))
	}
	log, ownedLog := c.Replica.Log.(OwnedLog)
	tr, ownedTransport := c.Transport.(OwnedTransport)
	if ownedLog {
		if node := log.Identity().Node; node != c.Replica.ID {
			bad("Replica.ID is %d, Replica.Log is that of node %d: open the log of this node", c.Replica.ID, node)
		}
		if group := log.ID(); group != c.Replica.Group {
			bad("Replica.Group is %d, Replica.Log is that of group %d: give each group its own log", c.Replica.Group, group)
		}
	}
	if ownedTransport {
		if node := tr.Identity().Node; node != c.Replica.ID {
			bad("Replica.ID is %d, Transport is that of node %d: give the transport of this node", c.Replica.ID, node)
		}
	}
	if ownedLog && ownedTransport {
		if of, to := log.Identity().Cluster, tr.Identity().Cluster; of != to {
			bad("Replica.Log is that of cluster %d, Transport is that of cluster %d: want one cluster", of, to)
		}
	}
	return errors.Join(errs...)
}

// acquireLog reserves the log, if it can be.
func (c Config) acquireLog() (release func(), err error) {
	if log, ok := c.Replica.Log.(OwnedLog); ok {
		return log.Acquire()
	}
	return func() {}, nil
}

// lookForAddresses tells the replica which members the transport cannot send to,
// and the log of those that are new among them.
func (h *Host) lookForAddresses(r *replica.Replica) {
	book, ok := h.cfg.Transport.(AddressBook)
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

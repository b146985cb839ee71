// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package replica

import (
	"github.com/weftraft/weft/internal/names"
	"github.com/weftraft/weft/internal/wire"
)

// Names has a leader send names in the place of data that came from the receiver, or that another member
// in the receiver's zone passes on: see package names. Every replica takes names, and passes data on.
type Names struct {
	// Announced reports whether a peer has announced that it takes names of its own batches; nil means that
	// none does. It does not wait.
	Announced func(peer uint64) bool
	// Zone returns the zone of a node, this one or another, empty if it is not known; nil means that there are no
	// relays. Relayed reports whether a peer has announced that it takes names with relays, and passes data
	// on. Neither waits.
	Zone    func(node uint64) string
	Relayed func(peer uint64) bool
	// Runs reports whether a peer has announced that it takes one name for many entries; nil means that none does. It does not
	// wait.
	Runs func(peer uint64) bool

	// The next fields are for simulators; each may be nil. Named sees a message with names and its
	// original, as it leaves; Joined sees a message with names and the result, as it is joined. Forget
	// reports whether a batch looked for is to be missing.
	Named, Joined func(m wire.Message, whole wire.Raft)
	Forget        func() bool
}

// NameCounts count since the start of a replica.
type NameCounts struct {
	names.GiverCounts
	names.TakerCounts
	names.RelayCounts
}

func (n *Names) joined(m wire.Message, whole wire.Raft) {
	if n != nil && n.Joined != nil {
		n.Joined(m, whole)
	}
}

func (n *Names) forgets() bool { return n != nil && n.Forget != nil && n.Forget() }

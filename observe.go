// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package weft

import (
	"context"

	"github.com/weftraft/weft/internal/invalid"
	"github.com/weftraft/weft/rawnode"
	"github.com/weftraft/weft/storage"
)

// Metrics is told what a node and its groups do: *metrics.Set, of the module
// github.com/weftraft/weft/metrics, is one. The recorders get the durations of syncs, calls and
// snapshots; numbers that a part counts itself are asked of the node.
type Metrics interface {
	// Log returns the recorder of the log, and Host the one of a group. A group that is opened again
	// may get the same recorder.
	Log() storage.Recorder
	Host(group uint64) rawnode.Recorder
	// NodeOpened is called when a node is open, and closed when the node has closed.
	NodeOpened(n *Node) (closed func())
}

// Calls are the calls of a group that can be traced: see [Options.Calls].
type Calls interface {
	Propose(ctx context.Context, command []byte) (Result, error)
	ReadWith(ctx context.Context, o rawnode.ReadOptions) (ReadResult, error)
}

// Groups returns the open groups, by ascending id.
func (n *Node) Groups() []*Group { return n.opened() }

// recordLog returns the recorder of the log, or nil.
func (o Options) recordLog() storage.Recorder {
	if o.Metrics == nil {
		return nil
	}
	return o.Metrics.Log()
}

// recordGroup returns the recorder of a group, or nil.
func (o Options) recordGroup(id uint64) rawnode.Recorder {
	if o.Metrics == nil {
		return nil
	}
	return o.Metrics.Host(id)
}

// wrap returns the calls of a group's host, as Options.Calls wants these.
func (o Options) wrap(group uint64, host Calls) (Calls, error) {
	if o.Calls == nil {
		return host, nil
	}
	wrapped := o.Calls(group, host)
	if invalid.IsNil(wrapped) {
		return nil, invalid.Errorf("Options.Calls returned nil for group %d, want the calls that it was given, or others around these", group)
	}
	return wrapped, nil
}

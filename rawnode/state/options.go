// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package state

import (
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/weftraft/weft/rawnode/session"
	"github.com/weftraft/weft/rawnode/state/internal/envelope"
	"github.com/weftraft/weft/rawnode/state/internal/frames"
)

// Bounds and defaults of [Options], in bytes.
const (
	// DefaultCheckpointBytes is for how many bytes of commands a checkpoint is made.
	DefaultCheckpointBytes = 16 << 20
	// MaxIdentityBytes bounds Options.Identity.
	MaxIdentityBytes = 1 << 10
	// MaxHostBytes bounds what a host keeps beside the state.
	MaxHostBytes = 16 << 20

	// commandCost is what a command counts beside its bytes.
	commandCost = 64
)

// Options configures [OpenMemory]. Dir must be set; all else has a useful zero value.
type Options struct {
	// Dir is a directory for the checkpoints of this state, and of no other. It is made
	// if it is not there.
	Dir string
	// FS is the file system; nil means the operating system's.
	FS vfs.FS
	// Identity, unless empty, says whose state it is, such as "cluster 7, node 2, group
	// 1". It is written into each checkpoint and compared by OpenMemory: a node does not
	// begin on another node's state. At most [MaxIdentityBytes].
	Identity string
	// CheckpointBytes is for how many bytes of applied commands, with 64 for each
	// command, a checkpoint is made; 0 means [DefaultCheckpointBytes], or the size of
	// the last checkpoint, if that is more. The log replays as much after a restart.
	CheckpointBytes int64
	// Inline has checkpoints made by Apply itself, not by a goroutine: for simulations,
	// where the same seed is to give the same run.
	Inline bool
	// Sessions, unless nil, has clients' sessions: a command that is proposed again takes
	// effect once. Each command then has an envelope: see [Plain], [OpenSession],
	// [InSession], [EndSession]. All replicas must have the same limits, always: hosts compare
	// them, and OpenMemory refuses other limits than before ([ErrLimits]). ResultBytes is at most 8 MiB, Results at most 1,048,576, and a session keeps no result above 1 MiB: see [ErrResult].
	Sessions *session.Limits
	// Logf receives a line for each event of interest to an operator; nil means silence.
	Logf func(format string, args ...any)
}

// Errors of the adapter, all wrapped with details.
var (
	// ErrInvalid wraps mistakes in options and calls.
	ErrInvalid = errors.New("state: invalid")
	// ErrIdentity says that the directory holds the state of another owner.
	ErrIdentity = errors.New("state: the directory belongs to another state")
	// ErrLimits says that a state was written with other limits of sessions than it is opened with.
	ErrLimits = envelope.ErrLimits
	// ErrLocked says that the directory is in use.
	ErrLocked = errors.New("state: the directory is in use")
	// ErrDamaged says that a checkpoint, or a snapshot from a peer, is not what was
	// written. Nothing was changed.
	ErrDamaged = frames.ErrDamaged
	// ErrVersion says that a checkpoint or snapshot has a format of another version.
	ErrVersion = frames.ErrVersion
	// ErrInterrupted says that the host has ended; see [rawnode.Interruptible].
	ErrInterrupted = errors.New("state: interrupted, as the host has ended")
	// ErrClosed says that the state is closed.
	ErrClosed = errors.New("state: closed")
)

// Validate returns an error that names every mistake, or nil.
func (o Options) Validate() error {
	var errs []error
	bad := func(field string, value any, want string) {
		errs = append(errs, fmt.Errorf("%w: Options.%s is %v, want %s", ErrInvalid, field, value, want))
	}
	if o.Dir == "" {
		bad("Dir", `""`, "a directory for the state's checkpoints")
	}
	if len(o.Identity) > MaxIdentityBytes {
		bad("Identity", fmt.Sprintf("%d bytes", len(o.Identity)), fmt.Sprintf("at most %d", MaxIdentityBytes))
	}
	if o.CheckpointBytes < 0 {
		bad("CheckpointBytes", o.CheckpointBytes, "0 or more")
	}
	if o.Sessions != nil {
		if err := envelope.CheckLimits(*o.Sessions); err != nil {
			errs = append(errs, fmt.Errorf("%w: Options.Sessions: %w", ErrInvalid, err))
		}
	}
	return errors.Join(errs...)
}

func (o *Options) setDefaults() {
	if o.FS == nil {
		o.FS = vfs.Default
	}
	if o.Logf == nil {
		o.Logf = func(string, ...any) {}
	}
}

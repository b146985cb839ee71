// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package storage

import (
	"errors"
	"fmt"
)

var (
	// ErrInvalid wraps the caller's mistake in a write or an option. The call changed
	// nothing.
	ErrInvalid = errors.New("storage: invalid")

	// ErrFailed wraps the first failed write or sync of the engine, which has
	// refused every write since. Find the cause (a broken disk), then close the
	// engine and open it again.
	ErrFailed = errors.New("storage: the engine has failed and takes no more writes")

	// ErrFull says that the disk has no room. Queued writes wait and are tried again
	// until there is room; nothing is lost, and no queued write is durable yet. See
	// [Group.Stalled].
	ErrFull = errors.New("storage: the disk is full and writes wait for room")

	// ErrLate says that writes wait, and none has ended for a time that a host does not accept: the
	// disk hangs, or is too slow. Hosts that watch [Group.Progress] return it; the engine does not.
	ErrLate = errors.New("storage: the disk is late")

	// ErrClosed says that the engine was closed before or during the call.
	ErrClosed = errors.New("storage: the engine is closed")

	// ErrBusy says that the queue of writes is over its budget, and the call could not
	// wait: see [Options.QueueBytes].
	ErrBusy = errors.New("storage: too many bytes wait to be written")

	// ErrLocked says that another engine has the directory open.
	ErrLocked = errors.New("storage: the directory is in use")

	// ErrTaken says that the log of a group is in use: see [Group.Acquire].
	ErrTaken = errors.New("storage: the group's log is in use")

	// ErrIdentity says that the directory belongs to another cluster or node.
	ErrIdentity = errors.New("storage: the directory belongs to another node")

	// ErrVersion says that the directory was written by a newer format.
	ErrVersion = errors.New("storage: the directory has an unknown format version")

	// ErrDamaged is matched by every [DamageError].
	ErrDamaged = errors.New("storage: the log is damaged")
)

// DamageError names a place in the log whose contents differ from the bytes written.
// Nothing was changed on disk: restore the directory from a copy, or remove the node
// from its groups and add it again with an empty directory.
type DamageError struct {
	Segment uint64 // number of the segment file, in its name in hexadecimal digits; 0 for the file IDENTITY
	Offset  int64  // byte in the segment, or -1 if no single place is to blame
	Group   uint64 // the group with missing data; see Index
	Index   uint64 // first log index known to be lost; 0 if unknown, and then Group may be unknown too
	Reason  string // the finding
}

// Error implements error.
func (d *DamageError) Error() string {
	where := "identity"
	if d.Segment > 0 {
		where = fmt.Sprintf("segment %d (%s)", d.Segment, segmentName(d.Segment))
	}
	if d.Offset >= 0 {
		where += fmt.Sprintf(", byte %d", d.Offset)
	}
	if d.Index > 0 {
		where += fmt.Sprintf(", group %d, index %d", d.Group, d.Index)
	} else if d.Group > 0 {
		where += fmt.Sprintf(", group %d", d.Group)
	}
	return fmt.Sprintf("%v: %s: %s; nothing was changed, restore the directory or replace the node", ErrDamaged, where, d.Reason)
}

// Is makes errors.Is(err, ErrDamaged) true.
func (d *DamageError) Is(target error) bool { return target == ErrDamaged }

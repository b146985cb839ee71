// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package weft

import (
	"github.com/weftraft/weft/rawnode"
)

// The types of package rawnode that a service meets, under the names of this package.
type (
	// StateMachine is the replicated state of a service: see [rawnode.StateMachine].
	StateMachine = rawnode.StateMachine
	// Batch is what one call of StateMachine.Apply applies: see [rawnode.Batch].
	Batch = rawnode.Batch
	// View is an open view of a state: see [rawnode.Snapshot].
	View = rawnode.Snapshot
	// ViewMeta describes a view: see [rawnode.SnapshotMeta].
	ViewMeta = rawnode.SnapshotMeta
	// Result is the outcome of a command: see [rawnode.Result].
	Result = rawnode.Result
	// ReadResult says what a read may rest on: see [rawnode.ReadResult].
	ReadResult = rawnode.ReadResult
	// CallError is the error of a call: see [rawnode.CallError].
	CallError = rawnode.CallError
)

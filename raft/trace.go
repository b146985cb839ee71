// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package raft

// StateTraceDeployed reports whether state machine events are traced. Weft
// checks its core by simulation and by lockstep with upstream instead, so this
// build traces nothing.
const StateTraceDeployed = false

// TraceLogger would receive the traced events.
type TraceLogger interface{}

// TracingEvent would be one traced event.
type TracingEvent struct{}

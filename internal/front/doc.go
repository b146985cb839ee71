// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

// Package front has what stands between a user's state machine and its host in package weft: the [Machine],
// which takes the module's own commands out of the log, the [Ending] of what may hang, and the notes of a [Group]
// that is out of service.
package front

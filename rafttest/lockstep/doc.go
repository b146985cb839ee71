// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

// Package lockstep runs Weft's raft package and upstream's library side by side
// on the same random schedules, and compares everything that hosts can see
// after each call. README.md says what is compared and how to reproduce a
// difference.
package lockstep

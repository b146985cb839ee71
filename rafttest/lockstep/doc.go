// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

// Package lockstep runs Weft's raft package and upstream's library side by side on the same random
// schedules, and compares everything visible to hosts after each call. README.md names the compared
// values, and tells how to reproduce a difference.
package lockstep

// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

//go:build race

package gossip

const raceEnabled = true

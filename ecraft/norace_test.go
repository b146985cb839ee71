// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !race

package ecraft_test

const raceEnabled = false

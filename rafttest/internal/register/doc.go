// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

// Package register checks whether the history that clients saw of a register is
// linearizable. Package porcupine, a dependency of this module only, does the work.
package register

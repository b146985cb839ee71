// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

// Package wefttest has what tests of a service on package rawnode need, and
// conformance suites for the parts that a service may write itself.
//
// A suite takes a factory and holds what the factory makes to the contract of its
// interface. Each rule has a name, and each violation says what was done, what was
// found, and what the contract asks for:
//
//	func TestState(t *testing.T) {
//		wefttest.TestStateMachine(t, wefttest.StateMachineFactory{Open: open, Command: command, Read: read})
//	}
package wefttest

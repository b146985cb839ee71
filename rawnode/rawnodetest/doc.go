// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

// Package rawnodetest has what tests of a service on package rawnode need: clusters in
// virtual time, and conformance suites for the parts that a service may write itself.
//
// A [Cluster] is a group of nodes in one goroutine and in virtual time, decided by a
// seed: partitions, crashes, restarts, delays and losses happen when the test says so,
// or are drawn, and a failing run repeats.
//
//	func TestService(t *testing.T) {
//		c := rawnodetest.NewCluster(t, rawnodetest.ClusterOptions{Seed: 7, StateMachine: open})
//		c.Chaos(time.Minute, rawnodetest.Faults{})
//		c.MustPropose(1, command)
//		c.Run(time.Minute)
//		c.Agree(time.Minute, read)
//	}
//
// A suite takes a factory and holds what the factory makes to the contract of its
// interface. Each rule has a name, and each violation says what was done, what was
// found, and what the contract asks for:
//
//	func TestState(t *testing.T) {
//		rawnodetest.TestStateMachine(t, rawnodetest.StateMachineFactory{Open: open, Command: command, Read: read})
//	}
package rawnodetest

// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

// Package vnet runs groups of real cores over a model of a network, in virtual
// time: what a protocol costs in bytes and in time, exactly and quickly.
//
// Each node is a raft.RawNode with asynchronous storage writes. Around it are
// models: a processor that takes no time, or so much a message, a disk with group
// commit, a network card shared by all that the node sends, and for each peer a
// connection with a rate, a delay, jitter and stalls. A host beside the core may ask it
// things (Do) and talk to other hosts over the same cards and links (Tell).
//
//	RawNode -> card (control before bulk before gossip) -> link -> RawNode
//	   `-----> disk (one sync at a time, for all that waits)
//
// A message takes its size, as encoded, divided by the rate of the card, then by
// that of the link; a connection keeps the order within a class. A run is a
// function of its options: no clock, no goroutine, no shared randomness.
//
// It measures; package rafttest looks for bugs. Still, replicas are compared at
// every index that they apply, and a run that goes wrong says so: see
// [Cluster.Err].
package vnet

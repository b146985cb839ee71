// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

// Command peers measures Weft beside other Raft libraries for Go: dragonboat, hashicorp/raft, and a
// minimal loop on go.etcd.io/raft. Each node is a process. All sides have the same work: a command is a
// key and a value, in the log of a majority and synced there before it is acknowledged, and applied to a
// Pebble database. Each library has the log that its authors advise, and its own transport.
//
//	peers bench     all sides in turns: clients behind gRPC, and in the leader's process
//	peers serve     one node
//
// It is a module of its own, because of what the other libraries require.
package main

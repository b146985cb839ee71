// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

// Package live runs a cluster of real etcd processes under load and faults, and checks the answers
// that its clients got.
//
// The members are processes on this machine, with sockets, data directories and fsync as in
// production. A fault is kill -9. Clients write, read and compare-and-swap through all members the
// whole time. Their history must be linearizable, revisions must rise in real time, and in the end
// every member must hold the same data.
package live

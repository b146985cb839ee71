// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

// Package tpcc runs the five transactions of TPC-C, as CockroachDB places them: a range
// is a Raft group with five replicas among the nodes, the leader of a range evaluates what concerns its
// rows, and the writes of a transaction are one batch, and so one entry, in each range.
//
// In virtual time, replicas are real ones, and all groups of a node share what the node has: see package machines.
// As five processes, nodes are those of package weft, and rows are in Pebble. Transactions, terminals and the check
// are the same.
//
// A transaction declares its rows, and takes their locks in one order: by range, then by kind of row, then
// by key, so that no two transactions wait for each other. The leader of a range has the range's lock
// table, in memory; leaders do not change in a run, and a run in which one does fails. With all locks
// held, the home range's leader evaluates the transaction, on its own applied rows and on those that other leaders have
// sent with their locks. A transaction with rows of other ranges commits in two phases:
//
//  1. each other range replicates its writes as an intent, which changes no row;
//  2. the home range replicates the home writes, together with a record of the transaction. The
//     transaction is committed when this entry is, and the client has its answer;
//  3. each other range replicates a commit, which moves the intent to its rows, and then lets go of the
//     locks there.
//
// No transaction is rolled back behind phase 1: the one New-Order in a hundred with an unknown item ends
// while it is evaluated. Recovery of a transaction whose home leader is lost is not run.
//
//	rows.go       keys, rows, commands, and what these do
//	fill.go       the rows at the beginning
//	locks.go      the lock table of a range
//	request.go    what leaders ask of each other, and answer
//	txn.go        the way of a transaction through its ranges
//	profiles.go   what the five transactions read and write
//	terminals.go  terminals, and the mix
//	load.go       ranges, the transactions under way, and what is measured
//	run.go        a run in virtual time
//	node.go       a node as a process, with the terminals of the ranges that it leads
//	real.go       a run of such processes
//	check.go      the consistency conditions, on each replica's own state
package tpcc

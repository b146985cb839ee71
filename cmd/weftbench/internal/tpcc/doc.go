// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

// Package tpcc runs TPC-C over several Raft groups in virtual time, in the way of CockroachDB: a key belongs to a range, a
// range is a group of five replicas, and the leaders of ranges are spread over machines, whose network cards all groups on
// a machine share. Transactions are evaluated where the leader of their home warehouse's range is, under locks, against the
// leader's own applied state. What they write becomes one entry for each range:
//
//	one range      lock, read, evaluate    one entry with the rows            applied at the leader: done, unlock
//	several        lock at each, in order  an entry with intents at each      applied at all leaders: done
//	                                       an entry that resolves, at each    applied there: unlock
//
// Every replica applies the committed bytes to rows of its own. In the end the consistency conditions of the specification
// are checked on every replica, and all replicas of a range must be equal.
//
// What is real is the core, its entries and their bytes on shared cards. What is a model: reads and locks at another
// range's leader take a network delay each way, and no bytes; processors take no time; and a client is such a delay away.
// There is no SQL, and tables are smaller than specified (see scale), which makes no entry smaller.
//
//	rows.go      keys and rows
//	replica.go   what a replica does with an entry
//	locks.go     the locks of a leader
//	load.go      the rows at the beginning
//	mix.go       terminals: which transaction, with which input, when
//	txns.go      the five transactions
//	run.go       groups on machines, and the way of a transaction
//	check.go     the consistency conditions
package tpcc

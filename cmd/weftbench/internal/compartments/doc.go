// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

// Package compartments runs deployments of Weft in virtual time: members, readers and gateways,
// each a process on a machine of its own with one processor, and clients in closed loops. Replicas
// are real ones ([github.com/weftraft/weft/internal/replica]), and all that a process does takes
// time of its processor, by the costs that are fitted to real processes (package costs).
//
//	plan.go      a deployment and its load
//	sim.go       the run of a plan: time, network, processes
//	member.go    a replica at a process
//	gateway.go   a gateway at a process
//	clients.go   clients, and what is measured of them
//	steps.go     one compartment after the other
//	names.go     what names save
//	readers.go   reads by the number of readers, and what readers cost the leader
//	deployments.go
//	             what a deployment costs, and what to add next
//	real.go      the same loads on real processes
//	report.go    the tables
package compartments

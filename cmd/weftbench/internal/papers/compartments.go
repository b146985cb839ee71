// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package papers

const (
	cloud        = "f = 1, empty commands, m5.2xlarge, 1 to 4000 clients"
	compartSides = "MultiPaxos, compartmentalized, unreplicated"
	compartOurs  = "real replicas in virtual time, one processor a machine, with the costs of real processes; logs on disks; commands of 16 B, of clients in shared frames; MultiPaxos is one leader with all its clients; one log a group, not one of all groups; no unreplicated side"
)

var compartmentalized = []Row{
	{Paper: "compartments", Number: "18a", Title: "MultiPaxos without batches", Setting: cloud, Sides: compartSides, Metric: "median latency by throughput",
		Published: []Claim{{"commands a second", "25000, 200000 (8x), 300000"}}, Ours: compartOurs, By: "compartments", Run: byClients(false)},
	{Paper: "compartments", Number: "18b", Title: "MultiPaxos with batches", Setting: cloud, Sides: compartSides, Metric: "median latency by throughput",
		Published: []Claim{{"commands a second", "200000, 900000 (4.5x), 1100000"}}, Ours: compartOurs, By: "compartments", Run: byClients(true)},
	{Paper: "compartments", Number: "18c", Title: "latency at 1, 10 and 100 clients", Setting: cloud, Sides: "MultiPaxos, Mencius, both compartmentalized, unreplicated", Metric: "median latency",
		Published: []Claim{{"one client: MultiPaxos, compartmentalized", "0.27 ms, 0.38 ms"}}, Ours: compartOurs, By: "compartments", Run: withFewClients},
	{Paper: "compartments", Number: "19", Title: "Mencius, with and without batches", Setting: cloud, Sides: "Mencius, compartmentalized, unreplicated", Metric: "median latency by throughput",
		Published: []Claim{{"commands a second", "30000, 250000 (8.3x)"}, {"with batches", "200000, 850000 (4.25x)"}},
		Ours:      compartOurs + "; Mencius' leaders in turns for one log are groups here, each with a leader and a log of its own", By: "compartments", Run: withLeaders},
	{Paper: "compartments", Number: "20a", Title: "MultiPaxos step by step, without batches", Setting: cloud, Sides: "proxy leaders, acceptor groups, replicas", Metric: "peak throughput",
		Published: []Claim{{"MultiPaxos, decoupled, 8 proxy leaders, two acceptor groups", "25000, 55000, 150000, 175000"}}, Ours: compartOurs + "; the steps are Weft's", By: "compartments", Run: byStep(false)},
	{Paper: "compartments", Number: "20b", Title: "MultiPaxos step by step, with batches", Setting: cloud, Sides: "batchers, unbatchers", Metric: "peak throughput",
		Published: []Claim{{"MultiPaxos, two batchers and unbatchers, more unbatchers", "200000, 500000, 900000"}}, Ours: compartOurs + "; the steps are Weft's", By: "compartments", Run: byStep(true)},
	{Paper: "compartments", Number: "7.3", Title: "S-Paxos (in the text)", Setting: cloud, Sides: "S-Paxos, compartmentalized", Metric: "peak throughput",
		Published: []Claim{{"commands a second", "22000, 180000 (8.2x)"}, {"with batches", "180000, 750000 (4.16x)"}},
		Reason:    "orders names of commands whose bytes are in a second durable store, which Weft has not: a node's state is a function of its log"},
}

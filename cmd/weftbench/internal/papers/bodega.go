// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package papers

const (
	bodegaSide  = "MultiPaxos, leader leases, EPaxos, PQR, PQR with leader leases, Quorum Leases, the same passive, Bodega"
	bodegaLoad  = "5 sites, 10 closed-loop clients near each, 1000 keys of 8 B, values of 128 B"
	bodegaOurs  = "real cores in virtual time, with processors; the round trips and responders are of the same kind of places; MultiPaxos is `ReadIndex`, PQR is `quorum read`; no batching of 1 ms. EPaxos and PQR with leader leases are not run: there is no honest driver of EPaxos, and PQR's variant was never better than leader leases"
	readMetric  = "throughput, latency by site"
	writeCost   = "a write waits for the farthest responder: from some share of writes on this costs more than local reads gain"
	chosenReads = "all keys are counted, which are drawn evenly; the paper shows one"
)

var bodega = []Row{
	{Paper: "bodega", Number: "1", Title: "where reads of one client go", Setting: "WAN, a client near a responder, 1% writes", Sides: "MultiPaxos, leader leases, Quorum Leases, Bodega", Metric: "share of reads that touch a node",
		Published: []Claim{{"Bodega", "all at the near responder"}, {"Quorum Leases", "a significant part goes to the leader"}},
		Ours:      bodegaOurs + "; the latency by site in place of the nodes touched", By: "reads", Run: normal("wan", 0.01), Behind: writeCost},
	{Paper: "bodega", Number: "T1", Title: "how long a write degrades reads", Setting: "GEO, one write", Sides: bodegaSide, Metric: "latency and length by round trips",
		Published: []Claim{{"Quorum Leases", "c + l, for 2N"}, {"Quorum Leases, passive", "c + l, for N"}, {"Bodega", "c to c + m/2, for m/2"}},
		Ours:      "real cores in virtual time, one write at a time, 400 reads a second at each responder", By: "reads", Run: held("geo"),
		Behind: "Weft without notes holds reads until the commit is known, and with notes until a majority has the write, as Bodega does, but safely"},
	{Paper: "bodega", Number: "8a", Title: "GEO, no writes", Setting: bodegaLoad, Sides: bodegaSide, Metric: readMetric, Published: bodegaNormal, Ours: bodegaOurs, By: "reads", Run: normal("geo", 0), Behind: writeCost},
	{Paper: "bodega", Number: "8b", Title: "GEO, 1% writes", Setting: bodegaLoad, Sides: bodegaSide, Metric: readMetric, Published: as8a, Ours: bodegaOurs, By: "reads", Run: normal("geo", 0.01), Behind: writeCost},
	{Paper: "bodega", Number: "8c", Title: "GEO, 10% writes", Setting: bodegaLoad, Sides: bodegaSide, Metric: readMetric, Published: as8a, Ours: bodegaOurs, By: "reads", Run: normal("geo", 0.1), Behind: writeCost},
	{Paper: "bodega", Number: "8d", Title: "WAN, no writes", Setting: bodegaLoad, Sides: bodegaSide, Metric: readMetric, Published: as8a, Ours: bodegaOurs, By: "reads", Run: normal("wan", 0), Behind: writeCost},
	{Paper: "bodega", Number: "8e", Title: "WAN, 1% writes", Setting: bodegaLoad, Sides: bodegaSide, Metric: readMetric, Published: as8a, Ours: bodegaOurs, By: "reads", Run: normal("wan", 0.01), Behind: writeCost},
	{Paper: "bodega", Number: "8f", Title: "WAN, 10% writes", Setting: bodegaLoad, Sides: bodegaSide, Metric: readMetric, Published: as8a, Ours: bodegaOurs, By: "reads", Run: normal("wan", 0.1), Behind: writeCost},
	{Paper: "bodega", Number: "9a", Title: "distribution of reads, no writes", Setting: "WAN, as 8", Sides: bodegaSide, Metric: "distribution of latency",
		Published: []Claim{{"all", "close to their best in theory"}}, Ours: bodegaOurs + "; " + chosenReads, By: "reads", Run: distribution(0, false)},
	{Paper: "bodega", Number: "9b", Title: "distribution of reads, 1% writes", Setting: "WAN, as 8", Sides: bodegaSide, Metric: "distribution of latency",
		Published: []Claim{{"Quorum Leases, passive", "about half the latency of Quorum Leases"}}, Ours: bodegaOurs + "; " + chosenReads, By: "reads", Run: distribution(0.01, false)},
	{Paper: "bodega", Number: "9c", Title: "distribution of reads, 10% writes", Setting: "WAN, as 8", Sides: bodegaSide, Metric: "distribution of latency",
		Published: []Claim{{"PQR, EPaxos", "tails of up to 100 ms"}, {"Quorum Leases", "like leader leases"}, {"Bodega", "local, but for the 20% at the site without a responder"}}, Ours: bodegaOurs + "; " + chosenReads, By: "reads", Run: distribution(0.1, false)},
	{Paper: "bodega", Number: "9d", Title: "distribution of writes", Setting: "WAN, as 8", Sides: bodegaSide, Metric: "distribution of latency",
		Published: []Claim{{"Quorum Leases, Bodega", "slightly higher"}}, Ours: bodegaOurs + "; 10% writes", By: "reads", Run: distribution(0.1, true)},
	{Paper: "bodega", Number: "10", Title: "reads after a write of their key", Setting: "WAN, open loop, 400 reads a second, one write", Sides: "Quorum Leases, the same passive, Bodega", Metric: "latency by time",
		Published: []Claim{{"Quorum Leases", "40 ms"}, {"Bodega", "degraded for 25 ms; reads are held, and released at its end"}},
		Ours:      "real cores in virtual time, 40 writes one after the other", By: "reads", Run: held("wan"),
		Behind: "Weft without notes holds reads until the commit is known, and with notes until a majority has the write, as Bodega does, but safely"},
	{Paper: "bodega", Number: "11", Title: "throughput by writes", Setting: "WAN, 1 to 50% writes", Sides: bodegaSide, Metric: "throughput",
		Published: []Claim{{"all but PQR with leader leases", "less with more writes"}}, Ours: bodegaOurs, By: "reads", Run: byWrites, Behind: writeCost},
	{Paper: "bodega", Number: "12", Title: "throughput by size of values", Setting: "WAN, 5% writes", Sides: bodegaSide, Metric: "throughput",
		Published: []Claim{{"small values", "little impact"}, {"large values", "less"}}, Ours: bodegaOurs + "; reads by a client at its node take no network, so large values cost writes only", By: "reads", Run: byValue, Behind: writeCost},
	{Paper: "bodega", Number: "13", Title: "a responder fails; the roster is changed", Setting: "WAN, one open-loop client at WI, half reads, 400 a second", Sides: "Bodega", Metric: "latency by time",
		Published: []Claim{{"a failed responder", "noticed after 1.1 s; then 2.6 s until its lease ends, with reads served until the notice"}, {"a change by a call", "75 ms"}},
		Ours:      "real cores in virtual time, the same times; Weft's leases grow no longer than what detects failures, so a lease ends with the notice", By: "reads", Run: rosterChanges},
	{Paper: "bodega", Number: "14", Title: "latency by responders", Setting: "WAN, 10% writes", Sides: "Bodega", Metric: "mean latency of reads and writes",
		Published: []Claim{{"more responders", "reads tend to zero, writes take longer"}}, Ours: bodegaOurs, By: "reads", Run: byResponders},
	{Paper: "bodega", Number: "15", Title: "latency by covered keys", Setting: "WAN, 10% writes", Sides: "Bodega", Metric: "mean latency of reads and writes",
		Published: []Claim{{"more keys", "reads get faster, writes slower"}}, Ours: bodegaOurs, By: "reads", Run: byCoverage},
	{Paper: "bodega", Number: "16", Title: "YCSB beside etcd and ZooKeeper", Setting: "WAN, 10000 keys, uniform and Zipf, workloads A, B, C, D, F", Sides: "EPaxos, PQR with leader leases, Quorum Leases, Bodega, etcd, ZooKeeper", Metric: "throughput, latency",
		Published: []Claim{{"Bodega", "as ZooKeeper, and keeps up with stale reads of etcd"}, {"C: reads of etcd and ZooKeeper, Bodega", "0.3 ms, 1.2 ms"}, {"etcd, ZooKeeper with sync", "reads above 50 ms"}},
		Ours:      bodegaOurs + "; uniform keys only, all sites are responders; etcd and ZooKeeper are processes, so that `--net real` runs them: etcd with its default reads and with stale ones, ZooKeeper with and without a sync before each read", By: "reads", Run: byYCSB, Real: ycsbBeside, Behind: writeCost},
}

var bodegaNormal = []Claim{{"Bodega's reads beside earlier protocols (8a to 8f)", "5.6x to 13.1x faster"}, {"10% writes, Quorum Leases", "almost back at leader leases"}, {"10% writes, Bodega", "close to zero near responders"}}

var as8a = []Claim{{"all", "as 8a"}}

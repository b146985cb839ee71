// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package papers

const (
	crosswordLoad  = "5 servers, 15 closed-loop clients, half gets of 8 B, sizes with a deviation of 10%"
	crosswordSide  = "MultiPaxos, Raft, RSPaxos, CRaft, Crossword"
	adaptiveOurs   = "virtual time: links and clients' distances, no processors, no batching of 1 ms; delays are 4 or 30 ms in each direction, with an exponential addition of 0.2 or 1 ms; MultiPaxos and Raft are `full copies`; CRaft waits for f + k servers, as its own paper has it"
	throughput     = "throughput and latency"
	profileOurs    = "neither database, but the commands of our own five transactions, in the deployment of 14: a command is what a transaction writes in one range, as rows of bytes. The databases' entries hold more: versions and indexes of rows, several writes in a batch, and what is written besides transactions, such as the load of tables; 8 times as much text per row stands for such rows"
	partitionsOurs = "virtual time; five groups on five machines, 1 Gbit/s, 4 ms in each direction, with logs, and processors whose costs are fitted (without the time of coding); clients beside each partition's leader, for the chain beside head and tail. The text has no distribution of TiDB's sizes: ours are 128 B to 290 KB, each order of magnitude as likely, so half of them have 4 KB and more. MultiPaxos and Raft are `full copies`, and these and Weft are real replicas; the others are drivers of a leader's or a chain's messages, and nothing fails. The first table, which is compared, counts all puts of a load of 1.3 s, over the time until each replica has received all that it is to have, so that what waits in the end counts: RSPaxos and CRaft leave followers with parts"
	tpccOurs       = "the published patch is of CockroachDB, and ours is not: the shape is to be compared, and not the number. Real replicas in virtual time, five of each range on 12 nodes, with processors whose costs are fitted (without the time of coding); five transactions over rows of bytes, with locks at leaders and intents across ranges; 24 ranges with two warehouses each and two terminals a warehouse, 30 customers a district and 1000 items, 0.5 s a cell after 0.3 s; 4 ms in each direction. All groups of a node share its link out and its link in, and each leader's policy hears what waits there for a follower, for all groups together, as in `Host`; what it learns of acknowledgements is of its own group"
	tpccBehind     = "the forced side codes entries below 4 KB, too, and never tries full copies (Weft is at 0.94 to 0.99 of it over five seeds with two failed); all nodes together send no fewer bytes than with full copies, and where all lead, their links have no room to give"
	noCommitRetold = "the model answers in the order of the log, as Raft does; slots of Paxos commit in any order"
)

// The paper cites several figures by the last number of a line of pictures; 8 to 12 are numbered here in
// the order of its text.
var crossword = []Row{
	{Paper: "crossword", Number: "1", Title: "payload sizes of two databases under TPC-C", Setting: "TiDB and CockroachDB", Sides: "the databases", Metric: "distribution of sizes",
		Published: []Claim{{"TiDB", "up to 290 KB"}, {"CockroachDB", "up to 63 MB"}, {"both", "a considerable portion of 4 KB and more"}},
		Ours:      profileOurs, By: "papers", Run: bySizes},
	{Paper: "crossword", Number: "3", Title: "shards a server and quorum sizes that survive f failures", Setting: "N = 3, 5, 7, 9", Sides: "MultiPaxos, Raft, RSPaxos, CRaft, Crossword", Metric: "valid pairs of shards and quorum",
		Published: []Claim{{"candidates at N = 5", "three: 3 of 3 shards with a quorum of 3, 2 with 4, 1 with 5"}, {"RSPaxos, CRaft", "outside: one shard, and a quorum of 4 at N = 5"}},
		Ours:      "the plane of Weft's levels: units are disjoint, so a follower needs fewer bytes at the same quorum", By: "papers", Run: levels},
	{Paper: "crossword", Number: "6a", Title: "critical path, 8 B, regional", Setting: crosswordLoad + ", 1 Gbit/s, 4 ms", Sides: crosswordSide, Metric: throughput,
		Published: []Claim{{"beside RSPaxos, CRaft", "1.9x"}, {"beside MultiPaxos, Raft", "as well"}},
		Ours:      adaptiveOurs, By: "adaptive", Run: critical(regional, 8)},
	{Paper: "crossword", Number: "6b", Title: "critical path, 128 KB, regional", Setting: crosswordLoad + ", 1 Gbit/s, 4 ms", Sides: crosswordSide, Metric: throughput,
		Published: []Claim{{"beside MultiPaxos, Raft", "2.0x"}, {"beside RSPaxos, CRaft", "as well"}},
		Ours:      adaptiveOurs, By: "adaptive", Run: critical(regional, 128<<10)},
	{Paper: "crossword", Number: "6c", Title: "critical path, 8 B and 128 KB, regional", Setting: crosswordLoad + ", 1 Gbit/s, 4 ms", Sides: crosswordSide, Metric: throughput,
		Published: []Claim{{"beside all others (with 6f)", "up to 2.1x"}},
		Ours:      adaptiveOurs + "; " + noCommitRetold, By: "adaptive", Run: critical(regional, 8, 128<<10)},
	{Paper: "crossword", Number: "6d", Title: "critical path, 8 B, wide area", Setting: crosswordLoad + ", 200 Mbit/s, 30 ms", Sides: crosswordSide, Metric: throughput,
		Published: []Claim{{"beside RSPaxos, CRaft (with 6a)", "1.9x"}},
		Ours:      adaptiveOurs, By: "adaptive", Run: critical(wide, 8)},
	{Paper: "crossword", Number: "6e", Title: "critical path, 128 KB, wide area", Setting: crosswordLoad + ", 200 Mbit/s, 30 ms", Sides: crosswordSide, Metric: throughput,
		Published: []Claim{{"beside MultiPaxos, Raft (with 6b)", "2.0x"}},
		Ours:      adaptiveOurs, By: "adaptive", Run: critical(wide, 128<<10)},
	{Paper: "crossword", Number: "6f", Title: "critical path, 8 B and 128 KB, wide area", Setting: crosswordLoad + ", 200 Mbit/s, 30 ms", Sides: crosswordSide, Metric: throughput,
		Published: []Claim{{"beside all others (with 6c)", "up to 2.1x"}},
		Ours:      adaptiveOurs + "; " + noCommitRetold, By: "adaptive", Run: critical(wide, 8, 128<<10)},
	{Paper: "crossword", Number: "7a", Title: "throughput by size of puts", Setting: crosswordLoad + ", 8 B to 256 KB, regional", Sides: "MultiPaxos, RSPaxos, Crossword", Metric: "throughput",
		Published: []Claim{{"size from which bandwidth is the limit", "4 KB"}, {"RSPaxos and Crossword beside MultiPaxos at 64 KB and more", "4x"}},
		Ours:      adaptiveOurs, By: "adaptive", Run: bySize, Real: byProcesses(rate, servers{5, 0})},
	{Paper: "crossword", Number: "7b", Title: "throughput by number of servers", Setting: "3, 5, 7, 9 servers, regional, sizes mixed", Sides: "MultiPaxos, RSPaxos, Crossword", Metric: "throughput",
		Published: []Claim{{"beside MultiPaxos", "up to 2.3x (with 7c)"}, {"beside RSPaxos", "up to 1.4x (with 7c)"}},
		Ours:      adaptiveOurs, By: "adaptive", Run: byNodes, Real: byProcesses(rate, servers{3, 0}, servers{7, 0})},
	{Paper: "crossword", Number: "7c", Title: "throughput by share of puts", Setting: "three shares of puts, 5 servers, regional", Sides: "MultiPaxos, RSPaxos, Crossword", Metric: "throughput",
		Published: []Claim{{"more puts", "a larger gain"}},
		Ours:      adaptiveOurs + "; the text does not name the shares: ours are 10%, 50% and 100%", By: "adaptive", Run: byPuts},
	{Paper: "crossword", Number: "7d", Title: "where the time of a put of 64 KB goes", Setting: "5 servers, regional, 64 KB", Sides: "MultiPaxos, RSPaxos, Crossword", Metric: "time by part; log space",
		Published: []Claim{{"accept messages and durability", "71% less"}, {"durable log", "913 MB beside 1467 MB, 38% less"}},
		Ours:      adaptiveOurs + "; no disks: what followers must store is what the leader sends", By: "adaptive", Run: breakdown},
	{Paper: "crossword", Number: "8", Title: "a trace of adaptability", Setting: "15 clients, puts of 64 KB, then 4 KB; links of 1 Gbit/s, then 100 Mbit/s, then 1 Gbit/s; then two servers with a tenth of bandwidth and ten times the delay; 15 s each", Sides: crosswordSide, Metric: "throughput, a point a second",
		Published: []Claim{{"Crossword", "the best of the others at all times"}},
		Ours:      adaptiveOurs, By: "adaptive", Run: adapt,
		Behind: "full copies need two answers of the two near followers only; Weft leaves the lagging followers out as well, and takes some seconds to fill their windows"},
	{Paper: "crossword", Number: "9", Title: "the leader is lost twice", Setting: "5 servers, 15 clients, 64 KB; the leader crashes after 15 s and after 55 s; timeouts of 1.5 s", Sides: crosswordSide, Metric: "throughput, a point a second",
		Published: []Claim{{"MultiPaxos, Raft", "a gap of the timeout and an election"}, {"Crossword", "a gap about twice as long"}, {"RSPaxos", "a far longer gap; nothing after the second"}, {"CRaft", "the longest gap: entries are stored again, whole"}},
		Ours:      "real cores in virtual time, lost after 3 s and 9 s; timeouts are drawn from 1 to 2 s, and are most of a gap; RSPaxos, CRaft and Crossword have no core with elections", By: "virtual", Run: leaderLostTwice},
	{Paper: "crossword", Number: "10", Title: "unbalanced assignment", Setting: "64 KB; followers' links of 1, 1, 0.4 and 0.1 Gbit/s", Sides: crosswordSide + " with 5, 5, 3, 1 shards", Metric: "throughput",
		Published: []Claim{{"beside MultiPaxos, Raft and the balanced policy", "1.4x"}},
		Ours:      adaptiveOurs + "; Weft gives each follower units by its link, without a setting", By: "adaptive", Run: unbalanced},
	{Paper: "crossword", Number: "11", Title: "staleness of reads at followers", Setting: "objects of 8 B, 1-shard configuration, three gaps of gossip", Sides: "MultiPaxos, Crossword", Metric: "versions behind, by writes a second",
		Published: []Claim{{"MultiPaxos", "close to zero"}, {"gap of 0", "like MultiPaxos"}, {"default gap", "400 KB"}},
		Ours:      "real cores: time from the leader's commit to the follower's apply, in place of versions; 64 KB, by load; Weft pushes units at once unless a gap is set", By: "virtual gossip", Run: staleness},
	{Paper: "crossword", Number: "12", Title: "bytes from the leader, and between followers", Setting: "64 KB, at MultiPaxos's throughput", Sides: "MultiPaxos, Crossword, Crossword with batched gossip", Metric: "use of links",
		Published: []Claim{{"batching of gossip", "13% less between followers"}},
		Ours:      "real cores: bytes for a byte of payload, by kind, in place of the use of links; the published policies are worked out", By: "virtual bytes", Run: traffic},
	{Paper: "crossword", Number: "13", Title: "YCSB-A over five partitions", Setting: "5 groups on 5 machines, sizes of TiDB", Sides: crosswordSide + ", Chain Replication", Metric: "latency by throughput",
		Published: []Claim{{"Crossword", "a higher maximum than MultiPaxos, a lower one than RSPaxos and CRaft"}},
		Ours:      partitionsOurs, By: "papers", Run: byPartitions},
	{Paper: "crossword", Number: "14", Title: "TPC-C over CockroachDB", Setting: "12 nodes, 200 warehouses, 400 workers", Sides: "Raft, 1 shard, Crossword", Metric: "transactions a second, latency",
		Published: []Claim{{"aggregate throughput", "1.32x"}, {"transactions that write", "up to 44% faster"}},
		Ours:      tpccOurs, By: "papers", Run: byTransactions, Real: transactionsByProcesses, Behind: tpccBehind},
	{Paper: "crossword", Number: "T1", Title: "the cost of the code", Setting: "(3, 2) coding, SIMD, 32 cores", Sides: "the code", Metric: "time, processor, memory",
		Published: []Claim{{"4 KB, 16 KB, 64 KB, 256 KB", "1, 4, 16, 77 µs"}, {"1 MB, 4 MB", "1, 6 ms"}, {"processor", "1.24 to 1.26%"}},
		Ours:      "one thread of this machine, coding of N = 5 at the highest level; `--net real` prints the row, the pages do not have it", By: "papers", Real: codeCost},
}

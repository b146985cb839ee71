// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package papers

const (
	flexraftSide = "CRaft, HRaft, FlexRaft, FlexRaft+"
	flexraftLoad = "values of 4 KiB to 2 MiB, one client, 10000 puts, 1 Gbit/s"
	flexraftOurs = "virtual time: links of 0.1 ms and 1 Gbit/s, disks that sync in 0.13 ms, no processors; the time from the leader's append to its commit; CRaft and HRaft have the largest k; FlexRaft+ has the bytes of FlexRaft"
	writeLatency = "write latency"
	wholeCopies  = "a follower of Weft gets the whole payload, because it serves reads and can lead at once; FlexRaft's followers hold a chunk"
)

var flexraft = []Row{
	{Paper: "flexraft", Number: "T1", Title: "network and storage cost at N = 5", Setting: "0, 1, 2 failures", Sides: "CRaft, HRaft, k = 1, 2, 3", Metric: "bytes for a byte of an entry",
		Published: []Claim{{"no failure: k = 1, 2, 3", "network 4, 2, 4/3; storage 5, 3, 7/3"}, {"one failure, k = 3", "CRaft 3 and 4; HRaft 5/3 and 8/3"}, {"one failure, k = 2", "3/2 and 5/2, the least"}, {"two failures", "2 and 3"}},
		Ours:      flexraftOurs + "; bytes sent are measured, with messages and heartbeats; storage is at the commit, and worked out: what was sent, and the leader's copy. " + wholeCopies, By: "adaptive", Run: costs(5), Real: byProcesses(leaderBytes, servers{5, 0}, servers{5, 1}, servers{5, 2})},
	{Paper: "flexraft", Number: "T2", Title: "the least cost by failures", Setting: "N servers, f failures", Sides: "FlexRaft", Metric: "bytes for a byte of an entry",
		Published: []Claim{{"network", "(N-f-1)/(N-f-F)"}, {"storage", "1 more"}},
		Ours:      flexraftOurs + "; N = 7, where the least is 1.5, 1.67, 2 and 3", By: "adaptive", Run: costs(7)},
	{Paper: "flexraft", Number: "7", Title: "writes at N = 5, no failure", Setting: flexraftLoad, Sides: flexraftSide, Metric: writeLatency,
		Published: []Claim{{"CRaft with k = 3 beside k = 2", "4.05 to 20.73% less"}, {"HRaft, FlexRaft", "as CRaft with k = 3"}},
		Ours:      flexraftOurs, By: "adaptive", Run: latencies(5, 0, flexraftSizes...), Real: byProcesses(latency, servers{5, 0})},
	{Paper: "flexraft", Number: "8", Title: "writes at N = 7, no failure", Setting: flexraftLoad, Sides: flexraftSide, Metric: writeLatency,
		Published: []Claim{{"CRaft with k = 4 beside k = 3, 2", "up to 18.15%, 35.32% less"}, {"HRaft, FlexRaft, FlexRaft+", "as CRaft with k = 4"}},
		Ours:      flexraftOurs, By: "adaptive", Run: latencies(7, 0, flexraftSizes...), Real: byProcesses(latency, servers{7, 0})},
	{Paper: "flexraft", Number: "9", Title: "writes at N = 5, one failure", Setting: flexraftLoad, Sides: flexraftSide, Metric: writeLatency,
		Published: []Claim{{"beside CRaft with k = 3", "up to 32.82% less"}, {"beside HRaft", "up to 8.43% less"}, {"FlexRaft+ beside FlexRaft", "3.27% more"}},
		Ours:      flexraftOurs, By: "adaptive", Run: latencies(5, 1, flexraftSizes...), Real: byProcesses(latency, servers{5, 1})},
	{Paper: "flexraft", Number: "10a", Title: "writes at N = 7, one failure", Setting: flexraftLoad, Sides: flexraftSide, Metric: writeLatency,
		Published: []Claim{{"beside CRaft with k = 4, CRaft with k = 2, HRaft", "up to 54.28%, 28.97%, 9.25% less"}, {"FlexRaft+ beside FlexRaft", "up to 3.26% more"}},
		Ours:      flexraftOurs, By: "adaptive", Run: latencies(7, 1, flexraftSizes...), Real: byProcesses(latency, servers{7, 1})},
	{Paper: "flexraft", Number: "10b", Title: "writes at N = 7, two failures", Setting: flexraftLoad, Sides: flexraftSide, Metric: writeLatency,
		Published: []Claim{{"beside CRaft with k = 4, HRaft, 2 MiB", "37.32%, 14.10% less"}, {"FlexRaft+ beside FlexRaft", "up to 2.89% more"}},
		Ours:      flexraftOurs, By: "adaptive", Run: latencies(7, 2, flexraftSizes...), Real: byProcesses(latency, servers{7, 2})},
	{Paper: "flexraft", Number: "11a", Title: "YCSB at N = 7, one failure", Setting: "4 clients, 2 MiB, Zipf 0.99, workloads A, B, C, D, F", Sides: flexraftSide, Metric: "throughput",
		Published: []Claim{{"beside CRaft, A and F (with 11b)", "37.28 to 115.14% more"}, {"beside HRaft, A and F", "9.47 to 18.76% more"}, {"B and D", "8.90 to 17.88%, 1.40 to 5.74% more"}, {"C", "the same"}},
		Ours:      flexraftOurs + "; keys do not matter, and the leader answers gets in 0.1 ms, without sending the value", By: "adaptive", Run: ycsb(1)},
	{Paper: "flexraft", Number: "11b", Title: "YCSB at N = 7, two failures", Setting: "4 clients, 2 MiB, Zipf 0.99, workloads A, B, C, D, F", Sides: flexraftSide, Metric: "throughput",
		Published: []Claim{{"all", "as 11a"}},
		Ours:      flexraftOurs + "; gets as in 11a", By: "adaptive", Run: ycsb(2)},
	{Paper: "flexraft", Number: "12", Title: "the parts of a put of 2 MiB", Setting: "N = 5 and 7, by failures", Sides: flexraftSide, Metric: "client, processing, network, applying",
		Published: []Claim{{"commit latency beside CRaft, HRaft: N = 5, one failure", "39.95%, 8.19% less"}, {"N = 7, one failure", "61.20%, 14.26% less"}, {"N = 7, two failures", "44.51%, 19.37% less"}},
		Ours:      flexraftOurs + "; the network's part only", By: "adaptive", Run: byFailures(5, 7)},
	{Paper: "flexraft", Number: "13", Title: "what coding adds to an append", Setting: "values of 4 KiB to 2 MiB", Sides: "Raft, FlexRaft", Metric: "time of an RPC",
		Published: []Claim{{"added to a request and an answer", "16 B and 8 B"}, {"time", "almost the same"}},
		Ours:      "bytes in place of time: the header, which names members and units, and checksums of units", By: "papers", Run: overhead},
	{Paper: "flexraft", Number: "14", Title: "a follower fails during a put of 2 MiB", Setting: "N = 7: no failure, the first, one, the second, two", Sides: "Raft, " + flexraftSide, Metric: "commit latency",
		Published: []Claim{{"coding beside Raft, no failure", "69.03% less"}, {"CRaft at the first failure", "11.67% more than Raft"}, {"HRaft, FlexRaft at the first failure", "63.45%, 90.28% more than normal"}, {"FlexRaft+ beside HRaft, FlexRaft", "9.11%, 21.71% less"}, {"extra network cost of CRaft, HRaft, FlexRaft, FlexRaft+", "5, 3/4, 5/3, 5/12"}},
		Ours:      flexraftOurs + "; our figures have the time until the failure is known, which is 1 s for CRaft, and the paper's have not", By: "adaptive", Run: moment},
	{Paper: "flexraft", Number: "15", Title: "reads that decode", Setting: "N = 7, a leader that has chunks", Sides: "Raft, FlexRaft, FlexRaft+", Metric: "read latency",
		Published: []Claim{{"FlexRaft, first read", "88.60 to 92.35% more than Raft"}, {"FlexRaft+, first read", "101.81 to 106.42% more"}, {"ten reads", "4.34 to 6.62%, 8.98% more"}},
		Ours:      "real cores in virtual time, links of 0.1 ms and 1 Gbit/s: a leader that knows its links writes ten values and is lost a second later, and the next one is asked: linearizable reads, each a round among members; without the way of the value to the client. A member of Weft has whole payloads in its state before it answers, so that no read decodes; what the new leader completes before is row 16", By: "virtual", Run: firstReads},
	{Paper: "flexraft", Number: "16", Title: "a new leader with unapplied entries", Setting: "N = 7, 1 to 100 entries", Sides: "FlexRaft, FlexRaft+", Metric: "duration of LeaderPre",
		Published: []Claim{{"16 KiB: 10, 100 entries", "4, 14 ms"}, {"256 KiB: 10, 100", "18, 136 ms"}, {"2 MiB: 10, 100", "106 ms, 1.4 s"}, {"FlexRaft+", "4.19% more"}},
		Ours:      "real cores in virtual time; a leader that knows its links is lost when it has acknowledged the last of so many entries at once; links of 0.1 ms and 1 Gbit/s; until the first commit, so with a round of an empty entry and what was under way", By: "virtual", Run: leaderPre,
		Behind: "no member left knows the last entry to be committed, and with a member fewer each of five followers needs a twelfth more of the entry, the least of any code with this guarantee: 0.06 ms at 16 KB, where the put before took 0.2 ms less than with full copies (row 8)"},
	{Paper: "flexraft", Number: "17", Title: "a follower that failed comes back", Setting: "N = 7, one or two followers", Sides: "FlexRaft, FlexRaft+", Metric: "duration",
		Published: []Claim{{"FlexRaft+ beside FlexRaft, one failed", "19.62 to 35.42% less"}, {"two failed, one back", "39.06 to 59.28% less"}, {"two failed, both back", "42.43 to 67.16% less"}},
		Ours:      "real cores in virtual time, links of 0.1 ms and 1 Gbit/s; 100 entries; the mean of five moments of a heartbeat, for which the follower waits; the bytes of FlexRaft and FlexRaft+ are worked out. " + wholeCopies, By: "virtual", Run: followerBack},
	{Paper: "flexraft", Number: "18a", Title: "storage in followers at N = 7", Setting: "10000 entries of 1 MiB committed with failures, then one follower comes back", Sides: flexraftSide, Metric: "bytes of logs",
		Published: []Claim{{"FlexRaft+ beside FlexRaft", "27.58 to 37.89% less"}, {"FlexRaft+ beside HRaft (with 18b)", "12.49 to 21.43% less"}},
		Ours:      flexraftOurs + "; worked out from measured units, and for the follower that is back from the coding; for logs as acknowledged. " + wholeCopies, By: "adaptive", Run: stored(7)},
	{Paper: "flexraft", Number: "18b", Title: "storage in followers at N = 9", Setting: "10000 entries of 1 MiB committed with failures, then one follower comes back", Sides: flexraftSide, Metric: "bytes of logs",
		Published: []Claim{{"FlexRaft+ beside FlexRaft", "19.56 to 25.66% less"}},
		Ours:      "as 18a", By: "adaptive", Run: stored(9)},
	{Paper: "flexraft", Number: "19", Title: "larger groups", Setting: "N = 9 and 11, 2 MiB, by failures", Sides: flexraftSide, Metric: "commit latency",
		Published: []Claim{{"N = 9: beside CRaft, HRaft", "43.20 to 71.00%, 17.14 to 24.87% less"}, {"N = 11, more than one failure", "43.12 to 71.45%, 24.01 to 31.47% less"}, {"FlexRaft+", "almost the same"}},
		Ours:      flexraftOurs, By: "adaptive", Run: byFailures(9, 11)},
}

// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package main

// row is a part of the dashboard. The first two are open, the others are opened by
// whoever looks for a cause.
type row struct {
	title  string
	panels []panel
}

// panel is a chart: its title, what to look at, Grafana's name of its unit, and what
// it shows. In expressions {N and {G begin the selectors of nodes and of groups.
type panel struct {
	title, look, unit string
	queries           []query
}

type query struct{ expr, legend string }

var rows = []row{
	{"Overview", overview}, {"Groups", groups}, {"Links", links}, {"Coding and gossip", coding},
	{"Roster leases", leases}, {"Storage and state", storage}, {"Processes", processes},
}

// quantile is the expression of a quantile of a histogram, over nodes and groups.
func quantile(q, histogram, by string) string {
	return "histogram_quantile(" + q + ", sum by (le" + by + ") (rate(" + histogram + "[$__rate_interval])))"
}

var overview = []panel{
	{"Nodes that answer", "As many as the cluster has.", "short", []query{
		{`sum(up{job="$job"})`, "up"}, {`count(up{job="$job"})`, "known"},
	}},
	{"Groups with a leader", "As many as there are groups; less: a majority cannot be reached.", "short", []query{
		{`sum(weft_group_leader{G})`, "leaders"}, {`max(weft_log_groups{N})`, "groups"},
	}},
	{"Replicas differ", "0; else a replica answers wrongly: see the log.", "short", []query{
		{`max by (group) (weft_group_differs{G})`, "group {{group}}"},
	}},
	{"Cannot write", "0; else a disk is full, or late.", "short", []query{
		{`sum by (instance) (weft_group_stalled{G})`, "{{instance}} groups stalled"}, {`weft_log_full{N}`, "{{instance}} log full"},
		{`sum by (instance) (weft_group_late{G})`, "{{instance}} groups late"}, {`weft_log_waits_seconds{N}`, "{{instance}} log waits"},
	}},
	{"Commands", "The load, where it enters.", "ops", []query{
		{`sum by (instance) (rate(weft_host_proposals_total{G}[$__rate_interval]))`, "{{instance}}"},
	}},
	{"Propose to applied", "What callers wait for. Half of it is syncs and round trips.", "s", []query{
		{quantile("0.5", "weft_propose_applied_seconds_bucket{G}", ""), "median"},
		{quantile("0.99", "weft_propose_applied_seconds_bucket{G}", ""), "99%"},
		{quantile("0.999", "weft_propose_applied_seconds_bucket{G}", ""), "99.9%"},
	}},
	{"Where commands wait", "Until sent: the queue. From there to committed: syncs and the network. The rest: the state machine.", "s", []query{
		{quantile("0.99", "weft_propose_sent_seconds_bucket{G}", ""), "99% sent"},
		{quantile("0.99", "weft_propose_committed_seconds_bucket{G}", ""), "99% committed"},
		{quantile("0.99", "weft_propose_applied_seconds_bucket{G}", ""), "99% applied"},
	}},
	{"Reads", "By what vouched for them.", "ops", []query{
		{`sum by (served) (rate(weft_read_seconds_count{G}[$__rate_interval]))`, "{{served}}"},
	}},
	{"Read to end, 99%", "By policy, and by what vouched for the read.", "s", []query{
		{quantile("0.99", "weft_read_seconds_bucket{G}", ", policy, served"), "{{policy}}, {{served}}"},
	}},
	{"Calls that ended badly", "0. Refused calls had no effect; unknown ones may have had.", "ops", []query{
		{`sum by (instance) (rate(weft_host_refused_total{G}[$__rate_interval]))`, "{{instance}} refused"},
		{`sum by (instance) (rate(weft_host_unknown_total{G}[$__rate_interval]))`, "{{instance}} unknown"},
	}},
}

var groups = []panel{
	{"Elections", "Rare. Otherwise leaders die, disks are slow, or processes starve.", "short", []query{
		{`sum by (group) (increase(weft_host_elections_total{G}[$__rate_interval]))`, "group {{group}}"},
	}},
	{"Committed", "Entries a second.", "ops", []query{
		{`max by (group) (rate(weft_host_commit{G}[$__rate_interval]))`, "group {{group}}"},
	}},
	{"Committed and not applied", "Small; else the state machine does not keep up.", "short", []query{
		{`weft_host_commit{G} - weft_host_applied{G}`, "{{instance}}, group {{group}}"},
	}},
	{"Members' lag", "Entries that a member has not acknowledged, as its leader knows.", "short", []query{
		{`max by (group, member) (weft_member_lag{G})`, "group {{group}}, member {{member}}"},
	}},
	{"Queued commands", "Far below the budgets (64 MiB a group).", "bytes", []query{
		{`weft_host_queued{G}`, "{{instance}}, group {{group}}"},
	}},
	{"Calls under way", "", "short", []query{{`weft_host_waiting{G}`, "{{instance}}, group {{group}}"}}},
	{"Busy stages", "Of a second; near 1: this stage is the bottleneck.", "percentunit", []query{
		{`sum by (instance, stage) (rate(weft_stage_busy_seconds_total{G}[$__rate_interval]))`, "{{instance}} {{stage}}"},
	}},
	{"Snapshots", "Rare. Otherwise members lag by more than --retain-bytes.", "ops", []query{
		{`sum by (instance, result) (rate(weft_snapshot_sent_seconds_count{G}[$__rate_interval]))`, "{{instance}} sent, {{result}}"},
		{`sum by (instance, result) (rate(weft_snapshot_restored_seconds_count{G}[$__rate_interval]))`, "{{instance}} restored, {{result}}"},
	}},
	{"Snapshots that wait", "Rare. After a restart of a node with many groups: the urgent ones go to 0 first.", "short", []query{
		{`weft_catchup_waiting{N}`, "{{instance}} {{direction}}"}, {`weft_catchup_urgent{N}`, "{{instance}} {{direction}}, urgent"},
	}},
	{"Snapshots under way", "At most the budget.", "bytes", []query{
		{`weft_catchup_used_bytes{N}`, "{{instance}} {{direction}}"}, {`max(weft_catchup_limit_bytes{N})`, "budget"},
	}},
	{"Snapshots take", "Median, until the member has restored it.", "s", []query{
		{quantile("0.5", "weft_snapshot_sent_seconds_bucket{G}", ""), "sent"},
		{quantile("0.5", "weft_snapshot_restored_seconds_bucket{G}", ""), "restored"},
	}},
}

var links = []panel{
	{"Sent", "By class; the leader's is the largest.", "Bps", []query{
		{`sum by (instance, class) (rate(weft_link_sent_bytes_total{N}[$__rate_interval]))`, "{{instance}} {{class}}"},
	}},
	{"Sent to each peer", "", "Bps", []query{
		{`sum by (instance, peer) (rate(weft_link_sent_bytes_total{N}[$__rate_interval]))`, "{{instance}} to {{peer}}"},
	}},
	{"Received", "", "Bps", []query{
		{`sum by (instance, peer) (rate(weft_link_received_bytes_total{N}[$__rate_interval]))`, "{{instance}} from {{peer}}"},
	}},
	{"Dropped messages", "0; else a peer is down, or slower than the load.", "ops", []query{
		{`sum by (instance, peer, reason) (rate(weft_link_dropped_total{N}[$__rate_interval])) > 0`, "{{instance}} to {{peer}}: {{reason}}"},
	}},
	{"Queues", "Bytes that wait for a peer.", "bytes", []query{
		{`sum by (instance, peer, class) (weft_link_queue_bytes{N})`, "{{instance}} to {{peer}}, {{class}}"},
	}},
	{"Time in queues", "Seconds that messages waited, a second.", "s", []query{
		{`sum by (instance, class) (rate(weft_link_queue_time_seconds_total{N}[$__rate_interval]))`, "{{instance}} {{class}}"},
	}},
	{"Connections", "To each peer, of all classes.", "short", []query{
		{`sum by (instance, peer) (weft_link_connected{N})`, "{{instance}} to {{peer}}"},
	}},
	{"Refused connections", "0. By reason: a wrong cluster, certificate or address.", "ops", []query{
		{`sum by (instance, reason) (rate(weft_transport_refusals_total{N}[$__rate_interval])) > 0`, "{{instance}}: {{reason}}"},
	}},
	{"Bad frames and messages", "0; else a peer is broken, or something else talks to the port.", "ops", []query{
		{`rate(weft_transport_bad_frames_total{N}[$__rate_interval])`, "{{instance}} frames"},
		{`sum by (instance) (rate(weft_host_bad_messages_total{G}[$__rate_interval]))`, "{{instance}} messages"},
	}},
}

var coding = []panel{
	{"Leaders that code", "As many as there are leaders, with coding on.", "short", []query{
		{`sum(weft_coding_active{G})`, "coding"}, {`sum(weft_group_leader{G})`, "leaders"},
	}},
	{"Entries by level", "So many members restore an entry; 0: different shares.", "ops", []query{
		{`sum by (level) (rate(weft_coding_levels_total{G}[$__rate_interval])) > 0`, "level {{level}}"},
	}},
	{"Bytes of payloads and bytes sent", "Sent by payload is what coding saves: whole copies are members - 1.", "Bps", []query{
		{`sum(rate(weft_coding_encoded_bytes_total{G}[$__rate_interval]))`, "payloads"},
		{`sum(rate(weft_coding_sent_bytes_total{G}[$__rate_interval]))`, "sent by leaders"},
		{`sum(rate(weft_coding_pushed_bytes_total{G}[$__rate_interval]))`, "pushed by followers"},
		{`sum(rate(weft_coding_answered_bytes_total{G}[$__rate_interval]))`, "answered by followers"},
	}},
	{"Committed and not complete", "Small; else members reach only the leader.", "short", []query{
		{`weft_host_commit{G} - weft_coding_completed_index{G}`, "{{instance}}, group {{group}}"},
	}},
	{"Entries delayed by gossip", "Committed entries that waited for their payload.", "ops", []query{
		{`sum by (instance) (rate(weft_coding_delayed_total{G}[$__rate_interval]))`, "{{instance}}"},
	}},
	{"Delay of an entry", "Mean, over entries that waited.", "s", []query{
		{`sum by (instance) (rate(weft_coding_delays_seconds_total{G}[$__rate_interval])) / sum by (instance) (rate(weft_coding_delayed_total{G}[$__rate_interval]))`, "{{instance}}"},
	}},
	{"Fallbacks and hedges", "Rare; else members die, or are slower than others.", "ops", []query{
		{`sum(rate(weft_coding_fallbacks_total{G}[$__rate_interval]))`, "fallbacks"},
		{`sum(rate(weft_coding_hedges_total{G}[$__rate_interval]))`, "hedges"},
	}},
	{"Stuck and rejected", "0.", "short", []query{
		{`sum by (instance) (weft_coding_is_stuck{G})`, "{{instance}} stuck"},
		{`sum by (instance) (rate(weft_coding_rejected_total{G}[$__rate_interval]))`, "{{instance}} rejected"},
	}},
	{"Memory of units", "Below 64 MiB.", "bytes", []query{
		{`sum by (instance) (weft_coding_memory_bytes{G})`, "{{instance}}"},
	}},
}

var leases = []panel{
	{"Responders", "Nodes that answer reads of some keys, and nodes that do of every key.", "short", []query{
		{`max by (group) (weft_leases_responders{G})`, "group {{group}}: named"},
		{`sum by (group) (weft_leases_stable{G})`, "group {{group}}: every key"},
	}},
	{"Reads without a message", "Reads by roster at responders, by lease at leaders.", "ops", []query{
		{`sum by (instance) (rate(weft_host_reads_by_roster_total{G}[$__rate_interval]))`, "{{instance}} roster"},
		{`sum by (instance) (rate(weft_host_reads_by_lease_total{G}[$__rate_interval]))`, "{{instance}} lease"},
	}},
	{"Reads that waited", "Rare: for a lease, for a write of their key, or in vain.", "ops", []query{
		{`sum by (instance) (rate(weft_leases_reads_waited_total{G}[$__rate_interval]))`, "{{instance}} for a lease"},
		{`sum by (instance) (rate(weft_leases_reads_held_total{G}[$__rate_interval]))`, "{{instance}} for a write"},
		{`sum by (instance) (rate(weft_leases_reads_redirected_total{G}[$__rate_interval]))`, "{{instance}} redirected"},
	}},
	{"Responders removed and restored", "Rare; else they fail, or their disks are slow.", "short", []query{
		{`sum by (group) (increase(weft_leases_counts_removed_total{G}[$__rate_interval]))`, "group {{group}} removed"},
		{`sum by (group) (increase(weft_leases_counts_restored_total{G}[$__rate_interval]))`, "group {{group}} restored"},
	}},
	{"Clock, beside the hardware", "Within the bound at all times.", "ppm", []query{
		{`weft_clock_rate_ppm{N}`, "{{instance}}"}, {`max(weft_clock_drift_ppm{N})`, "bound"},
	}},
	{"Leases held and granted", "", "short", []query{
		{`sum by (instance) (weft_leases_held{G})`, "{{instance}} held"},
		{`sum by (instance) (weft_leases_promises{G})`, "{{instance}} granted"},
	}},
}

var storage = []panel{
	{"Sync of the log", "Each write waits for one at a majority. Median and 99%.", "s", []query{
		{quantile("0.5", "weft_log_sync_seconds_bucket{N}", ", instance"), "{{instance}} median"},
		{quantile("0.99", "weft_log_sync_seconds_bucket{N}", ", instance"), "{{instance}} 99%"},
	}},
	{"Writes in a sync", "More under load.", "short", []query{
		{`rate(weft_log_writes_total{N}[$__rate_interval]) / rate(weft_log_syncs_total{N}[$__rate_interval])`, "{{instance}}"},
	}},
	{"Written", "Log and state.", "Bps", []query{
		{`rate(weft_log_written_bytes_total{N}[$__rate_interval])`, "{{instance}} log"},
		{`rate(weft_state_written_bytes_total{N}[$__rate_interval])`, "{{instance}} state"},
	}},
	{"On disk", "", "bytes", []query{
		{`weft_log_file_bytes{N}`, "{{instance}} log"}, {`weft_state_disk_bytes{N}`, "{{instance}} state"},
	}},
	{"Log, held and moved", "Bytes that groups hold, and bytes carried along for a lagging group.", "bytes", []query{
		{`weft_log_live_bytes{N}`, "{{instance}} held"},
		{`increase(weft_log_moved_bytes_total{N}[$__rate_interval])`, "{{instance}} moved"},
	}},
	{"Log queue", "Below 64 MiB.", "bytes", []query{{`weft_log_queued_bytes{N}`, "{{instance}}"}}},
	{"Log read back", "For followers that lag, and restarts.", "Bps", []query{
		{`rate(weft_log_read_bytes_total{N}[$__rate_interval])`, "{{instance}}"},
	}},
	{"Compactions of the state", "", "short", []query{
		{`increase(weft_state_compactions_total{N}[$__rate_interval])`, "{{instance}} compactions"},
		{`increase(weft_state_flushes_total{N}[$__rate_interval])`, "{{instance}} flushes"},
	}},
	{"Compaction debt", "Not growing for hours.", "bytes", []query{{`weft_state_compaction_debt_bytes{N}`, "{{instance}}"}}},
}

var processes = []panel{
	{"Processor", "Of one core.", "percentunit", []query{
		{`rate(process_cpu_seconds_total{N}[$__rate_interval])`, "{{instance}}"},
	}},
	{"Memory", "", "bytes", []query{{`process_resident_memory_bytes{N}`, "{{instance}}"}}},
	{"Goroutines", "", "short", []query{{`go_goroutines{N}`, "{{instance}}"}}},
}

// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

// Package page is the web page that shows a kvdemo cluster: members, leases, links,
// the units of recent entries, latencies and events.
//
// A [Node] is a report of one node about one group. A [Collector] asks several sources
// for such reports and makes a [State] of the answers: rates are differences of counters,
// and events are differences of reports. [Handler] serves the page and the State as JSON.
// Only a demonstration has [Controls], and only then are commands served.
package page

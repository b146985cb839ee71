// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package demo

import "github.com/weftraft/weft/cmd/kvdemo/kvpb"

// traffic adds up the bytes between nodes, over all processes of each node.
type traffic struct {
	// past[i][j] is what earlier processes of node i+1 sent to node j+1, and
	// present[i][j] the current one, pid[i], as far as they told.
	past, present [][]uint64
	// appended[i] is what node i+1 sent of entries, as a leader, in earlier
	// processes, and appending[i] in the current one.
	appended, appending []uint64
	pid                 []uint64
}

func newTraffic(nodes int) *traffic {
	t := &traffic{pid: make([]uint64, nodes), appended: make([]uint64, nodes), appending: make([]uint64, nodes)}
	for range nodes {
		t.past = append(t.past, make([]uint64, nodes))
		t.present = append(t.present, make([]uint64, nodes))
	}
	return t
}

// note takes in what a node said. Counters begin again in a new process.
func (t *traffic) note(s *kvpb.StatusResponse) {
	i := int(s.GetId()) - 1
	if i < 0 || i >= len(t.pid) {
		return
	}
	if t.pid[i] != s.GetPid() {
		t.pid[i] = s.GetPid()
		t.appended[i] += t.appending[i]
		t.appending[i] = 0
		for j, n := range t.present[i] {
			t.past[i][j] += n
			t.present[i][j] = 0
		}
	}
	t.appending[i] = max(t.appending[i], s.GetAppendedBytes())
	for _, l := range s.GetLinks() {
		if j := int(l.GetPeer()) - 1; j >= 0 && j < len(t.pid) {
			t.present[i][j] = max(t.present[i][j], l.GetSentBytes())
		}
	}
}

// egress returns the bytes of entries that leaders sent.
func (t *traffic) egress() (sum uint64) {
	for i := range t.pid {
		sum += t.appended[i] + t.appending[i]
	}
	return sum
}

// sent returns the bytes that each node (row) sent to each (column).
func (t *traffic) sent() [][]uint64 {
	var rows [][]uint64
	for i := range t.pid {
		row := make([]uint64, len(t.pid))
		for j := range row {
			row[j] = t.past[i][j] + t.present[i][j]
		}
		rows = append(rows, row)
	}
	return rows
}

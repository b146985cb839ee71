// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package demo

import "github.com/weftraft/weft/cmd/kvdemo/kvpb"

// traffic adds up what each node has sent, over all processes of the node.
type traffic []sent

// sent is the bytes that a node has sent: of entries, as a leader, and then to each node.
type sent struct {
	pid           uint64   // of the present process
	past, present []uint64 // by earlier processes, and by the present one, as far as they told
}

func newTraffic(nodes int) traffic {
	t := make(traffic, nodes)
	for i := range t {
		t[i].past, t[i].present = make([]uint64, 1+nodes), make([]uint64, 1+nodes)
	}
	return t
}

// total returns what all processes of a node have sent.
func (s sent) total(at int) uint64 { return s.past[at] + s.present[at] }

// note takes in what a node said. Counters begin again in a new process.
func (t traffic) note(r *kvpb.StatusResponse) {
	if r.GetId() < 1 || r.GetId() > uint64(len(t)) {
		return
	}
	s := &t[r.GetId()-1]
	if s.pid != r.GetPid() {
		s.pid = r.GetPid()
		for i := range s.past {
			s.past[i] = s.total(i)
		}
		clear(s.present)
	}
	s.present[0] = max(s.present[0], r.GetAppendedBytes())
	for _, l := range r.GetLinks() {
		if to := l.GetPeer(); 1 <= to && to <= uint64(len(t)) {
			s.present[to] = max(s.present[to], l.GetSentBytes())
		}
	}
}

// egress returns the bytes of entries that leaders sent.
func (t traffic) egress() (sum uint64) {
	for _, s := range t {
		sum += s.total(0)
	}
	return sum
}

// sent returns the bytes that each node (row) sent to each (column).
func (t traffic) sent() [][]uint64 {
	rows := make([][]uint64, len(t))
	for i, s := range t {
		for j := range t {
			rows[i] = append(rows[i], s.total(1+j))
		}
	}
	return rows
}

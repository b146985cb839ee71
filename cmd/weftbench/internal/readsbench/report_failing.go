// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package readsbench

import (
	"fmt"
	"strconv"

	"github.com/weftraft/weft/internal/lab"
)

// FailReport puts the rows into tables.
func FailReport(cfg FailConfig, rows []Failing) *lab.Section {
	bound := cfg.Fail + cfg.Lease + 2*cfg.Trip
	s := &lab.Section{
		Virtual: true, Verb: "responders",
		Title: "A responder fails: how long writes wait, and what reads at other nodes notice",
		Intro: fmt.Sprintf("All nodes are responders, %v apart (there and back); Fail is %v and Lease %v, so that a write may wait for\n"+
			"%v at most: Fail, Lease and two rounds. In each of %d runs a row one responder fails under load, in the same way until\n"+
			"the end. Clients write %d keys, and read these and %d others at every other node. Times are in ms of virtual time.",
			cfg.Trip, cfg.Fail, cfg.Lease, bound, cfg.Seeds, failKeys-stillKeys, stillKeys),
		Data: rows,
	}
	s.Tables = []lab.Table{{Title: "The failures:", Rows: [][]string{{"failure", "what it is"}}}}
	for _, f := range failures(cfg.Fail) {
		s.Tables[0].Rows = append(s.Tables[0].Rows, []string{f.name, f.about})
	}
	t := lab.Table{
		Title: "What clients saw:",
		Rows: [][]string{{"N", "policy", "failure", "longest write", "holds a run", "writes held up", "reads", "99% before",
			"late reads", "late reads of written keys", "longest of those"}},
		Notes: []string{"A read is late if it takes more than 2 ms longer than 99% of reads before the failure. A read of a key whose write is held up\n" +
			"waits for `Hold`, and then the leader answers; with notes the leader has to wait for the write, too."},
	}
	for _, r := range rows {
		t.Rows = append(t.Rows, []string{
			strconv.Itoa(r.Voters), r.Policy, r.Failure, lab.Millis(r.Held), strconv.Itoa(r.Holds),
			fmt.Sprintf("%d of %d", r.Slow, r.Writes), strconv.Itoa(r.Reads), lab.Millis(r.Calm),
			strconv.Itoa(r.Late), strconv.Itoa(r.WrittenLate), lab.Millis(r.WrittenWorst),
		})
	}
	s.Tables = append(s.Tables, t)
	return s
}

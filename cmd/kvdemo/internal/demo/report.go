// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/weftraft/weft/internal/lab"
)

// report is the result of a demonstration, as --json prints it. Durations are
// in milliseconds.
type report struct {
	Files       int        `json:"files"`
	Bytes       int64      `json:"bytes"`
	Replicas    int        `json:"replicas"`
	Verified    int        `json:"verified"` // files that every replica holds bit for bit
	LoadSeconds float64    `json:"load_seconds"`
	FilesPerSec float64    `json:"files_per_second"`
	BytesPerSec float64    `json:"bytes_per_second"`
	CommitP50   float64    `json:"commit_p50_ms"`
	CommitP99   float64    `json:"commit_p99_ms"`
	CommitMax   float64    `json:"commit_max_ms"`
	FailoverGap float64    `json:"failover_gap_ms"`
	FollowerGap float64    `json:"follower_gap_ms"`
	LinkBytes   [][]uint64 `json:"link_bytes"` // sent by row to column
	// LeaderEgress is the number of bytes of entries that leaders sent for each
	// byte loaded; with full copies, the number of nodes less one.
	LeaderEgress float64 `json:"leader_egress"`
	// Reads is of each node, with roster leases.
	Reads        []nodeReads `json:"reads,omitempty"`
	TotalSeconds float64     `json:"total_seconds"`
}

// summary makes the report of a successful demonstration.
func (d *run) summary() report {
	l := d.load
	seconds := l.result.Elapsed.Seconds()
	r := report{
		Files:        len(d.set.files),
		Bytes:        l.bytes.Load(),
		Replicas:     len(d.cluster.nodes),
		Verified:     d.verified,
		LoadSeconds:  seconds,
		FilesPerSec:  float64(l.files.Load()) / seconds,
		BytesPerSec:  float64(l.bytes.Load()) / seconds,
		CommitP50:    l.result.Latency.Millis(0.5),
		CommitP99:    l.result.Latency.Millis(0.99),
		CommitMax:    l.result.Latency.Millis(1),
		LinkBytes:    d.cluster.traffic.sent(),
		LeaderEgress: float64(d.cluster.traffic.egress()) / float64(max(1, l.bytes.Load())),
		Reads:        d.reads,
		TotalSeconds: time.Since(d.p.start).Seconds(),
	}
	for _, o := range d.outages {
		gap := float64(d.gap(o).Microseconds()) / 1e3
		if o.leader {
			r.FailoverGap = gap
		} else {
			r.FollowerGap = gap
		}
	}
	return r
}

// report prints the result. The last line says what was proved.
func (d *run) report() error {
	r := d.summary()
	d.p.close()
	if d.cfg.JSON {
		return json.NewEncoder(d.cfg.Result).Encode(r)
	}
	return r.print(d.cfg.Result)
}

func (r report) print(w io.Writer) error {
	row := func(name, format string, args ...any) {
		fmt.Fprintf(w, "%-12s  %s\n", name, fmt.Sprintf(format, args...))
	}
	fmt.Fprintln(w)
	row("loaded", "%d files, %s in %.1f s", r.Files, megabytes(uint64(r.Bytes)), r.LoadSeconds)
	row("throughput", "%.0f files/s, %.1f MB/s", r.FilesPerSec, r.BytesPerSec/1e6)
	row("commit", "p50 %.1f ms, p99 %.1f ms, longest %.0f ms", r.CommitP50, r.CommitP99, r.CommitMax)
	row("failover gap", "%.0f ms without an acknowledged write after the leader was killed", r.FailoverGap)
	row("follower gap", "%.0f ms after a follower was killed", r.FollowerGap)
	row("leaders sent", "%.2f bytes of entries for each byte loaded; full copies take %d, while all are up", r.LeaderEgress, r.Replicas-1)
	fmt.Fprintf(w, "%s%s", r.links(), r.readTable())
	_, err := fmt.Fprintf(w, "\nverified: %d files on %d replicas\n", r.Verified, r.Replicas)
	return err
}

// links is the table of links, senders in rows.
func (r report) links() lab.Table {
	t := lab.Table{Title: "bytes on each link (MB, from row to column; a killed process's last moments are missing)", Rows: [][]string{{"node"}}}
	for i, row := range r.LinkBytes {
		t.Rows[0] = append(t.Rows[0], strconv.Itoa(i+1))
		line, sum := []string{strconv.Itoa(i + 1)}, uint64(0)
		for j, n := range row {
			sum += n
			if i == j {
				line = append(line, "-")
			} else {
				line = append(line, fmt.Sprintf("%.1f", float64(n)/1e6))
			}
		}
		t.Rows = append(t.Rows, append(line, fmt.Sprintf("%.1f", float64(sum)/1e6)))
	}
	t.Rows[0] = append(t.Rows[0], "sum")
	return t
}

// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package redisbench

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// YCSB says how the Yahoo! Cloud Serving Benchmark is run: its own client, with its own
// core workloads, and the bindings in the folder ycsb.
type YCSB struct {
	// Dir has what make ycsb puts there: the folder lib, with YCSB and the clients, and
	// classes, with the bindings. Empty: YCSB is left out.
	Dir     string
	Records int
	Clients int // threads of the client, spread over the nodes
	Time    time.Duration
}

// workload is one of YCSB's core workloads, by the properties that make it.
type workload struct {
	name, about string
	properties  []string
}

// workloads are YCSB's own, in the order that YCSB advises: E comes last, as D and E
// insert records.
var workloads = []workload{
	{"A", "half reads, half updates", []string{"readproportion=0.5", "updateproportion=0.5", "requestdistribution=zipfian"}},
	{"B", "95% reads, 5% updates", []string{"readproportion=0.95", "updateproportion=0.05", "requestdistribution=zipfian"}},
	{"C", "reads only", []string{"readproportion=1", "updateproportion=0", "requestdistribution=zipfian"}},
	{"F", "half reads, half read-modify-writes", []string{"readproportion=0.5", "updateproportion=0", "readmodifywriteproportion=0.5", "requestdistribution=zipfian"}},
	{"D", "95% reads of the latest records, 5% inserts", []string{"readproportion=0.95", "updateproportion=0", "insertproportion=0.05", "requestdistribution=latest"}},
	{"E", "95% scans of 1 to 100 records, 5% inserts", []string{"readproportion=0", "updateproportion=0", "scanproportion=0.95", "insertproportion=0.05", "requestdistribution=zipfian", "maxscanlength=100", "scanlengthdistribution=uniform"}},
}

// check says whether YCSB is there.
func (y YCSB) check() error {
	if y.Dir == "" {
		return nil
	}
	if _, err := exec.LookPath("java"); err != nil {
		return fmt.Errorf("java is not installed, which YCSB needs: apt-get install default-jdk-headless maven; or leave YCSB out with --ycsb \"\"")
	}
	for _, part := range []string{"lib/core-*.jar", "classes/weft/RedisBinding.class"} {
		if found, err := filepath.Glob(filepath.Join(y.Dir, part)); err != nil || len(found) == 0 {
			return fmt.Errorf("--ycsb %s: there is no %s: run make ycsb, or leave YCSB out with --ycsb \"\"", y.Dir, part)
		}
	}
	return nil
}

// run loads the records and runs the workloads.
func (y YCSB) run(ctx context.Context, s *side, progress func(workload string)) (rows []Row, err error) {
	progress("load")
	if _, err := y.client(ctx, s, "-load", y.Records); err != nil {
		return nil, err
	}
	records := y.Records
	for _, w := range workloads {
		progress(w.name)
		properties := append([]string{"operationcount=1000000000", fmt.Sprintf("maxexecutiontime=%d", int(y.Time.Seconds()))}, w.properties...)
		results, err := y.client(ctx, s, "-t", records, properties...)
		if err != nil {
			return rows, fmt.Errorf("workload %s: %w", w.name, err)
		}
		row, err := results.row()
		if err != nil {
			return rows, fmt.Errorf("workload %s: %w", w.name, err)
		}
		row.Test = w.name
		rows = append(rows, row)
		records += int(results["INSERT"]["Return=OK"])
	}
	return rows, nil
}

// client runs YCSB's client once.
func (y YCSB) client(ctx context.Context, s *side, phase string, records int, properties ...string) (results, error) {
	args := []string{
		"-cp", filepath.Join(y.Dir, "classes") + string(filepath.ListSeparator) + filepath.Join(y.Dir, "lib", "*"),
		"site.ycsb.Client", phase, "-db", "weft." + s.binding, "-threads", strconv.Itoa(y.Clients),
	}
	for _, p := range append([]string{
		"workload=site.ycsb.workloads.CoreWorkload", "addresses=" + strings.Join(s.addresses, ","), fmt.Sprintf("recordcount=%d", records),
		"measurementtype=hdrhistogram", "hdrhistogram.percentiles=50,99",
	}, properties...) {
		args = append(args, "-p", p)
	}
	cmd := exec.CommandContext(ctx, "java", args...)
	var out, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &said
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("YCSB's client: %w: %s", err, tail(said.String()))
	}
	r, err := parseYCSB(&out)
	if err == nil && phase == "-load" && int(r["INSERT"]["Return=OK"]) != records {
		err = fmt.Errorf("YCSB loaded %.0f of %d records: %s", r["INSERT"]["Return=OK"], records, tail(said.String()))
	}
	return r, err
}

// tail returns the end of a text, where the reasons are.
func tail(text string) string { return text[max(0, len(text)-2000):] }

// results are what YCSB's client prints, by the operation, such as READ, and the name of
// a number.
type results map[string]map[string]float64

// parseYCSB reads lines such as [READ], AverageLatency(us), 270.5.
func parseYCSB(r io.Reader) (results, error) {
	text, err := io.ReadAll(r)
	if err != nil {
		return nil, err
	}
	found := results{}
	for line := range strings.Lines(string(text)) {
		cells := strings.Split(strings.TrimSpace(line), ", ")
		if len(cells) != 3 || !strings.HasPrefix(cells[0], "[") {
			continue
		}
		number, err := strconv.ParseFloat(cells[2], 64)
		if err != nil {
			continue // of the Java machine
		}
		operation := strings.Trim(cells[0], "[]")
		if found[operation] == nil {
			found[operation] = map[string]float64{}
		}
		found[operation][cells[1]] = number
	}
	if found["OVERALL"]["Throughput(ops/sec)"] <= 0 {
		return nil, fmt.Errorf("YCSB's client printed no throughput: %q", tail(string(text)))
	}
	return found, nil
}

// row takes what the report has of a workload.
func (r results) row() (Row, error) {
	row := Row{Tool: "YCSB"}
	percentile := func(operation string, p int) float64 {
		return r[operation][fmt.Sprintf("%dthPercentileLatency(us)", p)] / 1000
	}
	done := 0.0
	for operation, numbers := range r {
		if operation == "READ-MODIFY-WRITE" || operation == "CLEANUP" { // a read and an update, which count
			continue
		}
		for name, n := range numbers {
			switch {
			case name == "Return=OK":
				done += n
			case strings.HasPrefix(name, "Return="):
				row.Failed += int64(n)
			}
		}
	}
	if done == 0 {
		return row, fmt.Errorf("no operation succeeded, and %d failed", row.Failed)
	}
	row.PerSecond = r["OVERALL"]["Throughput(ops/sec)"]
	for _, operation := range []string{"READ", "SCAN"} {
		if r[operation]["Operations"] > 0 {
			row.P50, row.P99 = percentile(operation, 50), percentile(operation, 99)
		}
	}
	for _, operation := range []string{"UPDATE", "INSERT"} {
		if r[operation]["Operations"] > 0 {
			row.WriteP50, row.WriteP99 = percentile(operation, 50), percentile(operation, 99)
		}
	}
	return row, nil
}

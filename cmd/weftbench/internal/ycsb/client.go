// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

// Package ycsb runs the Yahoo! Cloud Serving Benchmark: its own client, with its own core workloads, and
// the bindings in the folder java. Bench drives kvdemo, etcd on Weft and released etcd.
//
//	client.go  the client, and what it prints
//	bench.go   rounds
//	side.go    clusters of kvdemo and of etcd
//	report.go  the tables
package ycsb

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

// Client says how YCSB is run.
type Client struct {
	// Dir has what make ycsb puts there: the folder lib, with YCSB and the clients, and
	// classes, with the bindings. Empty: YCSB is left out.
	Dir     string
	Records int
	Clients int // threads of the client, spread over the nodes
	Time    time.Duration
	// Value, unless 0, is the bytes of a record, in one field; by default a record has ten fields of 100
	// bytes.
	Value int
}

// Redis is the binding for the protocol of Redis.
const Redis = "RedisBinding"

// Target is what the client drives.
type Target struct {
	Binding   string // Redis or EtcdBinding
	Addresses []string
}

// Result is what YCSB's client says of a workload. Times are milliseconds: P50 and P99 of reads or scans,
// WriteP50 and WriteP99 of writes.
type Result struct {
	Workload                     string
	PerSecond                    float64
	P50, P99, WriteP50, WriteP99 float64
	Failed                       int64
}

// Workload is one of YCSB's core workloads, by the properties that make it.
type Workload struct {
	Name, About string
	properties  []string
}

// Workloads are YCSB's own, in the order that YCSB advises: E comes last, as D and E
// insert records.
var Workloads = []Workload{
	{"A", "half reads, half updates", []string{"readproportion=0.5", "updateproportion=0.5", "requestdistribution=zipfian"}},
	{"B", "95% reads, 5% updates", []string{"readproportion=0.95", "updateproportion=0.05", "requestdistribution=zipfian"}},
	{"C", "reads only", []string{"readproportion=1", "updateproportion=0", "requestdistribution=zipfian"}},
	{"F", "half reads, half read-modify-writes", []string{"readproportion=0.5", "updateproportion=0", "readmodifywriteproportion=0.5", "requestdistribution=zipfian"}},
	{"D", "95% reads of the latest records, 5% inserts", []string{"readproportion=0.95", "updateproportion=0", "insertproportion=0.05", "requestdistribution=latest"}},
	{"E", "95% scans of 1 to 100 records, 5% inserts", []string{"readproportion=0", "updateproportion=0", "scanproportion=0.95", "insertproportion=0.05", "requestdistribution=zipfian", "maxscanlength=100", "scanlengthdistribution=uniform"}},
}

// Check says whether YCSB is there.
func (y Client) Check() error {
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

// Run loads the records and runs the workloads.
func (y Client) Run(ctx context.Context, t Target, progress func(workload string)) (all []Result, err error) {
	progress("load")
	if _, err := y.client(ctx, t, "-load", y.Records); err != nil {
		return nil, err
	}
	records := y.Records
	for _, w := range Workloads {
		progress(w.Name)
		properties := append([]string{"operationcount=1000000000", fmt.Sprintf("maxexecutiontime=%d", int(y.Time.Seconds()))}, w.properties...)
		results, err := y.client(ctx, t, "-t", records, properties...)
		if err != nil {
			return all, fmt.Errorf("workload %s: %w", w.Name, err)
		}
		one, err := results.of(w.Name)
		if err != nil {
			return all, fmt.Errorf("workload %s: %w", w.Name, err)
		}
		all = append(all, one)
		records += int(results["INSERT"]["Return=OK"])
	}
	return all, nil
}

// client runs YCSB's client once.
func (y Client) client(ctx context.Context, t Target, phase string, records int, properties ...string) (results, error) {
	args := []string{
		"-cp", filepath.Join(y.Dir, "classes") + string(filepath.ListSeparator) + filepath.Join(y.Dir, "lib", "*"),
		"site.ycsb.Client", phase, "-db", "weft." + t.Binding, "-threads", strconv.Itoa(y.Clients),
	}
	if y.Value > 0 {
		properties = append([]string{"fieldcount=1", fmt.Sprintf("fieldlength=%d", y.Value)}, properties...)
	}
	for _, p := range append([]string{
		"workload=site.ycsb.workloads.CoreWorkload", "addresses=" + strings.Join(t.Addresses, ","), fmt.Sprintf("recordcount=%d", records),
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
	if err != nil {
		return nil, fmt.Errorf("%w; it said: %s", err, tail(said.String()))
	}
	if phase == "-load" && int(r["INSERT"]["Return=OK"]) != records {
		return nil, fmt.Errorf("YCSB loaded %.0f of %d records: %s", r["INSERT"]["Return=OK"], records, tail(said.String()))
	}
	return r, nil
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

// of takes what a report has of a workload.
func (r results) of(workload string) (Result, error) {
	row := Result{Workload: workload}
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

// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weftraft/weft/cmd/kvdemo/internal/client"
	"github.com/weftraft/weft/cmd/kvdemo/kvpb"
)

// needPrometheus is set by make test-metrics: a test without Prometheus fails there.
const needPrometheus = "KVDEMO_TEST_NEEDS_PROMETHEUS"

// tool returns the path of a program of Prometheus, or skips the test.
func tool(t *testing.T, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err == nil {
		return path
	}
	const hint = "%s is not installed; Debian and Ubuntu have it: apt-get install prometheus"
	if os.Getenv(needPrometheus) != "" {
		t.Fatalf(hint, name)
	}
	t.Skipf(hint+"; then: make test-metrics", name)
	return ""
}

// deployed is where the files for operators are.
const deployed = "../../deploy"

func promtool(t *testing.T, args ...string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), tool(t, "promtool"), args...).CombinedOutput()
	require.NoError(t, err, "promtool %s:\n%s", args, out)
	return string(out)
}

// Promtool finds no mistake in what is given to operators, and the dashboard's
// expressions are valid.
func TestPromtoolAcceptsWhatIsDeployed(t *testing.T) {
	require.Contains(t, promtool(t, "check", "config", deployed+"/prometheus/prometheus.yml"), "SUCCESS")
	require.Contains(t, promtool(t, "check", "rules", deployed+"/prometheus/weft-rules.yml"), "rules found")
	var recorded strings.Builder
	recorded.WriteString("groups:\n- name: dashboard\n  rules:\n")
	for i, expr := range dashboardExpressions(t, ".*") {
		fmt.Fprintf(&recorded, "  - record: panel_%d\n    expr: %s\n", i, strconv.Quote(expr))
	}
	file := filepath.Join(t.TempDir(), "dashboard.yml")
	require.NoError(t, os.WriteFile(file, []byte(recorded.String()), 0o644))
	require.Contains(t, promtool(t, "check", "rules", file), "rules found")
}

// dashboardExpressions returns the expressions of all panels, for all nodes and groups.
func dashboardExpressions(t *testing.T, all string) (list []string) {
	t.Helper()
	text, err := os.ReadFile(deployed + "/grafana/weft.json")
	require.NoError(t, err)
	var board any
	require.NoError(t, json.Unmarshal(text, &board))
	variables := strings.NewReplacer("$__rate_interval", "10s", "$job", "weft", "$instance", all, "$group", all)
	var visit func(any)
	visit = func(x any) {
		switch x := x.(type) {
		case []any:
			for _, y := range x {
				visit(y)
			}
		case map[string]any:
			if expr, ok := x["expr"].(string); ok {
				list = append(list, variables.Replace(expr))
			}
			for _, y := range x {
				visit(y)
			}
		}
	}
	visit(board)
	slices.Sort(list) // maps have no order
	require.Greater(t, len(list), 50)
	return list
}

// sick is, for each alert, series that make it fire, with a value a minute.
var sick = map[string]string{
	"WeftNodeDown":             `up{job="weft"}: 0x30`,
	"WeftGroupWithoutLeader":   `weft_group_leader{job="weft",group="1"}: 0x30`,
	"WeftNodeKnowsNoLeader":    `weft_group_has_leader{job="weft",group="1"}: 0x30`,
	"WeftNoRoom":               `weft_group_stalled{job="weft",group="1"}: 1x30`,
	"WeftDiskLate":             `weft_group_stalled{job="weft",group="1"}: 1x30; weft_group_late{job="weft",group="1"}: 1x30`,
	"WeftLogLost":              `weft_group_lost_logs{job="weft",group="1"}: 1x30`,
	"WeftReplicasDiffer":       `weft_group_differs{job="weft",group="1"}: 1x30`,
	"WeftManyElections":        `weft_host_elections_total{job="weft",group="1"}: 0+1x30`,
	"WeftLeadersHandOver":      `weft_host_hand_overs_slow_total{job="weft",group="1"}: 0+0.2x30; weft_host_hand_overs_late_total{job="weft",group="1"}: 0x30; weft_host_hand_overs_full_total{job="weft",group="1"}: 0x30`,
	"WeftApplyLags":            `weft_host_commit{job="weft",group="1"}: 20001x30; weft_host_applied{job="weft",group="1"}: 10000x30`,
	"WeftMemberLags":           `weft_member_lag{job="weft",group="1",member="2"}: 100001x30`,
	"WeftMemberSilent":         `weft_member_active{job="weft",group="1",member="2"}: 0x30`,
	"WeftMemberWithoutAddress": `weft_group_unaddressed{job="weft",group="1"}: 1x30`,
	"WeftSlowWrites":           `weft_propose_applied_seconds_bucket{job="weft",le="1"}: 0+98x30; weft_propose_applied_seconds_bucket{job="weft",le="2.5"}: 0+100x30; weft_propose_applied_seconds_bucket{job="weft",le="+Inf"}: 0+100x30`,
	"WeftSlowSyncs":            `weft_log_sync_seconds_bucket{job="weft",le="0.1"}: 0+98x30; weft_log_sync_seconds_bucket{job="weft",le="0.25"}: 0+100x30; weft_log_sync_seconds_bucket{job="weft",le="+Inf"}: 0+100x30`,
	"WeftRefusesCalls":         `weft_host_refused_total{job="weft",group="1"}: 0+90x30`,
	"WeftUnknownOutcomes":      `weft_host_unknown_total{job="weft",group="1"}: 0+2x30`,
	"WeftSnapshotsFail":        `weft_host_snapshots_failed_total{job="weft",group="1"}: 0+1x30`,
	"WeftMessagesDropped":      `weft_link_dropped_total{job="weft",peer="2",class="bulk",reason="x"}: 0+900x30`,
	"WeftBadInput":             `weft_transport_bad_frames_total{job="weft"}: 0+1x30`,
	"WeftCertificateEnds":      `weft_transport_certificate_expiry_timestamp_seconds{job="weft"}: 1209600x30`,
	"WeftCodedEntryStuck":      `weft_coding_is_stuck{job="weft",group="1"}: 1x30`,
	"WeftUnitsRejected":        `weft_coding_rejected_total{job="weft",group="1"}: 0+1x30`,
	"WeftGossipLags":           `weft_host_commit{job="weft",group="1"}: 20001x30; weft_host_applied{job="weft",group="1"}: 20001x30; weft_coding_completed_index{job="weft",group="1"}: 10000x30`,
	"WeftClockBeyondBound":     `weft_clock_within{job="weft"}: 0x30`,
	"WeftRespondersFail":       `weft_leases_counts_removed_total{job="weft",group="1"}: 0+1x30`,
}

// healthy is the same of a cluster at the edge of what is well.
const healthy = `up{job="weft"}: 1x30; weft_group_leader{job="weft",group="1",instance="a"}: 1x30; weft_group_leader{job="weft",group="1",instance="b"}: 0x30;
weft_group_has_leader{job="weft",group="1"}: 1x30; weft_group_stalled{job="weft",group="1"}: 0x30; weft_group_late{job="weft",group="1"}: 0x30; weft_log_full{job="weft"}: 0x30;
weft_group_lost_logs{job="weft",group="1"}: 0x30; weft_group_differs{job="weft",group="1"}: 0x30; weft_host_elections_total{job="weft",group="1"}: 0x10 4x20;
weft_host_commit{job="weft",group="1"}: 20000x30; weft_host_applied{job="weft",group="1"}: 10000x30; weft_member_lag{job="weft",group="1",member="2"}: 100000x30;
weft_member_active{job="weft",group="1",member="2"}: 1x30; weft_group_unaddressed{job="weft",group="1"}: 0x30;
weft_propose_applied_seconds_bucket{job="weft",le="1"}: 0+100x30; weft_propose_applied_seconds_bucket{job="weft",le="+Inf"}: 0+100x30;
weft_log_sync_seconds_bucket{job="weft",le="0.1"}: 0+100x30; weft_log_sync_seconds_bucket{job="weft",le="+Inf"}: 0+100x30;
weft_host_refused_total{job="weft",group="1"}: 0+50x30; weft_host_unknown_total{job="weft",group="1"}: 0x10 5x20; weft_host_snapshots_failed_total{job="weft",group="1"}: 0x10 2x20;
weft_link_dropped_total{job="weft",peer="2",class="bulk",reason="x"}: 0+500x30; weft_transport_bad_frames_total{job="weft"}: 5x30;
weft_transport_memory_refusals_total{job="weft"}: 0x30; weft_host_bad_messages_total{job="weft",group="1"}: 0x30;
weft_transport_certificate_expiry_timestamp_seconds{job="weft"}: 1300000x30; weft_coding_is_stuck{job="weft",group="1"}: 0x30;
weft_coding_rejected_total{job="weft",group="1"}: 3x30; weft_coding_completed_index{job="weft",group="1"}: 10000x30; weft_clock_within{job="weft"}: 1x30;
weft_leases_counts_removed_total{job="weft",group="1"}: 0x10 4x20`

// Each alert fires for its cause, alone, and none for a healthy cluster.
func TestAlertsFireForTheirCauseAlone(t *testing.T) {
	rules, err := filepath.Abs(deployed + "/prometheus/weft-rules.yml")
	require.NoError(t, err)
	text, err := os.ReadFile(rules)
	require.NoError(t, err)
	var tests strings.Builder
	fmt.Fprintf(&tests, "rule_files: [%s]\ntests:\n", rules)
	add := func(series string, want ...string) {
		tests.WriteString("- interval: 1m\n  input_series:\n")
		for _, s := range strings.Split(series, ";") {
			name, values, _ := strings.Cut(strings.TrimSpace(s), ": ")
			fmt.Fprintf(&tests, "  - {series: '%s', values: '%s'}\n", name, values)
		}
		tests.WriteString("  promql_expr_test:\n  - expr: count by (alertname) (ALERTS{alertstate='firing'})\n    eval_time: 30m\n    exp_samples:\n")
		for _, alert := range want {
			fmt.Fprintf(&tests, "    - {labels: '{alertname=\"%s\"}', value: 1}\n", alert)
		}
	}
	add(healthy)
	alerts := regexp.MustCompile(`(?m)^ *- alert: (\w+)$`).FindAllStringSubmatch(string(text), -1)
	require.Len(t, alerts, len(sick))
	for _, a := range alerts {
		require.Contains(t, sick, a[1])
		add(sick[a[1]], a[1])
	}
	file := filepath.Join(t.TempDir(), "tests.yml")
	require.NoError(t, os.WriteFile(file, []byte(tests.String()), 0o644))
	require.Contains(t, promtool(t, "test", "rules", file), "SUCCESS")
}

// prometheus is a server that scrapes nodes.
type prometheus struct {
	t   *testing.T
	url string
}

// startPrometheus starts a server with the configuration for operators: with other
// addresses, and shorter intervals.
func startPrometheus(t *testing.T, targets []string) prometheus {
	program, dir := tool(t, "prometheus"), t.TempDir()
	config, err := os.ReadFile(deployed + "/prometheus/prometheus.yml")
	require.NoError(t, err)
	rules, err := os.ReadFile(deployed + "/prometheus/weft-rules.yml")
	require.NoError(t, err)
	text := strings.ReplaceAll(string(config), "15s", "250ms")
	text = regexp.MustCompile(`targets: .*`).ReplaceAllString(text, "targets: ['"+strings.Join(targets, "', '")+"']")
	require.NoError(t, os.WriteFile(filepath.Join(dir, "prometheus.yml"), []byte(text), 0o644))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "weft-rules.yml"), rules, 0o644))
	listen := freePort(t)
	log, err := os.Create(filepath.Join(dir, "log"))
	require.NoError(t, err)
	cmd := exec.Command(program, "--config.file", filepath.Join(dir, "prometheus.yml"),
		"--storage.tsdb.path", filepath.Join(dir, "data"), "--web.listen-address", listen)
	cmd.Stdout, cmd.Stderr = log, log
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // says that it was killed
		_ = log.Close()
		if t.Failed() {
			text, _ := os.ReadFile(log.Name())
			t.Logf("log of Prometheus:\n%s", text)
		}
	})
	p := prometheus{t, "http://" + listen}
	eventually(t, "Prometheus to be ready", func() bool {
		resp, err := http.Get(p.url + "/-/ready")
		if err != nil {
			return false
		}
		_ = resp.Body.Close()
		return resp.StatusCode == http.StatusOK
	})
	return p
}

// get asks the server's API.
func (p prometheus) get(path string, into any) {
	p.t.Helper()
	resp, err := http.Get(p.url + "/api/v1/" + path)
	require.NoError(p.t, err)
	body, err := io.ReadAll(resp.Body)
	require.NoError(p.t, err)
	require.NoError(p.t, resp.Body.Close())
	require.Equal(p.t, http.StatusOK, resp.StatusCode, "%s: %s", path, body)
	require.NoError(p.t, json.Unmarshal(body, into))
}

// query returns the values of an expression now, by labels.
func (p prometheus) query(expr string) map[string]float64 {
	p.t.Helper()
	var answer struct {
		Data struct {
			Result []struct {
				Metric map[string]string
				Value  [2]any
			}
		}
	}
	p.get("query?query="+url.QueryEscape(expr), &answer)
	values := map[string]float64{}
	for _, r := range answer.Data.Result {
		labels, err := json.Marshal(r.Metric)
		require.NoError(p.t, err)
		text, _ := r.Value[1].(string)
		if values[string(labels)], err = strconv.ParseFloat(text, 64); err != nil {
			require.NoError(p.t, err)
		}
	}
	return values
}

// number returns the value of an expression with one value; -1: it has none yet.
func (p prometheus) number(expr string) float64 {
	for _, v := range p.query(expr) {
		return v
	}
	return -1
}

// becomes waits until an expression has a value.
func (p prometheus) becomes(expr string, want float64) {
	p.t.Helper()
	got := float64(-1)
	for deadline := time.Now().Add(limit); got != want; time.Sleep(50 * time.Millisecond) {
		got = p.number(expr)
		require.True(p.t, time.Now().Before(deadline), "%s is %v, and stays so; want %v", expr, got, want)
	}
}

// buckets returns the cumulative counts of a histogram, by upper bound.
func (p prometheus) buckets(selector string) map[float64]float64 {
	counts := map[float64]float64{}
	for labels, n := range p.query("sum by (le) (" + selector + ")") {
		var l struct{ Le string }
		require.NoError(p.t, json.Unmarshal([]byte(labels), &l))
		le, err := strconv.ParseFloat(l.Le, 64)
		require.NoError(p.t, err)
		counts[le] = n
	}
	return counts
}

// watched is a cluster that Prometheus scrapes.
type watched struct {
	*fleet
	prometheus
	leads  int
	client *client.Client // of the leader
}

func startWatched(t *testing.T) watched {
	tool(t, "prometheus") // before anything is started
	f := newFleet(t, 0, 3, "--leases", "--coding-threshold", "8192", "--tick", "50ms", "--election-ticks", "40")
	var targets []string
	for id := 1; id <= 3; id++ {
		f.nodes[id] = &ship{peer: freePort(t)}
		targets = append(targets, freePort(t))
	}
	for id := 1; id <= 3; id++ {
		f.start(id, "--http-listen", targets[id-1])
	}
	w := watched{fleet: f, prometheus: startPrometheus(t, targets), leads: f.leader()}
	var err error
	w.client, err = client.New(client.Config{Endpoints: []string{f.sure[w.leads]}, Timeout: limit})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, w.client.Close()) })
	return w
}

// put returns how long the client waited for a write.
func (w watched) put(key string, value []byte) time.Duration {
	begin := time.Now()
	_, err := w.client.Put(w.fleet.t.Context(), key, value)
	require.NoError(w.fleet.t, err)
	return time.Since(begin)
}

// putWhileFollowersAreStopped returns the same of a write that cannot be committed for
// at least a time.
func (w watched) putWhileFollowersAreStopped(least time.Duration) time.Duration {
	t := w.fleet.t
	signal := func(s syscall.Signal, then func(pid int)) {
		for id, n := range w.nodes {
			if id != w.leads {
				require.NoError(t, n.cmd.Process.Signal(s))
				then(n.cmd.Process.Pid)
			}
		}
	}
	signal(syscall.SIGSTOP, func(pid int) { // its threads may go on until one of them has noticed
		var status syscall.WaitStatus
		err := error(syscall.EINTR)
		for errors.Is(err, syscall.EINTR) {
			_, err = syscall.Wait4(pid, &status, syscall.WUNTRACED, nil)
		}
		require.NoError(t, err)
		require.True(t, status.Stopped())
	})
	took := make(chan time.Duration, 1)
	go func() { took <- w.put("held up", []byte("v")) }()
	<-time.After(least)
	signal(syscall.SIGCONT, func(int) {})
	return <-took
}

// Prometheus scrapes real nodes under load. Its histograms have each write and read of
// the test's client once, none later than the client had its answer; and a write held up
// is where it belongs.
func TestPrometheusSeesTheLatenciesOfClients(t *testing.T) {
	w := startWatched(t)
	w.put("warm up", nil)
	// Before the load there are that write, its session, and the leader's first entries:
	// the number of groups, and each member's address.
	const first = 2 + 1 + 3
	const applied, reads = `weft_propose_applied_seconds`, `weft_read_seconds`
	eventually(t, "Prometheus to see all nodes, and the first writes", func() bool {
		return w.number("sum(up)") == 3 && w.number("sum(weft_group_leader)") == 1 &&
			w.number("sum("+applied+"_count)") >= first && w.number("sum("+applied+"_count)") == w.number("sum(weft_host_proposals_total)")
	})
	count, before := w.number("sum("+applied+"_count)"), w.buckets(applied+"_bucket")
	sum := w.number("sum(" + applied + "_sum)")

	const puts, gets, heldUp = 200, 100, 600 * time.Millisecond
	var took []time.Duration
	for i := range puts {
		took = append(took, w.put(fmt.Sprint("key", i%10), make([]byte, 1+i*100)))
	}
	took = append(took, w.putWhileFollowersAreStopped(heldUp))
	var readsTook []time.Duration
	for range gets {
		begin := time.Now()
		_, err := w.client.Get(t.Context(), &kvpb.GetRequest{Key: "key1", Policy: &kvpb.ReadPolicy{Kind: kvpb.ReadPolicy_QUORUM}})
		require.NoError(t, err)
		readsTook = append(readsTook, time.Since(begin))
	}
	quorum := reads + `_bucket{policy="quorum_read"}`
	w.becomes("sum("+applied+"_count)", count+puts+1)
	w.becomes(`sum(weft_read_seconds_count{policy="quorum_read"})`, gets)
	w.sameAsClients(applied, w.buckets(applied+"_bucket"), before, took)
	w.sameAsClients(reads, w.buckets(quorum), nil, readsTook)

	total := time.Duration(0)
	for _, d := range took {
		total += d
	}
	applies := w.number("sum("+applied+"_sum)") - sum
	require.LessOrEqual(t, applies, total.Seconds())
	require.Greater(t, applies, heldUp.Seconds())
	inOrder := []float64{w.number("sum(weft_propose_sent_seconds_sum)"), w.number("sum(weft_propose_committed_seconds_sum)"), w.number("sum(" + applied + "_sum)")}
	require.IsIncreasing(t, inOrder)
	require.Greater(t, inOrder[1]-inOrder[0], heldUp.Seconds()/2, "what a write without followers waits for is a majority")
	after := w.buckets(applied + "_bucket")
	require.GreaterOrEqual(t, after[10]-after[0.5]-before[10]+before[0.5], 1.0, "one write was held up, perhaps others by a busy machine")
	eventually(t, "a histogram of each sync", func() bool {
		return w.number("sum(weft_log_sync_seconds_count)") == w.number("sum(weft_log_syncs_total)")
	})
	w.showsTheDashboard()
	w.fleet.stop()
}

// sameAsClients compares a histogram with what clients measured around the same calls.
// A client waits longer than a node takes.
func (w watched) sameAsClients(what string, after, before map[float64]float64, measured []time.Duration) {
	t := w.fleet.t
	require.Len(t, after, 18, what)
	for le, n := range after {
		within := 0
		for _, d := range measured {
			if d.Seconds() <= le {
				within++
			}
		}
		require.GreaterOrEqual(t, n-before[le], float64(within), "%s: calls within %v s", what, le)
		require.LessOrEqual(t, n-before[le], float64(len(measured)), "%s: calls within %v s", what, le)
	}
}

// mayBeEmpty are expressions of panels that show nothing in a cluster without trouble.
var mayBeEmpty = regexp.MustCompile(`> 0$|weft_snapshot_`)

// showsTheDashboard runs each query of the dashboard, and looks at the rules.
func (w watched) showsTheDashboard() {
	t := w.fleet.t
	eventually(t, "each panel to have data", func() bool {
		for _, expr := range dashboardExpressions(t, ".*") {
			if len(w.query(expr)) == 0 && !mayBeEmpty.MatchString(expr) {
				t.Log("no data yet: ", expr)
				return false
			}
		}
		return true
	})
	var answer struct {
		Data struct {
			Groups []struct {
				Rules []struct{ Name, Health, State, LastError string }
			}
		}
	}
	eventually(t, "the rules to be evaluated", func() bool {
		w.get("rules", &answer)
		for _, r := range answer.Data.Groups[0].Rules {
			if r.Health == "unknown" {
				return false
			}
			require.Equal(t, "ok", r.Health, "%s: %s", r.Name, r.LastError)
			require.NotEqual(t, "firing", r.State, r.Name)
		}
		return true
	})
	require.Len(t, answer.Data.Groups[0].Rules, len(sick))
}

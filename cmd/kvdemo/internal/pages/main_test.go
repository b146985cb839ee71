// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/weftraft/weft/cmd/kvdemo/internal/node"
	"github.com/weftraft/weft/internal/docs"
	"github.com/weftraft/weft/rawnode/metrics"
)

func read(t *testing.T, name string) string {
	t.Helper()
	root, err := docs.Root()
	require.NoError(t, err)
	text, err := os.ReadFile(filepath.Join(root, name))
	require.NoError(t, err)
	return string(text)
}

// The document is what the command writes.
func TestPagesAreUpToDate(t *testing.T) {
	old := read(t, document)
	text, err := tables([]byte(old))
	require.NoError(t, err)
	require.True(t, string(text) == old, "%s is not up to date; run: make pages", document)
}

// A metric without a place, and a place without metrics, are mistakes.
func TestTablesNameEachMetricOnce(t *testing.T) {
	text, err := tables([]byte("<!-- metrics: log -->\n<!-- end -->\n\n<!-- metrics: nothing -->\n<!-- end -->\n"))
	require.ErrorContains(t, err, "weft_host_term is in no table")
	require.ErrorContains(t, err, `there are no metrics of "nothing"`)
	require.Contains(t, string(text), "| `weft_log_syncs_total` | Syncs of segment files. |")
	require.Contains(t, string(text), "| `weft_log_sync_seconds` | ")
}

// metricName is a metric's name in an expression or a text, labels is what is asked of
// its labels there.
var (
	metricName = regexp.MustCompile(`\bweft_[a-z0-9_]+`)
	byLabels   = regexp.MustCompile(`\b(?:by|on) \(([a-z_, ]*)\)`)
)

// lookUp returns the metric that a name in an expression is of, or nil.
func lookUp(known []metrics.Info, name string) *metrics.Info {
	for i, m := range known {
		if m.Name == name && m.Type != "histogram" {
			return &known[i]
		}
		if base, ok := strings.CutPrefix(name, m.Name); ok && m.Type == "histogram" && slices.Contains([]string{"_bucket", "_sum", "_count"}, base) {
			return &known[i]
		}
	}
	return nil
}

// checkExpression returns the mistakes in the names of metrics and labels.
func checkExpression(expr string) (mistakes []string) {
	known := node.KnownMetrics()
	labels := []string{"le", "job", "instance"}
	for _, name := range metricName.FindAllString(expr, -1) {
		m := lookUp(known, name)
		if m == nil {
			mistakes = append(mistakes, "there is no metric "+name)
			continue
		}
		labels = append(labels, m.Labels...)
		counts := m.Type == "counter" || m.Type == "histogram"
		if rated := regexp.MustCompile(`(?:rate|increase)\(` + name + `\b`).MatchString(expr); counts && !rated && !strings.Contains(expr, "ALERTS") {
			mistakes = append(mistakes, name+" only grows; want its rate or increase")
		}
	}
	for _, m := range byLabels.FindAllStringSubmatch(expr, -1) {
		for _, l := range strings.Split(m[1], ",") {
			if l = strings.TrimSpace(l); !slices.Contains(labels, l) {
				mistakes = append(mistakes, "no metric of the expression has the label "+l)
			}
		}
	}
	return mistakes
}

// panel is what the test wants of a panel of the dashboard. A row that is closed has its panels inside.
type panel struct {
	ID          int
	Type, Title string
	Panels      []panel
	Targets     []struct {
		Expr, LegendFormat string
		Datasource         struct{ UID string }
	}
}

func TestDashboardNamesMetricsThatExist(t *testing.T) {
	var board struct{ Panels []panel }
	require.NoError(t, json.Unmarshal([]byte(read(t, "deploy/grafana/weft.json")), &board))
	seen := map[int]bool{}
	var check func(p panel)
	check = func(p panel) {
		require.False(t, seen[p.ID], "%s: another panel has its id, %d", p.Title, p.ID)
		seen[p.ID] = true
		require.Equal(t, p.Type == "row", len(p.Targets) == 0, p.Title)
		for _, q := range p.Targets {
			require.Equal(t, "${datasource}", q.Datasource.UID, p.Title)
			require.Empty(t, checkExpression(q.Expr), "%s: %s", p.Title, q.Expr)
			require.Contains(t, q.Expr, `job="$job"`, "%s: of another cluster, too", p.Title)
			for _, m := range regexp.MustCompile(`{{([a-z]+)}}`).FindAllStringSubmatch(q.LegendFormat, -1) {
				byThem := byLabels.FindStringSubmatch(q.Expr)
				require.True(t, byThem == nil || strings.Contains(byThem[1], m[1]), "%s: %s is summed away in %s", p.Title, m[1], q.Expr)
			}
		}
		for _, inside := range p.Panels {
			check(inside)
		}
	}
	for _, p := range board.Panels {
		check(p)
	}
	require.Greater(t, len(seen), 50)
}

// rules is what a file of Prometheus's rules has.
type rules struct {
	Groups []struct {
		Rules []struct {
			Alert, Expr, For    string
			Labels, Annotations map[string]string
		}
	}
}

func TestRulesNameMetricsThatExist(t *testing.T) {
	var file rules
	require.NoError(t, yaml.Unmarshal([]byte(read(t, "deploy/prometheus/weft-rules.yml")), &file))
	seen := map[string]bool{}
	for _, r := range file.Groups[0].Rules {
		require.Empty(t, checkExpression(r.Expr), r.Alert)
		require.Contains(t, []string{"critical", "warning"}, r.Labels["severity"], r.Alert)
		require.NotEmpty(t, r.Annotations["summary"], r.Alert)
		require.NotEmpty(t, r.Annotations["description"], r.Alert)
		require.False(t, seen[r.Alert], "%s is there twice", r.Alert)
		seen[r.Alert] = true
	}
	require.Greater(t, len(seen), 20)
}

// The checks of expressions find mistakes.
func TestMistakesInExpressionsAreFound(t *testing.T) {
	for expr, want := range map[string]string{
		`weft_host_committed`:                                     "there is no metric weft_host_committed",
		`sum(weft_host_proposals_total)`:                          "weft_host_proposals_total only grows",
		`sum by (peer) (weft_host_commit)`:                        "no metric of the expression has the label peer",
		`rate(weft_log_sync_seconds[5m])`:                         "there is no metric weft_log_sync_seconds",
		`histogram_quantile(0.9, weft_log_sync_seconds_bucket)`:   "only grows",
		`weft_log_syncs`:                                          "there is no metric weft_log_syncs",
		`sum by (group) (rate(weft_host_commit_bucket{N}[5m]))`:   "there is no metric weft_host_commit_bucket",
		`sum by (le, reason) (rate(weft_log_syncs_total{N}[5m]))`: "the label reason",
	} {
		require.Contains(t, strings.Join(checkExpression(expr), "; "), want, expr)
	}
}

// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"strings"
)

// The types below are the part of Grafana's dashboard model that the dashboard needs.
type (
	model struct {
		Title         string     `json:"title"`
		UID           string     `json:"uid"`
		Description   string     `json:"description"`
		Tags          []string   `json:"tags"`
		SchemaVersion int        `json:"schemaVersion"`
		Editable      bool       `json:"editable"`
		GraphTooltip  int        `json:"graphTooltip"`
		Refresh       string     `json:"refresh"`
		Time          timeRange  `json:"time"`
		Templating    templating `json:"templating"`
		Panels        []any      `json:"panels"`
	}
	timeRange  struct{ From, To string }
	templating struct {
		List []variable `json:"list"`
	}
	variable struct {
		Name       string `json:"name"`
		Label      string `json:"label"`
		Type       string `json:"type"`
		Query      string `json:"query"`
		Datasource *ref   `json:"datasource,omitempty"`
		Refresh    int    `json:"refresh"`
		Multi      bool   `json:"multi"`
		IncludeAll bool   `json:"includeAll"`
		AllValue   string `json:"allValue,omitempty"`
		Sort       int    `json:"sort"`
	}
	ref struct {
		Type string `json:"type"`
		UID  string `json:"uid"`
	}
	grid struct {
		H int `json:"h"`
		W int `json:"w"`
		X int `json:"x"`
		Y int `json:"y"`
	}
	rowPanel struct {
		ID        int    `json:"id"`
		Type      string `json:"type"`
		Title     string `json:"title"`
		Collapsed bool   `json:"collapsed"`
		GridPos   grid   `json:"gridPos"`
		Panels    []any  `json:"panels"`
	}
	chart struct {
		ID          int         `json:"id"`
		Type        string      `json:"type"`
		Title       string      `json:"title"`
		Description string      `json:"description"`
		Datasource  ref         `json:"datasource"`
		GridPos     grid        `json:"gridPos"`
		FieldConfig fieldConfig `json:"fieldConfig"`
		Options     any         `json:"options,omitempty"`
		Targets     []target    `json:"targets"`
	}
	fieldConfig struct {
		Defaults  defaults `json:"defaults"`
		Overrides []any    `json:"overrides"`
	}
	defaults struct {
		Unit string   `json:"unit"`
		Min  *float64 `json:"min,omitempty"`
	}
	target struct {
		RefID        string `json:"refId"`
		Expr         string `json:"expr"`
		LegendFormat string `json:"legendFormat"`
		Datasource   ref    `json:"datasource"`
	}
)

// MarshalJSON writes what Grafana calls from and to.
func (r timeRange) MarshalJSON() ([]byte, error) {
	return json.Marshal(map[string]string{"from": r.From, "to": r.To})
}

var source = ref{Type: "prometheus", UID: "${datasource}"}

// Selectors, for which {G and {N stand in the expressions of panels.
const (
	nodeSelector  = `{job="$job",instance=~"$instance"`
	groupSelector = nodeSelector + `,group=~"$group"`
)

// expand writes out the selectors of an expression.
func expand(expr string) string {
	return strings.NewReplacer("{G", groupSelector, "{N", nodeSelector).Replace(expr)
}

// variables let a reader choose cluster, nodes and groups.
func variables() []variable {
	values := func(name, label, query string) variable {
		return variable{Name: name, Label: label, Type: "query", Query: query, Datasource: &source, Refresh: 2, Multi: true, IncludeAll: true, AllValue: ".*", Sort: 3}
	}
	job := values("job", "job", "label_values(weft_log_groups, job)")
	job.Multi, job.IncludeAll, job.AllValue = false, false, ""
	return []variable{
		{Name: "datasource", Label: "Prometheus", Type: "datasource", Query: "prometheus", Refresh: 1},
		job,
		values("instance", "node", `label_values(weft_log_groups{job="$job"}, instance)`),
		values("group", "group", `label_values(weft_group_has_leader{job="$job"}, group)`),
	}
}

// grafana returns the dashboard. Rows have panels of a third of the width each.
func grafana([]byte) ([]byte, error) {
	m := model{
		Title: "Weft", UID: "weft", Tags: []string{"weft", "raft"}, SchemaVersion: 39, Editable: true, GraphTooltip: 1,
		Description: "Nodes of one Weft cluster. docs/metrics.md says what each metric means, docs/operations.md what to do.",
		Refresh:     "10s", Time: timeRange{"now-1h", "now"}, Templating: templating{variables()},
	}
	const width, height = 8, 7
	id, y := 0, 0
	for i, r := range rows {
		id++
		head := rowPanel{ID: id, Type: "row", Title: r.title, Collapsed: i > 1, GridPos: grid{1, 24, 0, y}, Panels: []any{}}
		var panels []any
		y++
		for k, p := range r.panels {
			id++
			at := grid{height, width, k % 3 * width, y + k/3*height}
			panels = append(panels, p.chart(id, at))
		}
		y += (len(r.panels) + 2) / 3 * height
		if head.Collapsed { // a collapsed row has its panels inside
			head.Panels, panels = panels, nil
		}
		m.Panels = append(append(m.Panels, head), panels...)
	}
	text, err := json.MarshalIndent(m, "", "  ")
	return append(text, '\n'), err
}

func (p panel) chart(id int, at grid) chart {
	c := chart{
		ID: id, Type: "timeseries", Title: p.title, Description: p.look, Datasource: source, GridPos: at,
		FieldConfig: fieldConfig{Defaults: defaults{Unit: p.unit}, Overrides: []any{}},
	}
	if p.unit != "ppm" { // a clock may be slow
		c.FieldConfig.Defaults.Min = new(float64)
	}
	for i, q := range p.queries {
		c.Targets = append(c.Targets, target{RefID: string(rune('A' + i)), Expr: expand(q.expr), LegendFormat: q.legend, Datasource: source})
	}
	return c
}

// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weftraft/weft/rawnode"
)

// gaugeMark begins the text of a gauge; texts without it are of counters.
const gaugeMark = "now: "

// Numbers returns a collector of the numbers in a struct: integers, booleans (0 or
// 1), durations (in seconds), and those of structs in it. read returns the struct as
// it is now, always of the same type. A number's metric is called
// weft_subsystem_field, in snake case, with _seconds behind a duration and _total
// behind a counter. texts has the text of each, by the path of its field, such as
// "Reads.Local"; a text that begins with "now: " makes the metric a gauge, and an
// empty one leaves the number out. Numbers panics if a number has no text or a text
// no number: that is a mistake in the program.
func Numbers(subsystem string, texts map[string]string, read func() any) *NumberCollector {
	n := &NumberCollector{part: part{name: subsystem}, read: read, all: table{}}
	unused := map[string]bool{}
	for path := range texts {
		unused[path] = true
	}
	n.all.addNumbers(n.part, read(), func(path string) string {
		text, ok := texts[path]
		if !ok {
			panic(fmt.Sprintf("metrics: field %s of %T has no text; want one, or an empty one to leave the number out", path, read()))
		}
		delete(unused, path)
		return text
	})
	for path := range unused {
		panic(fmt.Sprintf("metrics: the text of %q is of no number of %T; take it out", path, read()))
	}
	return n
}

// NumberCollector collects the numbers of a struct; see [Numbers].
type NumberCollector struct {
	part part
	read func() any
	all  table
}

// Known returns the metrics, by name.
func (n *NumberCollector) Known() []Info { return n.all.infos(nil) }

// Describe implements prometheus.Collector.
func (n *NumberCollector) Describe(out chan<- *prometheus.Desc) { n.all.describe(out) }

// Collect implements prometheus.Collector.
func (n *NumberCollector) Collect(out chan<- prometheus.Metric) {
	n.all.collect(out, n.part.name, n.read())
}

// part is a subsystem, and the labels of its metrics.
type part struct {
	name   string
	labels []string
}

// metric is one metric of a table.
type metric struct {
	info Info
	desc *prometheus.Desc
	kind prometheus.ValueType
}

// table has metrics by subsystem and path: "host.Term".
type table map[string]metric

// add puts a metric into the table, unless its text says that it is none.
func (t table) add(p part, path, unit, text string) {
	help, gauge := strings.CutPrefix(text, gaugeMark)
	if help == "" {
		return
	}
	name, kind, word := metricName(p.name, path)+unit, prometheus.CounterValue, "counter"
	if gauge {
		kind, word = prometheus.GaugeValue, "gauge"
	} else {
		name += "_total"
	}
	t[p.name+"."+path] = metric{
		info: Info{Name: name, Type: word, Labels: p.labels, Help: help},
		desc: prometheus.NewDesc(name, help, p.labels, nil), kind: kind,
	}
}

// addNumbers adds a metric for each number in a struct.
func (t table) addNumbers(p part, of any, text func(path string) string) {
	numbers(reflect.ValueOf(of), "", func(path, unit string, _ float64) { t.add(p, path, unit, text(path)) })
}

// infos returns what the table has, and more, by name.
func (t table) infos(more []Info) []Info {
	infos := slices.Clone(more)
	for _, m := range t {
		infos = append(infos, m.info)
	}
	slices.SortFunc(infos, func(a, b Info) int { return strings.Compare(a.Name, b.Name) })
	return infos
}

func (t table) describe(out chan<- *prometheus.Desc) {
	for _, m := range t {
		out <- m.desc
	}
}

// collect sends a metric for each number in a struct that the table has.
func (t table) collect(out chan<- prometheus.Metric, subsystem string, of any, labels ...string) {
	numbers(reflect.ValueOf(of), "", func(path, _ string, value float64) {
		t.one(out, subsystem+"."+path, value, labels...)
	})
}

// one sends a metric, if the table has it.
func (t table) one(out chan<- prometheus.Metric, key string, value float64, labels ...string) {
	if m, ok := t[key]; ok {
		out <- prometheus.MustNewConstMetric(m.desc, m.kind, value, labels...)
	}
}

// numbers visits the numbers in a struct and in the structs in it. A path has the
// names of the fields with a dot between two. A unit is that of a duration.
func numbers(v reflect.Value, path string, visit func(path, unit string, value float64)) {
	for i := range v.NumField() {
		field, f := v.Type().Field(i), v.Field(i)
		if !field.IsExported() {
			continue
		}
		at := strings.TrimPrefix(path+"."+field.Name, ".")
		if field.Anonymous || field.Name == "Counters" {
			at = path
		}
		d, isDuration := reflect.TypeAssert[time.Duration](f)
		switch {
		case isDuration:
			visit(at, "_seconds", d.Seconds())
		case f.CanUint():
			visit(at, "", float64(f.Uint()))
		case f.CanInt():
			visit(at, "", float64(f.Int()))
		case f.Kind() == reflect.Bool && f.Bool():
			visit(at, "", 1)
		case f.Kind() == reflect.Bool:
			visit(at, "", 0)
		case f.Type() == reflect.TypeFor[rawnode.StageStats](): // a subsystem of its own
		case f.Kind() == reflect.Struct:
			numbers(f, at, visit)
		}
	}
}

// metricName returns weft_subsystem_path in snake case.
func metricName(subsystem, path string) string {
	var b strings.Builder
	b.WriteString("weft_" + subsystem + "_")
	before := '.'
	for _, r := range path {
		switch {
		case r == '.':
			b.WriteByte('_')
		case unicode.IsUpper(r) && before != '.' && !unicode.IsUpper(before):
			b.WriteByte('_')
			fallthrough
		default:
			b.WriteRune(unicode.ToLower(r))
		}
		before = r
	}
	return b.String()
}

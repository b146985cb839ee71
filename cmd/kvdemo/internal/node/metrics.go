// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package node

import (
	"reflect"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weftraft/weft/raft"
	"github.com/weftraft/weft/rawnode/wire"
)

// collector turns the counters of a node's parts into metrics. The libraries
// have plain structs of numbers; each number is a metric whose name is the path
// to its field. The table help has their texts.
type collector struct{ n *node }

// Describe implements prometheus.Collector. It describes nothing: what there is
// depends on the peers.
func (c collector) Describe(chan<- *prometheus.Desc) {}

// Collect implements prometheus.Collector.
func (c collector) Collect(out chan<- prometheus.Metric) {
	n := c.n
	for _, g := range n.groups {
		s := g.host.Status()
		labels := labels{{"group", strconv.FormatUint(g.id, 10)}}
		collect(out, "host", labels, s)
		collect(out, "group", labels, groupGauges{
			Leader: s.Role == raft.StateLeader, HasLeader: s.Lead != raft.None, Stalled: s.Stalled != nil,
			Voters: len(s.Members.GetVoters()), Learners: len(s.Members.GetLearners()),
		})
	}
	collect(out, "log", nil, n.engine.Stats())
	collect(out, "state", nil, n.stateGauges())
	net := n.peers.Stats()
	collect(out, "transport", nil, net)
	for peer, classes := range net.Peers {
		for class, traffic := range classes {
			collect(out, "link", linkLabels(peer, class), traffic)
		}
	}
}

// groupGauges are what the numbers of a host's status do not say.
type groupGauges struct {
	Leader, HasLeader, Stalled bool
	Voters, Learners           int
}

// stateGauges are the numbers of the state's database that tell how it is.
type stateGauges struct {
	DiskBytes uint64
}

type label struct{ name, value string }

type labels []label

func (l labels) names() (names []string) {
	for _, label := range l {
		names = append(names, label.name)
	}
	return names
}

func (l labels) values() (values []string) {
	for _, label := range l {
		values = append(values, label.value)
	}
	return values
}

func linkLabels(peer uint64, class int) labels {
	return labels{{"peer", strconv.FormatUint(peer, 10)}, {"class", wire.Class(class).String()}}
}

// collect sends a metric for each number in a struct.
func collect(out chan<- prometheus.Metric, subsystem string, l labels, of any) {
	numbers(reflect.ValueOf(of), "", func(path string, value float64) {
		text, gauge := strings.CutPrefix(help[subsystem+path], "now: ")
		if text == "" {
			return // of no meaning to an operator
		}
		kind, name := prometheus.CounterValue, metricName(subsystem, path)
		if gauge {
			kind = prometheus.GaugeValue
		} else {
			name += "_total"
		}
		desc := prometheus.NewDesc(name, text, l.names(), nil)
		out <- prometheus.MustNewConstMetric(desc, kind, value, l.values()...)
	})
}

// numbers visits the numbers in a struct and the structs in it. A path has the
// names of the fields, each behind a dot; durations are in seconds.
func numbers(v reflect.Value, path string, visit func(path string, value float64)) {
	for i := range v.NumField() {
		field, f := v.Type().Field(i), v.Field(i)
		at := path + "." + field.Name
		if field.Anonymous || field.Name == "Counters" {
			at = path
		}
		d, isDuration := reflect.TypeAssert[time.Duration](f)
		switch {
		case !field.IsExported():
		case isDuration:
			visit(at, d.Seconds())
		case f.CanUint():
			visit(at, float64(f.Uint()))
		case f.CanInt():
			visit(at, float64(f.Int()))
		case f.Kind() == reflect.Bool && f.Bool():
			visit(at, 1)
		case f.Kind() == reflect.Bool:
			visit(at, 0)
		case f.Kind() == reflect.Struct:
			numbers(f, at, visit)
		}
	}
}

// metricName returns weft_subsystem_path in snake case.
func metricName(subsystem, path string) string {
	var b strings.Builder
	b.WriteString("weft_" + subsystem)
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
	name := b.String()
	// A stage's durations say their unit.
	if strings.Count(path, ".") > 1 && (strings.HasSuffix(name, "_busy") || strings.HasSuffix(name, "_queued")) {
		name += "_seconds"
	}
	return name
}

// stateGauges returns the numbers of the state.
func (n *node) stateGauges() stateGauges {
	return stateGauges{DiskBytes: n.db.DiskBytes()}
}

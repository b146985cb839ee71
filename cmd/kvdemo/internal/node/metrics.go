// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package node

import (
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weftraft/weft/cmd/kvdemo/internal/secure"
	"github.com/weftraft/weft/internal/wire"
	"github.com/weftraft/weft/raft"
	"github.com/weftraft/weft/rawnode"
	"github.com/weftraft/weft/rawnode/transport"
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
		for name, stage := range map[string]rawnode.StageStats{
			"resolve": s.Resolve, "step": s.Step, "append": s.Append, "apply": s.Apply, "send": s.Send,
		} {
			collect(out, "stage", append(slices.Clone(labels), label{"stage", name}), stage)
		}
		collectCoding(out, labels, s.Coding)
		collectLeases(out, labels, s.Leases)
		if g.id == 1 && s.Clock != nil {
			collect(out, "clock", nil, *s.Clock)
		}
		collect(out, "group", labels, groupGauges{
			Leader: s.Role == raft.StateLeader, HasLeader: s.Lead != raft.None, Stalled: s.Stalled != nil,
			Voters: len(s.Members.GetVoters()), Learners: len(s.Members.GetLearners()), LostLogs: lostLogs(s.Progress),
		})
	}
	n.reads.collect(out)
	for why := range n.refused {
		one(out, "clients", ".Refusals", labels{{"reason", secure.Refusal(why).String()}}, "", float64(n.refused[why].Load()))
	}
	collect(out, "log", nil, n.engine.Stats())
	collect(out, "state", nil, n.stateGauges())
	net := n.peers.Stats()
	collect(out, "transport", nil, net)
	for reason, count := range net.Refusals {
		one(out, "transport", ".Refusals", labels{{"reason", transport.Refusal(reason).String()}}, "", float64(count))
	}
	if !net.CertificateExpiry.IsZero() {
		one(out, "transport", ".CertificateExpiry", nil, "_timestamp_seconds", float64(net.CertificateExpiry.Unix()))
	}
	for peer, classes := range net.Peers {
		one(out, "peer", ".ReceiveBytes", labels{peerLabel(peer)}, "", float64(net.ReceiveBytes[peer]))
		for class, traffic := range classes {
			l := labels{peerLabel(peer), {"class", wire.Class(class).String()}}
			collect(out, "link", l, traffic)
			for reason, count := range traffic.Dropped {
				one(out, "link", ".Dropped", append(slices.Clone(l), label{"reason", transport.Drop(reason).String()}), "", float64(count))
			}
		}
	}
}

// groupGauges are what the numbers of a host's status do not say.
type groupGauges struct {
	Leader, HasLeader, Stalled bool
	Voters, Learners, LostLogs int
}

func lostLogs(members map[uint64]rawnode.MemberProgress) (n int) {
	for _, p := range members {
		if p.LogLost {
			n++
		}
	}
	return n
}

// stateGauges are the numbers of the state's database that tell how it is.
type stateGauges struct {
	DiskBytes, WrittenBytes                     uint64
	Flushes, Compactions                        int64
	CompactionDebtBytes                         uint64
	MemTableBytes, CacheBytes                   uint64
	CacheHits, CacheMisses                      int64
	Stalled                                     bool
	Sessions, Uploads, LargeValues, UploadBytes int64
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

func peerLabel(peer uint64) label { return label{"peer", strconv.FormatUint(peer, 10)} }

// collect sends a metric for each number in a struct.
func collect(out chan<- prometheus.Metric, subsystem string, l labels, of any) {
	numbers(reflect.ValueOf(of), "", func(path, unit string, value float64) {
		one(out, subsystem, path, l, unit, value)
	})
}

// one sends a metric, unless help says that it is none.
func one(out chan<- prometheus.Metric, subsystem, path string, l labels, unit string, value float64) {
	text, gauge := strings.CutPrefix(help[subsystem+path], "now: ")
	if text == "" {
		return
	}
	kind, name := prometheus.CounterValue, metricName(subsystem, path)+unit
	if gauge {
		kind = prometheus.GaugeValue
	} else {
		name += "_total"
	}
	desc := prometheus.NewDesc(name, text, l.names(), nil)
	out <- prometheus.MustNewConstMetric(desc, kind, value, l.values()...)
}

// numbers visits the numbers in a struct and the structs in it. A path has the
// names of the fields, each behind a dot. A unit is that of a duration.
func numbers(v reflect.Value, path string, visit func(path, unit string, value float64)) {
	for i := range v.NumField() {
		field, f := v.Type().Field(i), v.Field(i)
		if !field.IsExported() {
			continue
		}
		at := path + "." + field.Name
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
		case f.Type() == reflect.TypeFor[rawnode.StageStats](): // see Collect
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
	return b.String()
}

// stateGauges returns the numbers of the state.
func (n *node) stateGauges() stateGauges {
	g := stateGauges{DiskBytes: n.db.DiskBytes(), WrittenBytes: n.db.WrittenBytes(), Stalled: n.db.Stalled() != nil}
	for _, group := range n.groups {
		s := group.store.Stats()
		g.Sessions += s.Sessions
		g.Uploads += s.Uploads
		g.LargeValues += s.LargeValues
		g.UploadBytes += s.UploadBytes
	}
	if m := n.db.Metrics(); m != nil {
		g.Flushes, g.Compactions = m.Flush.Count, m.Compact.Count
		g.CompactionDebtBytes, g.MemTableBytes = m.Compact.EstimatedDebt, m.MemTable.Size
		g.CacheBytes, g.CacheHits, g.CacheMisses = uint64(m.BlockCache.Size), m.BlockCache.Hits, m.BlockCache.Misses
	}
	return g
}

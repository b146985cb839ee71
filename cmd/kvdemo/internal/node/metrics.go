// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package node

import (
	"slices"
	"strings"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weftraft/weft/cmd/kvdemo/internal/secure"
	"github.com/weftraft/weft/cmd/kvdemo/kvpb"
	"github.com/weftraft/weft/rawnode"
	"github.com/weftraft/weft/rawnode/metrics"
)

// KnownMetrics returns what /metrics shows of a node, by name, without the metrics of
// the Go runtime and of the process.
func KnownMetrics() []metrics.Info {
	state := metrics.Numbers("state", stateTexts, func() any { return stateGauges{} })
	infos := slices.Concat(metrics.Known(), state.Known(), clientInfos, []metrics.Info{logInfo})
	slices.SortFunc(infos, func(a, b metrics.Info) int { return strings.Compare(a.Name, b.Name) })
	return infos
}

// collectors returns the metrics of a node that serves: those of Weft's parts, of the
// state, and of clients.
func (n *node) collectors() []prometheus.Collector {
	return []prometheus.Collector{
		prometheus.NewCounterFunc(prometheus.CounterOpts{Name: logInfo.Name, Help: logInfo.Help}, func() float64 { return float64(n.cfg.LogLevel.LeftOut()) }),
		n.metrics,
		metrics.Numbers("state", stateTexts, func() any { return n.stateGauges() }),
		clientCounts{&n.refused, &n.reads},
	}
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

// stateTexts are the texts of stateGauges.
var stateTexts = map[string]string{
	"DiskBytes":           "now: Bytes of the state's files.",
	"WrittenBytes":        "Bytes written to the state's files.",
	"Flushes":             "Flushes of the state to disk.",
	"Compactions":         "Compactions of the state's files.",
	"CompactionDebtBytes": "now: Bytes that compactions still have to move, roughly.",
	"MemTableBytes":       "now: Bytes of applied state not flushed yet.",
	"CacheBytes":          "now: Bytes in the state's cache of blocks.",
	"CacheHits":           "Blocks of the state found in the cache.",
	"CacheMisses":         "Blocks of the state read from files.",
	"Stalled":             "now: 1 while the state cannot be written, mostly because the disk is full.",
	"Sessions":            "now: Sessions of clients.",
	"Uploads":             "now: Large values that are arriving.",
	"UploadBytes":         "now: Bytes of the parts that have arrived.",
	"LargeValues":         "now: Values kept in parts.",
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

// clientCounts are the metrics of clients.
type clientCounts struct {
	refused *[secure.NumRefusals]atomic.Uint64
	reads   *readCounts // nil at a gateway
}

// logInfo is the metric of the node's own log.
var logInfo = metrics.Info{Name: "weft_log_lines_left_out_total", Type: "counter", Help: "Lines left out of the node's own log, because they repeat too often."}

// clientInfos are the metrics of clients: refusals, and reads.
var clientInfos = []metrics.Info{
	{Name: "weft_clients_refusals_total", Type: "counter", Labels: []string{"reason"},
		Help: "Connections and calls refused for the client's certificate, or for want of one."},
	{Name: "weft_clients_reads_total", Type: "counter", Labels: []string{"policy", "served"},
		Help: "Reads of clients that ended well."},
}

var clientRefusals, clientReads = describe(clientInfos[0]), describe(clientInfos[1])

func describe(i metrics.Info) *prometheus.Desc {
	return prometheus.NewDesc(i.Name, i.Help, i.Labels, nil)
}

// Describe implements prometheus.Collector.
func (c clientCounts) Describe(out chan<- *prometheus.Desc) {
	out <- clientRefusals
	out <- clientReads
}

// Collect implements prometheus.Collector. Combinations of policy and server that have
// not occurred are left out.
func (c clientCounts) Collect(out chan<- prometheus.Metric) {
	count := func(desc *prometheus.Desc, value uint64, labels ...string) {
		out <- prometheus.MustNewConstMetric(desc, prometheus.CounterValue, float64(value), labels...)
	}
	for why := range c.refused {
		count(clientRefusals, c.refused[why].Load(), secure.Refusal(why).String())
	}
	if c.reads == nil {
		return
	}
	for kind := range c.reads {
		for by := range c.reads[kind] {
			if reads := c.reads[kind][by].Load(); reads > 0 {
				count(clientReads, reads, strings.ToLower(kvpb.ReadPolicy_Kind(kind).String()), rawnode.ServedBy(by).String())
			}
		}
	}
}

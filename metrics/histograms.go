// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weftraft/weft/storage"
)

// buckets are the upper bounds of histograms, in seconds: from less than a sync takes
// on a fast disk to the default deadline of calls.
var buckets = []float64{
	50e-6, 100e-6, 250e-6, 500e-6, 1e-3, 2.5e-3, 5e-3, 10e-3, 25e-3, 50e-3, 100e-3, 250e-3, 500e-3, 1, 2.5, 5, 10,
}

// histograms are the times that recorders are told.
type histograms struct {
	sync *prometheus.HistogramVec
}

// histogram describes one of them.
type histogram struct {
	name, help string
	labels     []string
	of         func(*histograms) **prometheus.HistogramVec
}

var histogramTable = []histogram{
	{
		"weft_log_sync_seconds", "How long syncs of segment files take.", nil,
		func(h *histograms) **prometheus.HistogramVec { return &h.sync },
	},
}

func histogramInfos() (infos []Info) {
	for _, h := range histogramTable {
		infos = append(infos, Info{Name: h.name, Type: "histogram", Labels: h.labels, Help: h.help})
	}
	return infos
}

func newHistograms() (h histograms) {
	for _, x := range histogramTable {
		*x.of(&h) = prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: x.name, Help: x.help, Buckets: buckets}, x.labels)
	}
	return h
}

func (h *histograms) describe(out chan<- *prometheus.Desc) {
	for _, x := range histogramTable {
		(*x.of(h)).Describe(out)
	}
}

func (h *histograms) collect(out chan<- prometheus.Metric) {
	for _, x := range histogramTable {
		(*x.of(h)).Collect(out)
	}
}

// Log returns the recorder of the node's log engine.
func (s *Set) Log() storage.Recorder { return logRecorder{s.times.sync.WithLabelValues()} }

type logRecorder struct{ sync prometheus.Observer }

// Synced implements storage.Recorder.
func (r logRecorder) Synced(took time.Duration) { r.sync.Observe(took.Seconds()) }

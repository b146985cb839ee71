// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"strconv"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weftraft/weft/internal/replica"
	"github.com/weftraft/weft/rawnode"
	"github.com/weftraft/weft/storage"
)

// buckets are the upper bounds of histograms, in seconds: from less than a sync takes
// on a fast disk to the default deadline of calls.
var buckets = []float64{
	50e-6, 100e-6, 250e-6, 500e-6, 1e-3, 2.5e-3, 5e-3, 10e-3, 25e-3, 50e-3, 100e-3, 250e-3, 500e-3, 1, 2.5, 5, 10,
}

// histograms are the times that recorders are told.
type histograms struct {
	sent, committed, applied *prometheus.HistogramVec
	read                     *prometheus.HistogramVec
	snapshotSent, restored   *prometheus.HistogramVec
	sync                     *prometheus.HistogramVec
}

// histogram describes one of them.
type histogram struct {
	name, help string
	labels     []string
	of         func(*histograms) **prometheus.HistogramVec
}

// perGroup are the labels of histograms of groups; the results of snapshots are ok and
// failed.
var (
	perGroup    = []string{"group"}
	perRead     = []string{"group", "policy", "served"}
	perSnapshot = []string{"group", "result"}
)

var histogramTable = []histogram{
	{"weft_propose_sent_seconds", "Time from the call until the command left the called node's queue, for the log or the leader.",
		perGroup, func(h *histograms) **prometheus.HistogramVec { return &h.sent }},
	{"weft_propose_committed_seconds", "Time from the call until the called node knew that the command is committed.",
		perGroup, func(h *histograms) **prometheus.HistogramVec { return &h.committed }},
	{"weft_propose_applied_seconds", "Time from the call until the command was applied, and the call ended.",
		perGroup, func(h *histograms) **prometheus.HistogramVec { return &h.applied }},
	{"weft_read_seconds", "Time from the call until the read could look at the state.",
		perRead, func(h *histograms) **prometheus.HistogramVec { return &h.read }},
	{"weft_snapshot_sent_seconds", "Time until a member had restored a snapshot of this node, or failed to.",
		perSnapshot, func(h *histograms) **prometheus.HistogramVec { return &h.snapshotSent }},
	{"weft_snapshot_restored_seconds", "Time from a snapshot's first piece until this node had restored it, or failed to.",
		perSnapshot, func(h *histograms) **prometheus.HistogramVec { return &h.restored }},
	{"weft_log_sync_seconds", "Histogram of the time of a sync of a segment file.",
		nil, func(h *histograms) **prometheus.HistogramVec { return &h.sync }},
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

// Host returns the recorder of a group's host at this node. Its histograms have the group
// as a label: of the first [MaxGroups] groups that there are recorders of; all others share
// the label "other".
func (s *Set) Host(group uint64) rawnode.Recorder {
	label := s.label(group)
	return &hostRecorder{
		times: &s.times, group: label,
		sent:      s.times.sent.WithLabelValues(label),
		committed: s.times.committed.WithLabelValues(label),
		applied:   s.times.applied.WithLabelValues(label),
	}
}

// MaxGroups bounds the groups with histograms of their own: each has about a hundred
// series.
const MaxGroups = 64

func (s *Set) label(group uint64) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.labelled[group] == "" && len(s.labelled) < MaxGroups {
		s.labelled[group] = strconv.FormatUint(group, 10)
	}
	if label := s.labelled[group]; label != "" {
		return label
	}
	return "other"
}

type hostRecorder struct {
	times                    *histograms
	group                    string
	sent, committed, applied prometheus.Observer
	reads                    sync.Map // prometheus.Observer by readKind
}

// readKind is what tells the histograms of reads apart.
type readKind struct {
	policy string
	by     rawnode.ServedBy
}

// Proposed implements rawnode.Recorder.
func (r *hostRecorder) Proposed(t rawnode.CommandTimes) {
	r.sent.Observe(t.Sent.Seconds())
	r.committed.Observe(t.Committed.Seconds())
	r.applied.Observe(t.Applied.Seconds())
}

// Read implements rawnode.Recorder.
func (r *hostRecorder) Read(policy rawnode.ReadPolicy, by rawnode.ServedBy, took time.Duration) {
	kind := readKind{replica.PolicyName(policy), by}
	o, ok := r.reads.Load(kind)
	if !ok {
		o, _ = r.reads.LoadOrStore(kind, r.times.read.WithLabelValues(r.group, kind.policy, by.String()))
	}
	o.(prometheus.Observer).Observe(took.Seconds()) // only such are stored
}

// SnapshotSent implements rawnode.Recorder.
func (r *hostRecorder) SnapshotSent(t rawnode.SnapshotTimes) { r.snapshot(r.times.snapshotSent, t) }

// SnapshotRestored implements rawnode.Recorder.
func (r *hostRecorder) SnapshotRestored(t rawnode.SnapshotTimes) { r.snapshot(r.times.restored, t) }

func (r *hostRecorder) snapshot(of *prometheus.HistogramVec, t rawnode.SnapshotTimes) {
	result := "ok"
	if t.Err != nil {
		result = "failed"
	}
	of.WithLabelValues(r.group, result).Observe(t.Took.Seconds())
}

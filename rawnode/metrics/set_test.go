// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"fmt"
	"io"
	"maps"
	"reflect"
	"regexp"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/weftraft/weft/internal/replica"
	"github.com/weftraft/weft/internal/wire"
	"github.com/weftraft/weft/leases"
	"github.com/weftraft/weft/raft"
	"github.com/weftraft/weft/rawnode"
	"github.com/weftraft/weft/rawnode/transport"
	"github.com/weftraft/weft/storage"
)

// Every number that a part counts has a text, or is left out on purpose, and every
// text has its number.
func TestEachNumberHasAText(t *testing.T) {
	unused := maps.Clone(help)
	var missing []string
	for _, s := range sources {
		numbers(reflect.ValueOf(s.of), "", func(path, _ string, _ float64) {
			key := s.name + "." + path
			if _, ok := help[key]; !ok {
				missing = append(missing, key)
			}
			delete(unused, key)
		})
	}
	for _, x := range extras {
		delete(unused, x.name+"."+x.path)
	}
	require.Empty(t, missing, "metrics without a text")
	require.Empty(t, unused, "texts without a metric")
	require.Equal(t, "weft_stage_queued", metricName("stage", "Queued"))
	require.Equal(t, "weft_log_max_batch", metricName("log", "MaxBatch"))
	require.Equal(t, "weft_leases_reads_note_commits", metricName("leases", "Reads.NoteCommits"))
}

// fixed is a part of a node that stands still.
type fixed struct {
	host      rawnode.HostStatus
	engine    storage.Stats
	transport transport.Stats
}

type fixedHost struct{ *fixed }

func (f fixedHost) Status() rawnode.HostStatus { return f.host }

type fixedEngine struct{ *fixed }

func (f fixedEngine) Stats() storage.Stats { return f.engine }

type fixedPlacement struct{}

func (fixedPlacement) Seen() []rawnode.NodeHealth {
	return []rawnode.NodeHealth{{Node: 1, Weight: 50, Health: rawnode.Health{Sync: 3 * time.Millisecond}, Counts: true}, {Node: 2, Age: time.Minute}}
}

type fixedGateway struct{}

func (fixedGateway) Status() replica.GatewayStatus {
	return replica.GatewayStatus{ID: 101, Group: 7, Home: 2, Counters: replica.GatewayCounters{Proposals: 31}}
}

type fixedCatchUp struct{}

func (fixedCatchUp) Sending() rawnode.CatchUpStats { return rawnode.CatchUpStats{Waiting: 3} }
func (fixedCatchUp) Taking() rawnode.CatchUpStats  { return rawnode.CatchUpStats{UsedBytes: 5} }

type fixedTransport struct{ *fixed }

func (f fixedTransport) Stats() transport.Stats { return f.transport }

// everything is a node that has all that can be shown: it leads, codes, has leases, a
// clock, certificates and a peer.
func everything() *fixed {
	f := &fixed{}
	f.host.Group, f.host.LastIndex, f.host.Lead = 7, 110, 1
	f.host.Role = raft.StateLeader
	f.host.Counters.Proposals = 41
	f.host.Members = &pb.ConfState{Voters: []uint64{1, 2}, Learners: []uint64{3}}
	f.host.Progress = map[uint64]rawnode.MemberProgress{2: {Match: 100, RecentActive: true}, 3: {LogLost: true}}
	f.host.Apply.Busy = 1500 * time.Millisecond
	f.host.Coding = &rawnode.CodingState{}
	f.host.Coding.Counters.Levels[3] = 5
	f.host.Leases = &raft.LeaseStatus{Status: leases.Status{Stable: true, Quarantine: time.Second}}
	f.host.Leases.Roster = &leases.Roster{Spans: []leases.Assignment{
		{Responders: []leases.Responder{{Node: 2}, {Node: 3}}}, {Responders: []leases.Responder{{Node: 2}}},
	}}
	f.host.Clock = &rawnode.ClockStatus{DriftPPM: 500, Within: true}
	f.engine = storage.Stats{Syncs: 9, Full: true}
	link := transport.Traffic{SentBytes: 1234, WriteTime: 250 * time.Millisecond}
	link.Dropped = map[string]uint64{"not reached": 6}
	f.transport = transport.Stats{
		Peers:             map[uint64][wire.NumClasses]transport.Traffic{2: {link}},
		ReceiveBytes:      map[uint64]int{2: 77},
		CertificateExpiry: time.Unix(1_900_000_000, 0),
	}
	f.transport.Refusals = map[string]uint64{"other cluster": 8}
	return f
}

// show is a set with everything in it, and a registry.
func show(f *fixed) (*Set, *prometheus.Registry) {
	s, r := NewSet(), prometheus.NewPedanticRegistry()
	s.AddHost(fixedHost{f})
	s.AddEngine(fixedEngine{f})
	s.AddTransport(fixedTransport{f})
	s.AddPlacement(fixedPlacement{})
	s.gateways = append(s.gateways, fixedGateway{})
	s.AddCatchUp(fixedCatchUp{})
	r.MustRegister(s)
	return s, r
}

// values returns what a registry has: the value of each series, by name and labels.
func values(t *testing.T, r *prometheus.Registry) map[string]float64 {
	t.Helper()
	families, err := r.Gather()
	require.NoError(t, err)
	all := map[string]float64{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			key := f.GetName()
			for _, l := range m.GetLabel() {
				key += "," + l.GetName() + "=" + l.GetValue()
			}
			all[key] = m.GetCounter().GetValue() + m.GetGauge().GetValue() + float64(m.GetHistogram().GetSampleCount())
		}
	}
	return all
}

func TestSetShowsWhatThePartsCount(t *testing.T) {
	s, registry := show(everything())
	s.Log().Synced(time.Millisecond)
	got := values(t, registry)
	for series, want := range map[string]float64{
		"weft_group_leader,group=7":                                       1,
		"weft_group_learners,group=7":                                     1,
		"weft_group_lost_logs,group=7":                                    1,
		"weft_member_lag,group=7,member=2":                                10,
		"weft_member_active,group=7,member=2":                             1,
		"weft_member_active,group=7,member=3":                             0,
		"weft_gateway_home,group=7":                                       2,
		"weft_gateway_proposals_total,group=7":                            31,
		"weft_host_proposals_total,group=7":                               41,
		"weft_stage_busy_seconds_total,group=7,stage=apply":               1.5,
		"weft_coding_levels_total,group=7,level=3":                        5,
		"weft_leases_stable,group=7":                                      1,
		"weft_leases_responders,group=7":                                  2,
		"weft_leases_quarantine_seconds,group=7":                          1,
		"weft_clock_drift_ppm":                                            500,
		"weft_log_syncs_total":                                            9,
		"weft_log_full":                                                   1,
		"weft_node_weight,node=1":                                         50,
		"weft_catchup_waiting,direction=sending":                          3,
		"weft_catchup_used_bytes,direction=taking":                        5,
		"weft_node_health_sync_seconds,node=1":                            0.003,
		"weft_node_age_seconds,node=2":                                    60,
		"weft_log_sync_seconds":                                           1,
		"weft_link_sent_bytes_total,class=control,peer=2":                 1234,
		"weft_link_write_time_seconds_total,class=control,peer=2":         0.25,
		"weft_link_dropped_total,class=control,peer=2,reason=not reached": 6,
		"weft_transport_refusals_total,reason=other cluster":              8,
		"weft_transport_certificate_expiry_timestamp_seconds":             1_900_000_000,
		"weft_peer_receive_bytes,peer=2":                                  77,
	} {
		require.Contains(t, got, series)
		require.InDelta(t, want, got[series], 1e-9, series)
	}
}

// Known names what a set shows, of the right type and with the right labels, and no
// more.
func TestKnownIsWhatASetShows(t *testing.T) {
	s, registry := show(everything())
	tellAll(s)
	families, err := registry.Gather()
	require.NoError(t, err)
	shown := map[string]Info{}
	for _, f := range families {
		info := Info{Name: f.GetName(), Help: f.GetHelp()}
		for _, m := range f.GetMetric()[:1] {
			for _, l := range m.GetLabel() {
				info.Labels = append(info.Labels, l.GetName())
			}
			switch {
			case m.GetHistogram() != nil:
				info.Type = "histogram"
			case m.GetCounter() != nil:
				info.Type = "counter"
			default:
				info.Type = "gauge"
			}
		}
		shown[f.GetName()] = info
	}
	name := regexp.MustCompile(`^weft(_[a-z]+)+$`)
	for _, info := range Known() {
		require.Contains(t, shown, info.Name)
		require.ElementsMatch(t, info.Labels, shown[info.Name].Labels, info.Name)
		require.Equal(t, info.Type, shown[info.Name].Type, info.Name)
		require.Equal(t, info.Help, shown[info.Name].Help)
		require.Regexp(t, name, info.Name)
		require.Regexp(t, `^[A-Z0-9].*\.$`, info.Help, info.Name)
		delete(shown, info.Name)
	}
	require.Empty(t, shown)
}

// tellAll tells each recorder of a set something.
func tellAll(s *Set) {
	s.Log().Synced(time.Millisecond)
	h := s.Host(7)
	h.Proposed(rawnode.CommandTimes{Sent: time.Millisecond, Committed: 20 * time.Millisecond, Applied: 3 * time.Second})
	h.SnapshotSent(rawnode.SnapshotTimes{Took: time.Minute, Err: io.EOF})
	h.SnapshotRestored(rawnode.SnapshotTimes{Took: time.Second})
	for _, p := range []rawnode.ReadPolicy{rawnode.ReadIndex{}, rawnode.AtResponder{}, rawnode.LeaderLease{},
		rawnode.QuorumRead{}, rawnode.BoundedStaleness{}, rawnode.Local{}} {
		h.Read(p, rawnode.ServedByLease, time.Millisecond)
		h.Read(p, rawnode.ServedByLease, 30*time.Second)
	}
}

func TestRecordersFillHistograms(t *testing.T) {
	s, registry := show(everything())
	tellAll(s)
	families, err := registry.Gather()
	require.NoError(t, err)
	got := map[string]string{} // the least bucket that has each observation, and how many there are
	for _, f := range families {
		for _, m := range f.GetMetric() {
			if h := m.GetHistogram(); h != nil {
				key := f.GetName()
				for _, l := range m.GetLabel() {
					key += "," + l.GetValue()
				}
				require.Len(t, h.GetBucket(), len(buckets))
				for _, b := range h.GetBucket() {
					if b.GetCumulativeCount() > 0 {
						got[key] = fmt.Sprintf("%d of %d in %v", b.GetCumulativeCount(), h.GetSampleCount(), b.GetUpperBound())
						break
					}
				}
				if got[key] == "" {
					got[key] = fmt.Sprintf("%d beyond", h.GetSampleCount())
				}
			}
		}
	}
	require.Equal(t, map[string]string{
		"weft_log_sync_seconds":                       "1 of 1 in 0.001",
		"weft_propose_sent_seconds,7":                 "1 of 1 in 0.001",
		"weft_propose_committed_seconds,7":            "1 of 1 in 0.025",
		"weft_propose_applied_seconds,7":              "1 of 1 in 5",
		"weft_snapshot_sent_seconds,7,failed":         "1 beyond",
		"weft_snapshot_restored_seconds,7,ok":         "1 of 1 in 1",
		"weft_read_seconds,7,read_index,lease":        "1 of 2 in 0.001",
		"weft_read_seconds,7,at_responder,lease":      "1 of 2 in 0.001",
		"weft_read_seconds,7,leader_lease,lease":      "1 of 2 in 0.001",
		"weft_read_seconds,7,quorum_read,lease":       "1 of 2 in 0.001",
		"weft_read_seconds,7,bounded_staleness,lease": "1 of 2 in 0.001",
		"weft_read_seconds,7,local,lease":             "1 of 2 in 0.001",
	}, got)
}

// A node may have thousands of groups; their histograms do not grow without bound.
func TestHistogramsOfManyGroupsShareALabel(t *testing.T) {
	s := NewSet()
	for group := range uint64(3 * MaxGroups) {
		s.Host(group).Proposed(rawnode.CommandTimes{})
		s.Host(group).Proposed(rawnode.CommandTimes{}) // as after a restart of the group
	}
	r := prometheus.NewPedanticRegistry()
	r.MustRegister(s)
	got := values(t, r)
	require.Len(t, got, 3*(MaxGroups+1))
	require.EqualValues(t, 2, got["weft_propose_applied_seconds,group=63"])
	require.EqualValues(t, 2*2*MaxGroups, got["weft_propose_applied_seconds,group=other"])
}

// A word to a recorder is part of each call: it allocates nothing.
func TestRecordersAllocateNothing(t *testing.T) {
	s := NewSet()
	h, log, policy := s.Host(1), s.Log(), rawnode.ReadPolicy(rawnode.AtResponder{})
	require.Zero(t, testing.AllocsPerRun(100, func() {
		h.Proposed(rawnode.CommandTimes{Applied: time.Millisecond})
		log.Synced(time.Millisecond)
		h.Read(policy, rawnode.ServedByRoster, time.Millisecond)
	}))
}

func TestRemovedPartsAreShownNoMore(t *testing.T) {
	f := everything()
	s, r := NewSet(), prometheus.NewPedanticRegistry()
	r.MustRegister(s)
	removeHost, removeEngine, removeTransport := s.AddHost(fixedHost{f}), s.AddEngine(fixedEngine{f}), s.AddTransport(fixedTransport{f})
	require.Greater(t, len(values(t, r)), 100)
	removeHost()
	removeEngine()
	removeTransport()
	removeTransport() // does nothing
	for series := range values(t, r) {
		require.Regexp(t, `_seconds`, series, "only histograms are left")
	}
	s.AddHost(fixedHost{f})
	require.Contains(t, values(t, r), "weft_group_leader,group=7")
}

// Two hosts of a group are a mistake that a scrape reports, not a sum.
func TestTwoHostsOfAGroupMakeAScrapeFail(t *testing.T) {
	f := everything()
	s, r := show(f)
	s.AddHost(fixedHost{f})
	_, err := r.Gather()
	require.ErrorContains(t, err, "was collected before with the same name and label values")
}

func TestNumbersRefusesWhatDoesNotFit(t *testing.T) {
	type gauges struct {
		Open   int
		Age    time.Duration
		Hidden uint64
	}
	read := func() any { return gauges{Open: 3, Age: time.Minute, Hidden: 5} }
	r := prometheus.NewPedanticRegistry()
	r.MustRegister(Numbers("files", map[string]string{"Open": "now: Open files.", "Age": "Age of them.", "Hidden": ""}, read))
	require.Equal(t, map[string]float64{"weft_files_open": 3, "weft_files_age_seconds_total": 60}, values(t, r))
	require.PanicsWithValue(t, "metrics: field Hidden of metrics.gauges has no text; want one, or an empty one to leave the number out",
		func() { Numbers("files", map[string]string{"Open": "x", "Age": "y"}, read) })
	require.PanicsWithValue(t, `metrics: the text of "Shut" is of no number of metrics.gauges; take it out`,
		func() { Numbers("files", map[string]string{"Open": "x", "Age": "y", "Hidden": "", "Shut": "z"}, read) })
}

// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"github.com/weftraft/weft/internal/replica"
	"github.com/weftraft/weft/rawnode"
	"github.com/weftraft/weft/rawnode/transport"
	"github.com/weftraft/weft/storage"
)

// sources are the structs whose numbers are metrics. All metrics are known before
// there is a host, so that documents, dashboards and rules can be held to them.
var sources = []struct {
	part
	of any
}{
	{part{"group", []string{"group"}}, groupGauges{}},
	{part{"host", []string{"group"}}, rawnode.HostStatus{}},
	{part{"gateway", []string{"group"}}, replica.GatewayStatus{}},
	{part{"stage", []string{"group", "stage"}}, rawnode.StageStats{}},
	{part{"coding", []string{"group"}}, codingGauges{}},
	{part{"coding", []string{"group"}}, rawnode.CodingState{}.Counters},
	{part{"leases", []string{"group"}}, leaseGauges{}},
	{part{"clock", nil}, rawnode.ClockStatus{}},
	{part{"log", nil}, storage.Stats{}},
	{part{"transport", nil}, transport.Stats{}},
	{part{"node", []string{"node"}}, rawnode.NodeHealth{}},
	{part{"link", []string{"peer", "class"}}, transport.Traffic{}},
	{part{"catchup", []string{"direction"}}, rawnode.CatchUpStats{}},
}

// extras are the metrics that are no number of a struct.
var extras = []struct {
	part
	path, unit string
}{
	{part{"member", []string{"group", "member"}}, "Lag", ""},
	{part{"member", []string{"group", "member"}}, "Active", ""},
	{part{"coding", []string{"group", "level"}}, "Levels", ""},
	{part{"transport", []string{"reason"}}, "Refusals", ""},
	{part{"transport", nil}, "CertificateExpiry", "_timestamp_seconds"},
	{part{"peer", []string{"peer"}}, "ReceiveBytes", ""},
	{part{"link", []string{"peer", "class", "reason"}}, "Dropped", ""},
}

// all has the metrics of a Set, but for its histograms.
var all = makeTable()

func makeTable() table {
	t := table{}
	for _, s := range sources {
		t.addNumbers(s.part, s.of, func(path string) string { return help[s.name+"."+path] })
	}
	for _, x := range extras {
		t.add(x.part, x.path, x.unit, help[x.name+"."+x.path])
	}
	return t
}

// Info describes a metric.
type Info struct {
	Name   string
	Type   string // counter, gauge or histogram
	Labels []string
	Help   string
}

// Known returns all metrics of a [Set], by name.
func Known() []Info { return all.infos(histogramInfos()) }

// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

// Package metrics shows Prometheus what the parts of a Weft node do: hosts, the log
// engine, and the transport. A [Set] is one prometheus.Collector for a node. A node of package
// weft takes it as an option, and a node of parts of one's own is put together:
//
//	set := metrics.NewSet()
//	node, err := weft.Open(weft.Options{Metrics: set, ...})
//
//	engine, err := storage.Open(dir, storage.Options{Identity: id, Recorder: set.Log()})
//	set.AddEngine(engine)
//	host, err := rawnode.New(rawnode.Config{Recorder: set.Host(group), ...})
//	set.AddHost(host)
//	registry.MustRegister(set)
//
// Numbers that a part counts by itself are read at each scrape. Durations are told
// by recorders at once, and become histograms. docs/metrics.md lists all metrics.
//
// The package is a module of its own, so that a host without Prometheus does not
// require its client.
package metrics

import (
	"slices"
	"strconv"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weftraft/weft"
	"github.com/weftraft/weft/internal/replica"
	"github.com/weftraft/weft/rawnode"
	"github.com/weftraft/weft/rawnode/transport"
	"github.com/weftraft/weft/storage"
)

// Host is a group at this node. [*rawnode.Host] is one.
type Host interface{ Status() rawnode.HostStatus }

// Engine is a log engine. [*storage.Engine] is one.
type Engine interface{ Stats() storage.Stats }

// Transport connects this node with its peers. [*transport.TCP] is one.
type Transport interface{ Stats() transport.Stats }

// Placement knows the health of nodes. [*rawnode.Placement] is one.
type Placement interface{ Seen() []rawnode.NodeHealth }

// CatchUp bounds the snapshots of a node. [*rawnode.CatchUp] is one.
type CatchUp interface {
	Sending() rawnode.CatchUpStats
	Taking() rawnode.CatchUpStats
}

// Set collects the metrics of a node's parts. It implements prometheus.Collector. Its
// methods may be called from several goroutines.
type Set struct {
	times histograms

	mu         sync.Mutex
	labelled   map[uint64]string // groups with histograms of their own
	hosts      []Host
	engines    []Engine
	transports []Transport
	placements []Placement
	catchUps   []CatchUp
	nodes      []*weft.Node
	gateways   []gateway // beside those of nodes
}

// gateway is a group at this process, without a replica. [*rawnode.Gateway] is one.
type gateway interface{ Status() replica.GatewayStatus }

// NewSet returns a set without parts.
func NewSet() *Set { return &Set{times: newHistograms(), labelled: map[uint64]string{}} }

// AddHost has the set show a host, until remove is called. Of each group there can be
// one at a time: two make a scrape fail.
func (s *Set) AddHost(h Host) (remove func()) { return add(s, &s.hosts, h) }

// AddEngine has the set show a node's log engine, until remove is called. There can be
// one at a time.
func (s *Set) AddEngine(e Engine) (remove func()) { return add(s, &s.engines, e) }

// AddTransport has the set show a node's transport, until remove is called. There can
// be one at a time.
func (s *Set) AddTransport(t Transport) (remove func()) { return add(s, &s.transports, t) }

// AddPlacement has the set show the health of this node and of others, as this node knows it, until remove is called.
// There can be one at a time.
func (s *Set) AddPlacement(p Placement) (remove func()) { return add(s, &s.placements, p) }

// AddCatchUp has the set show the snapshots that a node sends and takes, and those that wait, until remove is called.
// There can be one at a time.
func (s *Set) AddCatchUp(c CatchUp) (remove func()) { return add(s, &s.catchUps, c) }

// NodeOpened has the set show a node of package weft, with its groups, log and transport, until closed
// is called: it makes a *Set a [weft.Metrics]. There can be one node at a time.
func (s *Set) NodeOpened(n *weft.Node) (closed func()) { return add(s, &s.nodes, n) }

func add[T comparable](s *Set, list *[]T, x T) (remove func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	*list = append(*list, x)
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		*list = slices.DeleteFunc(slices.Clone(*list), func(y T) bool { return x == y })
	}
}

// Describe implements prometheus.Collector.
func (s *Set) Describe(out chan<- *prometheus.Desc) {
	all.describe(out)
	s.times.describe(out)
}

// Collect implements prometheus.Collector. It asks each host for its status, which
// waits until the host has a moment, and each stopped host for its last one.
func (s *Set) Collect(out chan<- prometheus.Metric) {
	s.mu.Lock()
	hosts, engines, transports, placements := slices.Clone(s.hosts), slices.Clone(s.engines), slices.Clone(s.transports), slices.Clone(s.placements)
	gateways := slices.Clone(s.gateways)
	catchUps := slices.Clone(s.catchUps)
	for _, n := range s.nodes {
		for _, g := range n.Groups() {
			if gate := g.Gateway(); gate != nil {
				gateways = append(gateways, gate)
			} else {
				hosts = append(hosts, g.Host())
			}
		}
		if n.Engine() == nil { // a gateway
			transports = append(transports, n.Transport())
			continue
		}
		engines, transports, placements = append(engines, n.Engine()), append(transports, n.Transport()), append(placements, n.Placement())
		catchUps = append(catchUps, n.CatchUp())
	}
	s.mu.Unlock()
	clock := false
	for _, h := range hosts {
		status := h.Status()
		collectHost(out, &status)
		if status.Clock != nil && !clock {
			clock = true // the same for all groups
			all.collect(out, "clock", *status.Clock)
		}
	}
	for _, g := range gateways {
		status := g.Status()
		all.collect(out, "gateway", status, strconv.FormatUint(status.Group, 10))
	}
	for _, e := range engines {
		all.collect(out, "log", e.Stats())
	}
	for _, t := range transports {
		collectTransport(out, t.Stats())
	}
	for _, p := range placements {
		for _, seen := range p.Seen() {
			all.collect(out, "node", seen, strconv.FormatUint(seen.Node, 10))
		}
	}
	for _, c := range catchUps {
		all.collect(out, "catchup", c.Sending(), "sending")
		all.collect(out, "catchup", c.Taking(), "taking")
	}
	s.times.collect(out)
}

// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"strconv"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weftraft/weft/internal/wire"
	"github.com/weftraft/weft/rawnode/transport"
)

// collectTransport sends the metrics of a node's connections.
func collectTransport(out chan<- prometheus.Metric, s transport.Stats) {
	all.collect(out, "transport", s)
	for reason, count := range s.Refusals {
		all.one(out, "transport.Refusals", float64(count), reason)
	}
	if !s.CertificateExpiry.IsZero() {
		all.one(out, "transport.CertificateExpiry", float64(s.CertificateExpiry.Unix()))
	}
	for id, classes := range s.Peers {
		peer := strconv.FormatUint(id, 10)
		all.one(out, "peer.ReceiveBytes", float64(s.ReceiveBytes[id]), peer)
		for c, traffic := range classes {
			class := wire.Class(c).String()
			all.collect(out, "link", traffic, peer, class)
			for reason, count := range traffic.Dropped {
				all.one(out, "link.Dropped", float64(count), peer, class, reason)
			}
		}
	}
}

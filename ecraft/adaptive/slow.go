// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package adaptive

import "math"

// A slow connection is slow for every message. A connection that stalls looks slow on average, but
// between its stalls answers come sooner than over a slow connection. A connection taken for slow
// gets no units, and the entries would depend on the few other connections, which stall as well.

const (
	// refute is the share of answers, since a connection seemed slow, that must have come too soon
	// for a slow connection.
	refute = 0.05
	// trial is the time for which an answer counts, in seconds: longer than stalls.
	trial = 2.0
)

// verdict counts recent answers since a connection seemed slow.
type verdict struct {
	heard, soon float64
	at          float64
}

// seemsSlow reports whether bytes on the connection seem to cost more than the bytes in front of
// their messages at the interface, where a byte costs egress.
func (l *link) seemsSlow(egress float64) bool { return l.sumXY > poolLimit*egress*l.sumXA }

// judge takes an answer on a connection that seems slow: x bytes took t beyond the base.
func (l *link) judge(t, x, now float64) {
	v := &l.verdict
	kept := math.Exp((v.at - now) / trial)
	v.at = now
	v.heard = v.heard*kept + 1
	v.soon *= kept
	if t < x*l.own/2 {
		v.soon++
	}
}

// refuted reports whether a connection that seems slow was too often too fast for a slow
// connection. A few answers refute nothing, because the first answers are compared with the initial
// cost.
func (l *link) refuted() bool { return l.verdict.soon > refute*(l.verdict.heard+minSamples) }

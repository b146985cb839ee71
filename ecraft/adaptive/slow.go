// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package adaptive

import "math"

// A slow connection is slow for every message. A connection that stalls looks slow on
// the whole, but between its stalls answers come sooner than over a slow connection. A
// connection that is taken for slow gets nothing, which would leave entries to the few
// others, which stall as well.

const (
	// refute is the share of the answers since a connection seemed slow that must have
	// come too soon for a slow connection.
	refute = 0.05
	// trial is for how long an answer counts, in seconds: longer than stalls.
	trial = 2.0
)

// verdict counts recent answers since a connection seemed slow.
type verdict struct {
	heard, soon float64
	at          float64
}

// seemsSlow reports whether bytes on the connection seem to cost more than the bytes in
// front of them at the interface, of a cost egress.
func (l *link) seemsSlow(egress float64) bool { return l.sumXY > poolLimit*egress*l.sumXA }

// judge takes an answer that took t for x bytes, beyond the base, on a connection
// that seems slow.
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

// refuted reports whether a connection that seems slow was too fast for a slow one too
// often. A few answers refute nothing: the first ones are compared with a guess.
func (l *link) refuted() bool { return l.verdict.soon > refute*(l.verdict.heard+minSamples) }

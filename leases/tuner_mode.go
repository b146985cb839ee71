// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package leases

import (
	"fmt"
	"slices"
)

// TunerMode is an operator's word about the tuner. It travels with the roster, so that
// every node counts, or does not, and later leaders go by it.
type TunerMode uint8

const (
	// TunerConfigured leaves it to each node's Config.Tuner: the tuner is on where that is
	// set.
	TunerConfigured TunerMode = iota
	// TunerOff stops the tuner: nothing is counted, and the spans that it chose are not
	// wanted any more. The roster is what operators named.
	TunerOff
	// TunerWatch has nodes count and the leader decide, and names nobody: Status.Tuner
	// says what would be named.
	TunerWatch
	// TunerOn has the tuner choose responders beside those that operators named.
	TunerOn
)

var tunerModes = [...]string{"configured", "off", "watch", "on"}

// String returns the mode as ParseTunerMode takes it.
func (m TunerMode) String() string {
	if int(m) < len(tunerModes) {
		return tunerModes[m]
	}
	return fmt.Sprintf("TunerMode(%d)", uint8(m))
}

// ParseTunerMode returns the mode of a text: configured, off, watch or on. The error of
// another text wraps ErrMalformed.
func ParseTunerMode(text string) (TunerMode, error) {
	at := slices.Index(tunerModes[:], text)
	if at < 0 {
		return 0, malformed("tuner %q, want configured, off, watch or on", text)
	}
	return TunerMode(at), nil
}

// TunerStatus is what a node knows of the tuner.
type TunerStatus struct {
	// Mode is TunerOff, TunerWatch or TunerOn: the word of the newest roster that the
	// node knows, or else of its configuration.
	Mode TunerMode
	// Windows is how often the tuner of a leader has decided since its leadership began.
	Windows int
	// Choices are those of a leader's last window, most used spans first, at most
	// MaxSpans. Callers must not change them.
	Choices []TunerChoice
}

// TunerChoice is what a tuner found about a span, half of whose counts are forgotten in
// each window.
type TunerChoice struct {
	Span Span
	// Reads and Writes are of all nodes, and By are the reads by the node that was asked,
	// ascending.
	Reads, Writes uint64
	By            []NodeReads
	// Nodes should be responders, ascending; none: the span gets none, and Why says why.
	Nodes []NodeID
	Why   TunerReason
}

// NodeReads is how many reads of a span a node's clients made.
type NodeReads struct {
	Node  NodeID
	Reads uint64
}

// TunerReason is why a tuner chose as it did.
type TunerReason uint8

const (
	// TunerNames: reads are more than 95 in 100, and each of the nodes has more than 20 in
	// 100 of these. Responders that a span has stay until reads fall to 90, and a node's
	// share to 10, in 100.
	TunerNames TunerReason = 1 + iota
	// TunerFew: there are fewer than TunerConfig.Least reads and writes, and all stays as
	// it is.
	TunerFew
	// TunerWrites: reads are not more than 95 in 100, or 90 where the span has responders.
	TunerWrites
	// TunerSpread: no node has more than 20 in 100 of the reads.
	TunerSpread
	// TunerTaken: an operator, or a span that is used more, has keys of this span.
	TunerTaken
	// TunerFull: the roster has MaxSpans spans that are used more.
	TunerFull
)

var tunerReasons = [...]string{"", "read there", "few reads and writes yet", "too many writes", "read everywhere alike",
	"another span has keys of it", "the roster is full"}

// String says the reason in a few words.
func (w TunerReason) String() string {
	if int(w) < len(tunerReasons) {
		return tunerReasons[w]
	}
	return fmt.Sprintf("TunerReason(%d)", uint8(w))
}

// tunerMode returns whether the tuner is off, watches or is on.
func (n *Node) tunerMode() TunerMode {
	switch {
	case n.wish.tuner != TunerConfigured:
		return n.wish.tuner
	case n.cfg.Tuner != nil:
		return TunerOn
	}
	return TunerOff
}

// Tunes reports whether reads and writes are counted.
func (n *Node) Tunes() bool { return n.tuner != nil }

// syncTuner starts or ends the counting at this node, as the wish says. Of a tuner that is
// not on nothing stays wanted at a leader.
func (n *Node) syncTuner() {
	switch counts := n.tunerMode() != TunerOff; {
	case !counts:
		n.tuner = nil
	case n.tuner == nil:
		cfg := TunerConfig{}
		if n.cfg.Tuner != nil {
			cfg = *n.cfg.Tuner
		}
		n.tuner = newTuner(cfg)
		if n.leading != nil {
			n.leading.tuned = n.latest
		}
	}
	if n.leading != nil && n.tunerMode() != TunerOn && slices.ContainsFunc(n.wish.wanted, func(w Want) bool { return w.Tuned }) {
		n.wish.wanted = slices.DeleteFunc(slices.Clone(n.wish.wanted), func(w Want) bool { return w.Tuned })
	}
}

// tunerStatus returns what this node knows of the tuner.
func (n *Node) tunerStatus() TunerStatus {
	s := TunerStatus{Mode: n.tunerMode()}
	if n.tuner != nil && n.leading != nil {
		s.Windows, s.Choices = n.tuner.windows, n.tuner.choices
	}
	return s
}

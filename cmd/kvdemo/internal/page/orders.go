// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Names of the policies by which a leader codes.
const (
	PolicyAdaptive = "adaptive" // what is fastest on the links as they are
	PolicyFewest   = "fewest"   // the fewest bytes
	PolicyCopies   = "copies"   // each follower gets all units
	PolicyWhole    = "off"      // entries are not coded
)

// Policies returns the policies that a command can choose.
func Policies() []string {
	return []string{PolicyAdaptive, PolicyFewest, PolicyCopies, PolicyWhole}
}

// Order is a line that a demonstration writes to the standard input of a node: the one way
// to shape links and choose a policy, which nobody but the parent of the process has.
type Order struct {
	Peer   uint64 // of Shape
	Shape  Shape
	Policy string // instead of a shape, if not empty
}

// Bounds of a [Shape] in an order. 0 bytes a second is no bound.
const (
	minRate    = 1 << 10
	maxRate    = 1 << 30
	maxDelayMs = 10_000
)

// String describes a shape.
func (s Shape) String() string {
	switch {
	case s == Shape{}:
		return "no bound, no delay"
	case s.BytesPerSecond == 0:
		return fmt.Sprintf("%d ms of delay", s.DelayMs)
	}
	return fmt.Sprintf("%d kB/s, %d ms of delay", s.BytesPerSecond/1000, s.DelayMs)
}

// Check returns an error that names a field out of its bounds.
func (s Shape) Check() error {
	var errs []error
	if s.BytesPerSecond != 0 && (s.BytesPerSecond < minRate || s.BytesPerSecond > maxRate) {
		errs = append(errs, fmt.Errorf("shape.bytesPerSecond: %d, want 0, or %d to %d", s.BytesPerSecond, minRate, maxRate))
	}
	if s.DelayMs < 0 || s.DelayMs > maxDelayMs {
		errs = append(errs, fmt.Errorf("shape.delayMs: %d, want 0 to %d", s.DelayMs, maxDelayMs))
	}
	return errors.Join(errs...)
}

// CheckPolicy returns an error unless there is a policy of that name.
func CheckPolicy(name string) error {
	if !slices.Contains(Policies(), name) {
		return fmt.Errorf("policy: %q, want one of %s", Text(name), strings.Join(Policies(), ", "))
	}
	return nil
}

// String returns the line of an order.
func (o Order) String() string {
	if o.Policy != "" {
		return "policy " + o.Policy
	}
	return fmt.Sprintf("shape %d %d %d", o.Peer, o.Shape.BytesPerSecond, o.Shape.DelayMs)
}

// ParseOrder reads the line of an order.
func ParseOrder(line string) (o Order, err error) {
	if policy, ok := strings.CutPrefix(line, "policy "); ok {
		return Order{Policy: policy}, CheckPolicy(policy)
	}
	var rest string
	n, err := fmt.Sscanf(line+" end", "shape %d %d %d %s", &o.Peer, &o.Shape.BytesPerSecond, &o.Shape.DelayMs, &rest)
	if err != nil || n != 4 || rest != "end" {
		return Order{}, fmt.Errorf("order %q: want policy NAME, or shape PEER BYTES-PER-SECOND DELAY-MS", Text(line))
	}
	return o, o.Shape.Check()
}

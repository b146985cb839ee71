// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

// Package shaping has the shape of links between nodes, for experiments with the transport.
package shaping

import (
	"errors"
	"fmt"
	"time"
)

// Shape slows down a node's bytes to a peer, for experiments: the classes share a link
// of so many bytes per second, control messages first, and each byte arrives after a
// delay. The order of a connection is kept. The zero Shape changes nothing. Hellos are
// not slowed down.
type Shape struct {
	BytesPerSecond int           // 0 means no bound
	Delay          time.Duration // one way
	Jitter         time.Duration // up to so much is added to Delay, drawn from the ids of the two nodes
	// BufferBytes bounds the bytes on their way in each class: further messages wait in
	// the queue of their class. 0 means the link's bandwidth-delay product plus 64 KiB,
	// but at most 64 MiB; without a rate, 4 MiB.
	BufferBytes int
}

// The bounds of a rate, in bytes per second.
const (
	MinRate = 1 << 10
	MaxRate = 1 << 40
)

const (
	maxDelay    = time.Minute
	maxBuffer   = 64 << 20
	shapeBuffer = 64 << 10
)

// Active reports whether the shape changes anything.
func (s Shape) Active() bool { return s.BytesPerSecond > 0 || s.Delay > 0 || s.Jitter > 0 }

// Validate returns an error that names every mistake, or nil.
func (s Shape) Validate() error {
	var errs []error
	for _, d := range []struct {
		field string
		value time.Duration
	}{{"Delay", s.Delay}, {"Jitter", s.Jitter}} {
		if d.value < 0 || d.value > maxDelay {
			errs = append(errs, fmt.Errorf("field Shape.%s is %v, want 0 to %v", d.field, d.value, maxDelay))
		}
	}
	if s.BytesPerSecond != 0 && (s.BytesPerSecond < MinRate || s.BytesPerSecond > MaxRate) {
		errs = append(errs, fmt.Errorf("field Shape.BytesPerSecond is %d, want 0, or %d to %d", s.BytesPerSecond, MinRate, MaxRate))
	}
	if s.BufferBytes < 0 || s.BufferBytes > maxBuffer {
		errs = append(errs, fmt.Errorf("field Shape.BufferBytes is %d, want 0 to %d", s.BufferBytes, maxBuffer))
	}
	return errors.Join(errs...)
}

// Buffer returns the bound on the bytes on their way in each class.
func (s Shape) Buffer() int {
	switch {
	case s.BufferBytes > 0:
		return s.BufferBytes
	case s.BytesPerSecond == 0:
		return 4 << 20
	}
	held := float64(s.BytesPerSecond) * (s.Delay + s.Jitter).Seconds()
	return int(min(held+shapeBuffer, maxBuffer))
}

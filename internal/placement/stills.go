// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package placement

import "time"

// stills are the last times for which the process stood still: waits for a turn of worth and more. None of them overlaps
// another, so that a pause in which many groups wait is one of them.
type stills struct {
	began [stillsKept]time.Duration
	count int           // of began, at most stillsKept
	next  int           // index of the oldest
	ended time.Duration // the last one
}

// add notes a wait that ends now.
func (s *stills) add(now, waited time.Duration) {
	if now-waited < s.ended {
		return
	}
	s.began[s.next], s.ended = now-waited, now
	s.next = (s.next + 1) % stillsKept
	s.count = min(s.count+1, stillsKept)
}

// often reports whether all of them have begun within a time.
func (s *stills) often(now, within time.Duration) bool {
	return s.count == stillsKept && now-s.began[s.next] <= within
}

// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package leases

import (
	"fmt"
	"slices"
)

// MaxKey is how many bytes a bound of a span has at most.
const MaxKey = 512

// A Span is the keys from Start up to, and without, End. An empty End stands
// for the end of all keys, so the zero value is every key.
type Span struct {
	Start, End string
}

// KeySpan is the span of one key.
func KeySpan(key string) Span { return Span{Start: key, End: key + "\x00"} }

func (s Span) String() string { return fmt.Sprintf("[%q,%q)", s.Start, s.End) }

// valid reports whether the span has a key, and bounds that may be encoded.
func (s Span) valid() bool {
	return (s.End == "" || s.Start < s.End) && len(s.Start) <= MaxKey && len(s.End) <= MaxKey
}

// endsBefore reports whether all keys of s are below a bound.
func (s Span) endsBefore(bound string) bool { return s.End != "" && s.End <= bound }

// overlaps reports whether some key is in both.
func (s Span) overlaps(o Span) bool { return !s.endsBefore(o.Start) && !o.endsBefore(s.Start) }

// overlapsAny reports whether some key of s is in one of spans.
func (s Span) overlapsAny(spans []Span) bool { return slices.ContainsFunc(spans, s.overlaps) }

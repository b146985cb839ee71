// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/weftraft/weft/cmd/kvdemo/internal/node"
	"github.com/weftraft/weft/rawnode/metrics"
)

// place is a table's place in the document: between two comments, of which the first
// names the subsystems in it.
var place = regexp.MustCompile(`(?s)<!-- metrics: ([a-z ]+) -->\n.*?<!-- end -->`)

// tables replaces the tables of the document. Each metric is in one of them.
func tables(old []byte) ([]byte, error) {
	left := node.KnownMetrics()
	var errs []error
	text := place.ReplaceAllFunc(old, func(found []byte) []byte {
		subsystems := string(place.FindSubmatch(found)[1])
		var b strings.Builder
		fmt.Fprintf(&b, "<!-- metrics: %s -->\n| metric and labels | meaning |\n|---|---|\n", subsystems)
		for _, s := range strings.Fields(subsystems) {
			rows := 0
			left = slices.DeleteFunc(left, func(m metrics.Info) bool {
				here := subsystem(m) == s
				if here {
					rows++
					fmt.Fprintf(&b, "| `%s` | %s |\n", withLabels(m), m.Help)
				}
				return here
			})
			if rows == 0 {
				errs = append(errs, fmt.Errorf("there are no metrics of %q left for a table", s))
			}
		}
		b.WriteString("<!-- end -->")
		return []byte(b.String())
	})
	for _, m := range left {
		errs = append(errs, fmt.Errorf("%s is in no table; want its subsystem, %s, in a comment <!-- metrics: ... -->", m.Name, subsystem(m)))
	}
	return text, errors.Join(errs...)
}

// withLabels is a metric's name with its labels, as in an expression. Its type follows from the
// name, or is that of all metrics in the section.
func withLabels(m metrics.Info) string {
	if len(m.Labels) == 0 {
		return m.Name
	}
	return m.Name + "{" + strings.Join(m.Labels, ",") + "}"
}

// subsystem is the second word of a metric's name.
func subsystem(m metrics.Info) string {
	return strings.SplitN(m.Name, "_", 3)[1]
}

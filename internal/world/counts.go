// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package world

import (
	"fmt"
	"reflect"
	"strings"
)

// The functions below are for structs all of whose fields are exported and of
// type uint64: one counter each.

// AddCounts adds the counts of another run.
func AddCounts[T any](to *T, from T) {
	sum, v := reflect.ValueOf(to).Elem(), reflect.ValueOf(from)
	for i := range sum.NumField() {
		sum.Field(i).SetUint(sum.Field(i).Uint() + v.Field(i).Uint())
	}
}

// Zeros returns the names of the counters that stand at zero.
func Zeros[T any](counts T) (names []string) {
	v := reflect.ValueOf(counts)
	for i := range v.NumField() {
		if v.Field(i).Uint() == 0 {
			names = append(names, v.Type().Field(i).Name)
		}
	}
	return names
}

// Table lists the counters, four to a line.
func Table[T any](counts T) string {
	var b strings.Builder
	v := reflect.ValueOf(counts)
	for i := range v.NumField() {
		fmt.Fprintf(&b, "%20s %-10d", v.Type().Field(i).Name, v.Field(i).Uint())
		if i%4 == 3 || i == v.NumField()-1 {
			b.WriteByte('\n')
		}
	}
	return b.String()
}

// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package world

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
)

// The functions below are for structs all of whose fields are exported, and of
// type uint64, one counter each, or arrays or embedded structs of counters.

// counters visits the counters of a struct.
func counters(v reflect.Value, each func(name string, c reflect.Value)) {
	for i := range v.NumField() {
		visit(v.Type().Field(i).Name, v.Field(i), each)
	}
}

func visit(name string, v reflect.Value, each func(name string, c reflect.Value)) {
	switch v.Kind() {
	case reflect.Struct:
		counters(v, each)
	case reflect.Array:
		for i := range v.Len() {
			visit(fmt.Sprint(name, i), v.Index(i), each)
		}
	default:
		each(name, v)
	}
}

// AddCounts adds the counts of another run.
func AddCounts[T any](to *T, from T) {
	var more []uint64
	counters(reflect.ValueOf(from), func(_ string, c reflect.Value) { more = append(more, c.Uint()) })
	counters(reflect.ValueOf(to).Elem(), func(_ string, c reflect.Value) {
		c.SetUint(c.Uint() + more[0])
		more = more[1:]
	})
}

// Zeros returns the names of the counters that stand at zero, but for some.
func Zeros[T any](counts T, but ...string) (names []string) {
	counters(reflect.ValueOf(counts), func(name string, c reflect.Value) {
		if c.Uint() == 0 && !slices.Contains(but, name) {
			names = append(names, name)
		}
	})
	return names
}

// Table lists the counters, four to a line.
func Table[T any](counts T) string {
	var b strings.Builder
	n := 0
	counters(reflect.ValueOf(counts), func(name string, c reflect.Value) {
		fmt.Fprintf(&b, "%20s %-10d", name, c.Uint())
		if n++; n%4 == 0 {
			b.WriteByte('\n')
		}
	})
	if n%4 != 0 {
		b.WriteByte('\n')
	}
	return b.String()
}

// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package compare

import (
	"hash/crc32"
	"math"
	"reflect"
)

// Window sums up the commands since a check, and their results. The zero value is a window that has
// missed its beginning.
type Window struct {
	from uint64 // index of the check where it begins; 0: it has missed something
	sum  uint64
}

// Begin begins a window at a check.
func (w *Window) Begin(check uint64) { *w = Window{from: check} }

// Lose says that commands were applied that the window has not seen.
func (w *Window) Lose() { *w = Window{} }

// Add adds a command and its result.
func (w *Window) Add(command []byte, result any) {
	w.bytes(command)
	w.value(result)
}

// The multiplier is odd and has bits everywhere: each word changes about half of the sum.
const multiplier = 0x9e3779b97f4a7c15

func (w *Window) word(x uint64) {
	w.sum = (w.sum ^ x) * multiplier
	w.sum ^= w.sum >> 29
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func (w *Window) bytes(b []byte) {
	w.word(uint64(len(b))<<32 | uint64(crc32.Checksum(b, castagnoli)))
}

// What is added for values that are no number or text.
const (
	wordNil = 0x6e696c_00000000 + iota
	wordTrue
	wordOther
)

// value adds a result. The types that most results have come first, and cost least.
func (w *Window) value(result any) {
	switch r := result.(type) {
	case nil:
		w.word(wordNil)
	case int:
		w.word(uint64(r))
	case []byte:
		w.bytes(r)
	case string:
		w.bytes([]byte(r))
	case error:
		if v := reflect.ValueOf(r); v.Kind() != reflect.Pointer || !v.IsNil() {
			w.bytes([]byte(r.Error()))
		}
	default:
		w.reflected(reflect.ValueOf(result), 0)
	}
}

// maxDepth bounds how deep a result is looked into.
const maxDepth = 8

// reflected adds a value of any other type: numbers, texts, and arrays, slices and structs of them.
// Of what a pointer, map, channel or function refers to nothing is known to be the same at all
// replicas, nor to be at rest.
func (w *Window) reflected(v reflect.Value, depth int) {
	switch {
	case depth > maxDepth:
	case v.CanInt():
		w.word(uint64(v.Int()))
	case v.CanUint():
		w.word(v.Uint())
	case v.CanFloat():
		w.word(math.Float64bits(v.Float()))
	case v.Kind() == reflect.Bool && v.Bool():
		w.word(wordTrue)
	case v.Kind() == reflect.String:
		w.bytes([]byte(v.String()))
	case v.Kind() == reflect.Slice || v.Kind() == reflect.Array:
		w.word(uint64(v.Len()))
		for i := range v.Len() {
			w.reflected(v.Index(i), depth+1)
		}
	case v.Kind() == reflect.Struct:
		for i := range v.NumField() {
			w.reflected(v.Field(i), depth+1)
		}
	default:
		w.word(wordOther)
	}
}

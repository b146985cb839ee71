// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package exhaust

import (
	"hash/maphash"
	"math"
	"reflect"
	"slices"
	"strings"
	"unsafe"

	"google.golang.org/protobuf/runtime/protoimpl"

	"github.com/weftraft/weft/internal/silent"
	"github.com/weftraft/weft/raft"
)

// printer hashes a value with all that the value points at, unexported fields included.
// Two values with equal prints behave alike, hashes of 64 bits permitting: the print leaves
// out functions and the types in left, which do not change while a core runs, and the
// capacity of slices. Values that are equal but share memory in another way have
// different prints; that costs time and hides nothing.
type printer struct {
	h      uint64
	seen   map[unsafe.Pointer]uint64
	fields map[reflect.Type][]int // the fields of types that count
}

// left are types that are not printed: no input changes their state, or the world has it.
var left = map[reflect.Type]bool{
	reflect.TypeFor[*clock]():                 true,
	reflect.TypeFor[silent.Logger]():          true,
	reflect.TypeFor[*core]():                  true,
	reflect.TypeFor[raft.Config]():            true,
	reflect.TypeFor[*scenario]():              true,
	reflect.TypeFor[protoimpl.MessageState](): true,
}

func newPrinter() printer {
	return printer{seen: map[unsafe.Pointer]uint64{}, fields: map[reflect.Type][]int{}}
}

// derived are fields that other fields determine: sizeCache, which is set when a protobuf is
// measured, and the buffers of a codeword, which are made from the payload, in reused memory.
var derived = map[string]bool{"sizeCache": true, "buffers": true}

// printOf returns the print of a core.
func (p *printer) printOf(c *core) uint64 {
	p.h = 0
	clear(p.seen)
	p.value(reflect.ValueOf(c.rn))
	p.value(reflect.ValueOf(c.host))
	p.word(c.disk.print())
	return p.h
}

func (p *printer) word(x uint64) { p.h = mix(p.h, x) }

func (p *printer) value(v reflect.Value) {
	switch v.Kind() {
	case reflect.Bool:
		if v.Bool() {
			p.word(1)
		} else {
			p.word(2)
		}
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		p.word(uint64(v.Int()))
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		p.word(v.Uint())
	case reflect.Float32, reflect.Float64:
		p.word(math.Float64bits(v.Float()))
	case reflect.String:
		p.word(maphash.String(seed, v.String()))
	case reflect.Pointer:
		p.pointer(v)
	case reflect.Interface:
		p.dynamic(v)
	case reflect.Struct:
		p.structure(v)
	case reflect.Slice, reflect.Array:
		p.list(v)
	case reflect.Map:
		p.table(v)
	case reflect.Func:
	default:
		panic("exhaust: a core has a field of type " + v.Type().String() + ", of which printer knows nothing")
	}
}

func (p *printer) pointer(v reflect.Value) {
	if v.IsNil() || left[v.Type()] {
		p.word(3)
		return
	}
	at := v.UnsafePointer()
	if n, ok := p.seen[at]; ok && v.Elem().Kind() == reflect.Struct {
		p.word(n)
		return
	}
	p.seen[at] = uint64(len(p.seen)) + 5
	p.value(v.Elem())
}

func (p *printer) dynamic(v reflect.Value) {
	if v.IsNil() {
		p.word(4)
		return
	}
	e := v.Elem()
	if left[e.Type()] {
		return
	}
	p.word(maphash.String(seed, e.Type().String()))
	p.value(e)
}

func (p *printer) structure(v reflect.Value) {
	for _, i := range p.fieldsOf(v.Type()) {
		p.value(v.Field(i))
	}
}

// fieldsOf returns the fields of a type that count.
func (p *printer) fieldsOf(t reflect.Type) []int {
	if had, ok := p.fields[t]; ok {
		return had
	}
	var list []int
	pkg := t.PkgPath()
	aside := left[t] || pkg == "sync" || strings.HasPrefix(pkg, "github.com/klauspost/") // locks, pools and tables
	for i := range t.NumField() {
		if f := t.Field(i); !aside && !left[f.Type] && !derived[f.Name] {
			list = append(list, i)
		}
	}
	p.fields[t] = list
	return list
}

func (p *printer) list(v reflect.Value) {
	p.word(uint64(v.Len()))
	if v.Kind() == reflect.Slice && v.Type().Elem().Kind() == reflect.Uint8 {
		p.word(maphash.Bytes(seed, v.Bytes()))
		return
	}
	for i := range v.Len() {
		p.value(v.Index(i))
	}
}

// table hashes a map in the order of the hashes of its keys.
func (p *printer) table(v reflect.Value) {
	p.word(uint64(v.Len()))
	type item struct {
		key  uint64
		elem reflect.Value
	}
	items := make([]item, 0, v.Len())
	for it := v.MapRange(); it.Next(); {
		h := p.h
		p.h = 0
		p.value(it.Key())
		items = append(items, item{p.h, it.Value()})
		p.h = h
	}
	slices.SortFunc(items, func(a, b item) int {
		if a.key < b.key {
			return -1
		}
		return 1
	})
	for _, it := range items {
		p.word(it.key)
		p.value(it.elem)
	}
}

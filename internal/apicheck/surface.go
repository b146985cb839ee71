// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

// Package apicheck holds the tests that keep the project's promises about its
// API: that package raft has all of upstream's, that what it adds is written
// down, that pure packages stay pure, and that every exported name is
// documented.
package apicheck

import (
	"fmt"
	"go/constant"
	"go/types"
	"strings"
)

// surface is what a package exports, by name ("Config", "Config.ID",
// "RawNode.Step"), with all that a user's code can depend on in one line each.
// Two packages offer the same API where their lines are equal.
type surface map[string]string

// surfaceOf lists the exported constants, variables, functions and types of a
// package, the methods of each type (also promoted ones, also those of its
// pointer), and the exported fields of each struct.
func surfaceOf(pkg *types.Package) surface {
	s := surface{}
	p := printer{root: pkg}
	for _, name := range pkg.Scope().Names() {
		obj := pkg.Scope().Lookup(name)
		if !obj.Exported() {
			continue
		}
		switch obj := obj.(type) {
		case *types.Const:
			s[name] = fmt.Sprintf("const %s = %s", p.string(obj.Type()), exact(obj.Val()))
		case *types.Var:
			s[name] = "var " + p.string(obj.Type())
		case *types.Func:
			s[name] = "func" + p.signature(obj.Type().(*types.Signature))
		case *types.TypeName:
			s.addType(p, obj)
		}
	}
	return s
}

func exact(v constant.Value) string { return v.ExactString() }

func (s surface) addType(p printer, obj *types.TypeName) {
	name := obj.Name()
	kind := "type"
	if obj.IsAlias() {
		kind = "alias"
	}
	switch u := obj.Type().Underlying().(type) {
	case *types.Struct:
		// Comparable or not decides whether == compiles.
		s[name] = fmt.Sprintf("%s struct, comparable %t", kind, types.Comparable(obj.Type()))
		n := 0
		for f := range u.Fields() {
			if f.Exported() {
				n++ // the order decides what a literal without keys means
				s[name+"."+f.Name()] = fmt.Sprintf("field %d, %s, embedded %t", n, p.string(f.Type()), f.Embedded())
			}
		}
	case *types.Interface:
		s[name] = kind + " interface, " + p.unexportedMethods(u)
	default:
		s[name] = kind + " " + p.string(u)
	}
	s.addMethods(p, obj.Type(), name)
}

// addMethods lists the methods of T, or of *T unless T is an interface.
func (s surface) addMethods(p printer, t types.Type, name string) {
	onValue := types.NewMethodSet(t)
	all := onValue
	if !types.IsInterface(t) {
		all = types.NewMethodSet(types.NewPointer(t))
	}
	for m := range all.Methods() {
		f := m.Obj().(*types.Func)
		if !f.Exported() {
			continue
		}
		receiver := "pointer"
		if onValue.Lookup(f.Pkg(), f.Name()) != nil {
			receiver = "value"
		}
		s[name+"."+f.Name()] = fmt.Sprintf("method%s on %s", p.signature(m.Type().(*types.Signature)), receiver)
	}
}

// printer writes types so that they can be compared across the two packages:
// the root package is called "raft", and names of parameters, which are no part
// of a type, are left out.
type printer struct{ root *types.Package }

func (p printer) unexportedMethods(i *types.Interface) string {
	n := 0
	for m := range i.Methods() {
		if !m.Exported() {
			n++
		}
	}
	return fmt.Sprintf("%d unexported methods", n)
}

func (p printer) string(t types.Type) string {
	switch t := types.Unalias(t).(type) {
	case *types.Named:
		return p.named(t)
	case *types.Pointer:
		return "*" + p.string(t.Elem())
	case *types.Slice:
		return "[]" + p.string(t.Elem())
	case *types.Array:
		return fmt.Sprintf("[%d]%s", t.Len(), p.string(t.Elem()))
	case *types.Map:
		return fmt.Sprintf("map[%s]%s", p.string(t.Key()), p.string(t.Elem()))
	case *types.Chan:
		return fmt.Sprintf("chan<%d> %s", t.Dir(), p.string(t.Elem()))
	case *types.Signature:
		return "func" + p.signature(t)
	case *types.Interface:
		return p.interfaceType(t)
	default: // basic types, and anonymous structs as they are
		return types.TypeString(t, p.qualify)
	}
}

func (p printer) named(t *types.Named) string {
	name := types.TypeString(t.Origin(), p.qualify)
	if args := t.TypeArgs(); args != nil {
		name, _, _ = strings.Cut(name, "[")
		var list []string
		for a := range args.Types() {
			list = append(list, p.string(a))
		}
		name += "[" + strings.Join(list, ", ") + "]"
	}
	return name
}

func (p printer) interfaceType(t *types.Interface) string {
	var list []string
	for m := range t.Methods() {
		list = append(list, m.Name()+p.signature(m.Type().(*types.Signature)))
	}
	return "interface{" + strings.Join(list, "; ") + "}"
}

func (p printer) signature(s *types.Signature) string {
	params := p.tuple(s.Params())
	if s.Variadic() {
		params += "..."
	}
	return fmt.Sprintf("(%s) (%s)", params, p.tuple(s.Results()))
}

func (p printer) tuple(t *types.Tuple) string {
	var list []string
	for v := range t.Variables() {
		list = append(list, p.string(v.Type()))
	}
	return strings.Join(list, ", ")
}

func (p printer) qualify(pkg *types.Package) string {
	if pkg == p.root {
		return "raft"
	}
	return pkg.Path()
}

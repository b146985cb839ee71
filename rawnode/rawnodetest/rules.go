// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package rawnodetest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime/debug"
	"testing"
	"time"
)

// patience bounds each wait of a suite. A correct implementation takes a small part of this time.
const patience = time.Minute

// A RuleError is a violation of a contract, found by a suite.
type RuleError struct {
	Rule string // the rule's name, as in the list of the suite
	Err  error
}

// Error implements error.
func (e *RuleError) Error() string { return e.Rule + ": " + e.Err.Error() }

// Unwrap returns Err.
func (e *RuleError) Unwrap() error { return e.Err }

// Broken returns the names of the broken rules in an error of a Check function, in the order of the
// suite.
func Broken(err error) (rules []string) {
	var one *RuleError
	if errors.As(err, &one) && one == err { //nolint:errorlint // the error itself, not what it wraps
		return []string{one.Rule}
	}
	if many, ok := err.(interface{ Unwrap() []error }); ok {
		for _, e := range many.Unwrap() {
			rules = append(rules, Broken(e)...)
		}
	}
	return rules
}

// rule is a promise of a contract. S holds the state that check needs; check calls breaks if the promise is not kept.
type rule[S any] struct {
	name  string
	check func(S)
}

// brokenRule is the panic value of a check that finds a rule broken.
type brokenRule struct{ err error }

// breaks ends a check: the rule is broken.
func breaks(format string, args ...any) { panic(brokenRule{fmt.Errorf(format, args...)}) }

// must ends a check if there is an error.
func must(err error) {
	if err != nil {
		panic(brokenRule{err})
	}
}

// calls ends a check if a call returns an error.
func calls(what string, err error) {
	if err != nil {
		breaks("%s: %w", what, err)
	}
}

// when puts words before what a part of a check finds.
func when(part func(), format string, args ...any) {
	defer func() {
		x := recover()
		if b, ok := x.(brokenRule); ok {
			x = brokenRule{fmt.Errorf("%s: %w", fmt.Sprintf(format, args...), b.err)}
		}
		if x != nil {
			panic(x)
		}
	}()
	part()
}

// checkAll checks all rules, each with a new subject, unless the factory of subjects is invalid.
func checkAll[S any](invalid error, rules []rule[S], subject func(rule string) S) error {
	if invalid != nil {
		return invalid
	}
	var errs []error
	for _, r := range rules {
		if err := r.run(subject(r.name)); err != nil {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// testAll is checkAll with a subtest for each rule.
func testAll[S any](t *testing.T, invalid error, rules []rule[S], subject func(rule string) S) {
	t.Helper()
	if invalid != nil {
		t.Fatal(invalid)
	}
	for _, r := range rules {
		t.Run(r.name, func(t *testing.T) {
			if err := r.run(subject(r.name)); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// run runs a rule, and reports a panic, or a check that does not end, as a violation.
func (r rule[S]) run(s S) error {
	done := make(chan error, 1)
	go func() { done <- guarded(func() { r.check(s) }) }()
	var err error
	select {
	case err = <-done:
	case <-time.After(2 * patience):
		err = fmt.Errorf("not done after %v: something waits and nothing ends its wait", 2*patience)
	}
	if err == nil {
		return nil
	}
	return &RuleError{r.name, err}
}

// guarded runs a check, or a part that has a goroutine of its own, and returns what it finds. A panic is a finding, too.
func guarded(f func()) (err error) {
	defer func() {
		switch x := recover().(type) {
		case nil:
		case brokenRule:
			err = x.err
		default:
			err = fmt.Errorf("panic: %v\n%s", x, debug.Stack())
		}
	}()
	f()
	return nil
}

// within ends a check if f does not return within a time.
func within(limit time.Duration, what string, f func()) {
	done := make(chan struct{})
	go func() { defer close(done); f() }()
	select {
	case <-done:
	case <-time.After(limit):
		breaks("%s does not return", what)
	}
}

// draws returns the randomness of a rule, the same in each run, so that a failure repeats.
func draws(rule string) *rand.Rand {
	var seed uint64
	for _, c := range []byte(rule) {
		seed = seed*31 + uint64(c)
	}
	return rand.New(rand.NewPCG(seed, 1))
}

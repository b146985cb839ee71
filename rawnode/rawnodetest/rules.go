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

// rule is a promise of a contract. S holds the state that check needs.
type rule[S any] struct {
	name  string
	check func(S) error
}

// checkAll checks all rules, each with a new subject.
func checkAll[S any](rules []rule[S], subject func(rule string) S) error {
	var errs []error
	for _, r := range rules {
		if err := r.run(subject(r.name)); err != nil {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// testAll is checkAll with a subtest for each rule.
func testAll[S any](t *testing.T, rules []rule[S], subject func(rule string) S) {
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
	go func() { done <- guarded(func() error { return r.check(s) }) }()
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

// guarded makes a panic an error.
func guarded(f func() error) (err error) {
	defer func() {
		if x := recover(); x != nil {
			err = fmt.Errorf("panic: %v\n%s", x, debug.Stack())
		}
	}()
	return f()
}

// draws returns the randomness of a rule, the same in each run, so that a failure repeats.
func draws(rule string) *rand.Rand {
	var seed uint64
	for _, c := range []byte(rule) {
		seed = seed*31 + uint64(c)
	}
	return rand.New(rand.NewPCG(seed, 1))
}

// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

// Package environment is the part of a shim that is not generated: package shim
// copies its files into the shim's root package. A host that knows nothing of
// Weft is told by variables of the environment what its own Config cannot say.
package environment

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/weftraft/weft/ecraft"
	weft "github.com/weftraft/weft/raft"
	"github.com/weftraft/weft/raft/machine"
)

const (
	// codingVariable turns coded replication on: "on", or the size of a payload,
	// in bytes, from which it is coded; "off" leaves it off.
	codingVariable = "WEFT_CODING"
	// densifyVariable, set to anything, lets a node read coded entries, code
	// nothing new, and ask the other members to do the same.
	densifyVariable = "WEFT_DENSIFY"
	// yieldVariable, "on", has a leader whose writes are late go (Config.YieldWhenLate).
	yieldVariable = "WEFT_YIELD_WHEN_LATE"
	// weightsVariable says which members are to lead rather than others (Config.Placement):
	// ID=WEIGHT pairs with commas between them, ids in hexadecimal.
	weightsVariable = "WEFT_LEADER_WEIGHTS"
	// defaultCoding is what holds where codingVariable is not set.
	defaultCoding = "off"
)

// withEnvironment returns c, or a copy of c with what the environment asks for.
// What the host has set itself stays as it is. A variable with a bad value ends
// the program: a node that went on without it would ignore its operator.
func withEnvironment(c *weft.Config) *weft.Config {
	if c == nil {
		return nil
	}
	with := *c
	coded, err := addCoding(&with, os.LookupEnv)
	leased, leasesErr := addLeases(&with, os.LookupEnv)
	yields, yieldErr := addYield(&with, os.LookupEnv)
	weighed, weightsErr := addWeights(&with, os.LookupEnv)
	if err := errors.Join(err, leasesErr, yieldErr, weightsErr); err != nil {
		fmt.Fprintln(os.Stderr, err) // a logger may discard what it gets
		if c.Logger != nil {
			c.Logger.Fatalf("%v", err)
		}
		panic(err)
	}
	if coded == "" && leased == "" && yields == "" && weighed == "" {
		return c
	}
	if coded != "" && with.Clock == nil { // leases bring a clock of their own
		with.Clock = machine.Clock{}
	}
	for _, says := range []string{coded, leased, yields, weighed} {
		if says != "" && c.Logger != nil {
			c.Logger.Infof("%x %s", c.ID, says)
		}
	}
	return &with
}

// addYield sets YieldWhenLate if the environment asks for it, and returns a line for the
// host's log: empty if it does not, or the host has asked itself.
func addYield(c *weft.Config, lookup func(string) (string, bool)) (says string, err error) {
	switch value, set := lookup(yieldVariable); {
	case set && value != "on" && value != "off":
		return "", fmt.Errorf("%s is %q; set it to on (a leader whose disk is late goes) or to off", yieldVariable, value)
	case value != "on" || c.YieldWhenLate:
		return "", nil
	}
	c.YieldWhenLate = true
	return "hands leadership over when its writes are late (" + yieldVariable + ")", nil
}

// addWeights sets Placement if the environment asks for it, and returns a line for the host's log: empty
// if it does not, or the host has asked itself.
func addWeights(c *weft.Config, lookup func(string) (string, bool)) (says string, err error) {
	value, set := lookup(weightsVariable)
	if !set || c.Placement != nil {
		return "", nil
	}
	weights := map[uint64]int{}
	for _, pair := range strings.Split(value, ",") {
		member, text, _ := strings.Cut(pair, "=")
		id, err := strconv.ParseUint(member, 16, 64)
		weight, weightErr := strconv.Atoi(text)
		if _, again := weights[id]; again || err != nil || weightErr != nil {
			return "", fmt.Errorf("%s is %q, of which %q is no member's weight; set it to ID=WEIGHT pairs with commas between them, each id once and in hexadecimal, as in the host's log",
				weightsVariable, value, pair)
		}
		weights[id] = weight
	}
	c.Placement = &weft.Placement{Weights: weights}
	if err := c.Validate(); err != nil {
		return "", fmt.Errorf("%s is %q, which does not go with the settings of this host:\n%w\nChange the host's settings or the variable, or unset %[1]s", weightsVariable, value, err)
	}
	return fmt.Sprintf("leads and hands leadership over by the weights %s (%s)", value, weightsVariable), nil
}

// addCoding puts the coding of the environment into c, and returns a line for the host's
// log: empty if coding is off, or set by the host.
func addCoding(c *weft.Config, lookup func(string) (string, bool)) (says string, err error) {
	if c.Coding != nil {
		return "", nil
	}
	coding, err := codingFrom(lookup)
	if err != nil || coding == nil {
		return "", err
	}
	c.Coding = coding
	return effect(coding), nil
}

// codingFrom returns the coding that variables ask for, nil for none.
func codingFrom(lookup func(string) (string, bool)) (*weft.Coding, error) {
	value, set := lookup(codingVariable)
	if !set {
		value = defaultCoding
	}
	densify, _ := lookup(densifyVariable)
	threshold := 0
	switch value {
	case "on":
	case "off":
		if densify == "" {
			return nil, nil
		}
	default:
		var err error
		if threshold, err = strconv.Atoi(value); err != nil || threshold < 1 || threshold > ecraft.MaxPayload {
			return nil, fmt.Errorf("%s is %q; set it to on (payloads of %d bytes and more are coded), to another number of bytes from 1 to %d, or to off",
				codingVariable, value, weft.DefaultCodingThreshold, ecraft.MaxPayload)
		}
	}
	return &weft.Coding{Threshold: threshold, Plain: densify != "", Busy: machine.Busy}, nil
}

// effect says for the host's log what a node does with payloads.
func effect(c *weft.Coding) string {
	if c.Plain {
		return "codes nothing new and reads coded entries (" + densifyVariable + ")"
	}
	threshold := c.Threshold
	if threshold == 0 {
		threshold = weft.DefaultCodingThreshold
	}
	return fmt.Sprintf("codes payloads of %d bytes and more (%s)", threshold, codingVariable)
}

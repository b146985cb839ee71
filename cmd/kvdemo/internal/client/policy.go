// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/weftraft/weft/cmd/kvdemo/kvpb"
)

// Policies says what ParsePolicy reads, for people.
const Policies = "default, local, leader, quorum, stale or stale:ENTRIES/AGE"

// policies are the names of read policies.
var policies = map[string]kvpb.ReadPolicy_Kind{
	"default": kvpb.ReadPolicy_DEFAULT, "local": kvpb.ReadPolicy_RESPONDER, "leader": kvpb.ReadPolicy_LEADER,
	"quorum": kvpb.ReadPolicy_QUORUM, "stale": kvpb.ReadPolicy_STALE,
}

// ParsePolicy reads a policy: one of the names, or stale with bounds, as in
// stale:100/5s. A bound of 0 allows nothing, and one of the bounds may be left out:
// stale:100/ has as many entries as it says, stale:/5s that age.
func ParsePolicy(s string) (*kvpb.ReadPolicy, error) {
	wrong := fmt.Errorf("policy %q, want %s, such as stale:100/5s", s, Policies)
	name, bounds, bounded := strings.Cut(s, ":")
	kind, ok := policies[name]
	if !ok || bounded && kind != kvpb.ReadPolicy_STALE {
		return nil, wrong
	}
	p := &kvpb.ReadPolicy{Kind: kind}
	if !bounded {
		return p, nil
	}
	entries, age, ok := strings.Cut(bounds, "/")
	var err1, err2 error
	var d time.Duration
	if entries != "" {
		p.Entries, err1 = strconv.ParseUint(entries, 10, 64)
	}
	if age != "" {
		d, err2 = time.ParseDuration(age)
	}
	if !ok || d < 0 || errors.Join(err1, err2) != nil {
		return nil, wrong
	}
	if p.AgeUs = uint64(d.Microseconds()); p.AgeUs+p.Entries == 0 {
		return nil, fmt.Errorf("policy %q allows nothing to be missing, want more than 0 entries or 1us, or the policy default", s)
	}
	return p, nil
}

// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/weftraft/weft/cmd/kvdemo/internal/client"
	"github.com/weftraft/weft/cmd/kvdemo/kvpb"
)

// policyHelp explains the policies of reads.
const policyHelp = `Reads by these policies see every write that was acknowledged before:

  default  the node that is reached answers, if it is a responder (kvdemo roster) or the
           leader; else it asks the leader
  local    the same
  leader   the leader vouches for the read, also at a responder
  quorum   a majority vouches: this needs no leader, no leases and no clocks

stale reads what the node has applied, which may be old; with stale:ENTRIES/AGE at most so
many of the last writes are missing, and none that was acknowledged longer ago than AGE.`

// policyFlag is the policy of reads.
type policyFlag struct {
	policy *kvpb.ReadPolicy // nil: not given
	text   string
}

func (p *policyFlag) add(cmd *cobra.Command) {
	cmd.Flags().Var(p, "policy", "how fresh a read is, and who vouches for it: "+client.Policies+" (default default)")
	cmd.Flags().BoolFunc("local", "the same as --policy stale", func(s string) error {
		if yes, err := strconv.ParseBool(s); err != nil || !yes {
			return err
		}
		return p.Set("stale")
	})
}

// Set implements pflag.Value.
func (p *policyFlag) Set(s string) (err error) {
	if p.policy != nil {
		return fmt.Errorf("policy %q, and %q before, want one", s, p.text)
	}
	p.text = s
	p.policy, err = client.ParsePolicy(s)
	return err
}

// String implements pflag.Value.
func (p *policyFlag) String() string { return p.text }

// Type implements pflag.Value.
func (p *policyFlag) Type() string { return "policy" }

// servedBy says where a read was served, and by what it was.
func servedBy(s *kvpb.Served) string {
	if s == nil {
		return "the node does not say what served the read"
	}
	text := fmt.Sprintf("served at node %d, by %s", s.Node, map[string]string{
		"roster": "its roster leases", "lease": "its lease as the leader", "leader": "asking the leader", "quorum": "asking a majority", "stale": "its own state",
	}[s.By])
	switch {
	case s.By != "stale":
		return text
	case s.AgeUs < 0:
		return text + ", of unknown age"
	}
	return fmt.Sprintf("%s, which lacks %d entries and is at most %v old", text, s.Lag, time.Duration(s.AgeUs)*time.Microsecond)
}

// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/weftraft/weft/cmd/kvdemo/internal/kv"
	"github.com/weftraft/weft/cmd/kvdemo/kvpb"
	"github.com/weftraft/weft/internal/files"
	"github.com/weftraft/weft/leases"
	"github.com/weftraft/weft/raft"
)

// leaseTime is the longest time for which a node promises something. It is the same at
// all nodes and in all runs, so that a node knows after a restart for how long it is bound.
const leaseTime = time.Second

// leases is how the node takes part in roster leases, or nil.
func (c Config) leases() *raft.Leases {
	if !c.Leases {
		return nil
	}
	l := &raft.Leases{Lease: leaseTime, Notes: c.LeaseNotes, Spans: writtenSpans}
	if c.LeaseTuner {
		l.Tuner = &leases.TunerConfig{}
	}
	return l
}

// validateLeases returns what the other flags have against leases.
func (c Config) validateLeases() (errs []error) {
	if !c.Leases {
		for flag, set := range map[string]bool{"lease-notes": c.LeaseNotes, "lease-tuner": c.LeaseTuner} {
			if set {
				errs = append(errs, fmt.Errorf("--%s: it is a part of roster leases, want --leases as well", flag))
			}
		}
		return errs
	}
	if c.Core == CoreUpstream {
		errs = append(errs, fmt.Errorf("--leases: want --core %s, as %s has no roster leases", CoreWeft, CoreUpstream))
	}
	const lost = 20 * time.Millisecond // more than clocks may differ by at the end of a lease
	lasts := min(leaseTime, time.Duration(c.ElectionTicks-1)*c.Tick) - lost
	if beat := time.Duration(c.HeartbeatTicks) * c.Tick; 3*beat > lasts {
		errs = append(errs, fmt.Errorf("--leases: a leader's heartbeats are %v apart (--tick, --heartbeat-ticks), want at most %v, or --leases=false: leases last %v at most, and less than an election timeout",
			beat, (max(lasts, 0)/3).Truncate(time.Millisecond), leaseTime))
	}
	return errs
}

// writtenSpans returns the keys that a command may give another value; nil: every key.
func writtenSpans(command []byte) []leases.Span {
	keys, every := kv.Written(command)
	if every {
		return nil
	}
	spans := make([]leases.Span, 0, len(keys))
	for _, key := range keys {
		if len(key) >= leases.MaxKey {
			return nil
		}
		spans = append(spans, leases.KeySpan(key))
	}
	return spans
}

// leasesFile exists at a node that has run with leases: leases that it granted may still be in force.
const leasesFile = "LEASES"

// noteLeases makes a file if the node runs with leases. A node that is started without leases, and ran with them before,
// waits until the leases that it granted have ended, or ctx has: then the file stays, and the next start waits.
func (n *node) noteLeases(ctx context.Context) error {
	path := filepath.Join(n.cfg.Data, leasesFile)
	_, err := os.Stat(path)
	switch had := err == nil; {
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("--data: %w", err)
	case had && !n.cfg.Leases:
		n.cfg.Log.Info("the node ran with roster leases: it waits until what it promised has ended", "wait", leaseTime)
		select {
		case <-time.After(leaseTime + leaseTime/10): // by a clock that may be fast
			return os.Remove(path)
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	case !had && n.cfg.Leases:
		if err := os.WriteFile(path, nil, 0o644); err != nil {
			return fmt.Errorf("--data: %w", err)
		}
		return files.SyncDir(n.cfg.Data)
	}
	return nil
}

// leaseStatus describes the leases of a group at this node.
func leaseStatus(s *raft.LeaseStatus) *kvpb.StatusResponse_Leases {
	if s == nil {
		return nil
	}
	r := &kvpb.StatusResponse_Leases{
		Stable: s.Stable, Retired: s.Retired, QuarantineUs: uint64(s.Quarantine.Microseconds()), Waiting: uint64(s.Waiting),
		Waited: s.Reads.Waited, Held: s.Reads.Held, Redirected: s.Reads.Redirected, Removed: s.Counts.Removed,
		AsResponder: s.Reads.Local, AsLeader: s.Reads.Leader, Tuner: tunerStatus(s.Tuner),
	}
	if s.Roster == nil {
		return r
	}
	r.Term, r.Roster = uint64(s.Roster.ID.Term), uint64(s.Roster.ID.Seq)
	for _, a := range s.Roster.Spans {
		named := &kvpb.Assignment{Span: toSpan(a.Span)}
		for _, x := range a.Responders {
			named.Nodes = append(named.Nodes, uint64(x.Node))
		}
		r.Named = append(r.Named, named)
	}
	r.Wanted = assignments(s.Roster.Wanted)
	return r
}

// tunerStatus describes the tuner of a group at this node.
func tunerStatus(s leases.TunerStatus) *kvpb.StatusResponse_Tuner {
	t := &kvpb.StatusResponse_Tuner{Mode: kvpb.TunerMode(s.Mode), Windows: uint64(s.Windows)}
	for _, c := range s.Choices {
		choice := &kvpb.StatusResponse_Choice{Span: toSpan(c.Span), Reads: c.Reads, Writes: c.Writes, Why: c.Why.String()}
		for _, r := range c.By {
			choice.By = append(choice.By, &kvpb.StatusResponse_ReadsAt{Node: uint64(r.Node), Reads: r.Reads})
		}
		for _, id := range c.Nodes {
			choice.Nodes = append(choice.Nodes, uint64(id))
		}
		t.Choices = append(t.Choices, choice)
	}
	return t
}

func assignments(wanted []leases.Want) (list []*kvpb.Assignment) {
	for _, w := range wanted {
		a := &kvpb.Assignment{Span: toSpan(w.Span), Tuned: w.Tuned}
		for _, id := range w.Nodes {
			a.Nodes = append(a.Nodes, uint64(id))
		}
		list = append(list, a)
	}
	return list
}

func toSpan(s leases.Span) *kvpb.Span { return &kvpb.Span{Start: []byte(s.Start), End: []byte(s.End)} }

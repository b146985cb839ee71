// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package live

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/weftraft/weft/internal/lab"
)

// electionTimeout is what members are started with.
const electionTimeout = time.Second

// hangs is how many leaders' disks hang in a run. A follower campaigns after one to two election
// timeouts, by chance, and a vote may be split: so the middle one of several gaps is judged.
const hangs = 3

var errHeld = errors.New("writes at other members waited for a leader whose disk hangs")

// Hangs has the disk of one leader after the other hang, without an error, while clients write. The
// other members must elect another leader, and take writes within two election timeouts. The old leader
// is a member like others once its disk answers again.
func Hangs(ctx context.Context, o Options) (Report, error) {
	return play(ctx, o, func(r *run, ctx context.Context) error {
		for range hangs {
			if err := errors.Join(r.serves(ctx, 100), r.hangLeader(ctx)); err != nil {
				return err
			}
		}
		slices.Sort(r.report.Hangs)
		if gap := r.report.Hangs[hangs/2]; gap > 2*electionTimeout {
			return fmt.Errorf("%w: for %v, of %v", errHeld, gap, r.report.Hangs)
		}
		return r.serves(ctx, 100)
	})
}

// hangLeader has the disk of the leader hang until another member leads and has taken writes.
func (r *run) hangLeader(ctx context.Context) error {
	old, err := r.leader(ctx)
	if err != nil {
		return err
	}
	by, err := r.other(old)
	if err != nil {
		return err
	}
	if err := os.WriteFile(gate(old.Node), nil, 0o600); err != nil {
		return err
	}
	gap, err := r.probe(ctx, by, lostAfter)
	if err := errors.Join(err, os.Remove(gate(old.Node))); err != nil {
		return err
	}
	next, err := r.leader(ctx)
	if err != nil {
		return err
	}
	if next == old {
		return fmt.Errorf("%w: %s still leads", errHeld, old.name)
	}
	r.say("the disk of %s, the leader, hung; a writer at %s waited for %v, and %s leads", old.name, by.name, gap.Round(time.Millisecond), next.name)
	r.report.Hangs = append(r.report.Hangs, gap.Round(time.Millisecond))
	return r.caughtUp(ctx, old)
}

// gate is the path of the file that exists while a member's disk hangs.
func gate(n *lab.Node) string { return n.Data + ".stuck" }

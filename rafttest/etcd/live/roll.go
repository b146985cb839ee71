// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package live

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/weftraft/weft/internal/shim"
)

// Roll moves a cluster from the first binary to the second, which codes, and back, member by member
// under load. Members are killed, not stopped in good order. The first binary ignores the
// environment variables for coding.
func Roll(ctx context.Context, o Options) (Report, error) {
	if len(o.Binaries) != 2 {
		return Report{}, fmt.Errorf("rolling from one binary to another: got %d", len(o.Binaries))
	}
	plain, coding := o.Binaries[0], o.Binaries[1]
	o.Binaries = o.Binaries[:1]
	return play(ctx, o, func(r *run, ctx context.Context) error { return r.roll(ctx, plain, coding) })
}

func (r *run) roll(ctx context.Context, plain, coding string) error {
	if err := r.serves(ctx, 200); err != nil {
		return err
	}
	if err := r.restartAll(ctx, coding, r.sawNoneCoded); err != nil {
		return err
	}
	r.say("all members can code")
	if err := r.serves(ctx, 200); err != nil {
		return err
	}
	r.Env = append(r.Env, shim.DensifyVariable+"=1")
	if err := r.restartAll(ctx, coding, func(*member) error { return nil }); err != nil {
		return err
	}
	r.say("nothing new is coded; %d coded entries were in logs", r.report.Coded)
	if r.report.Coded == 0 {
		return errNothingCoded
	}
	// The logs are dense after a snapshot later than the last coded entry.
	if err := r.serves(ctx, 2*snapshotCount); err != nil {
		return err
	}
	if err := r.restartAll(ctx, plain, func(m *member) error { return r.untilDense(ctx, m) }); err != nil {
		return err
	}
	r.say("all members are back where they began")
	return r.serves(ctx, 200)
}

// restartAll kills each member, the leader first, checks its disk, and starts the member with
// another binary.
func (r *run) restartAll(ctx context.Context, binary string, look func(*member) error) error {
	leader, err := r.leader(ctx)
	if err != nil {
		return err
	}
	order := slices.Clone(r.members)
	slices.SortStableFunc(order, func(a, b *member) int {
		switch leader {
		case a:
			return -1
		case b:
			return 1
		}
		return 0
	})
	for _, m := range order {
		m.kill()
		if err := look(m); err != nil {
			return err
		}
		r.Binaries = []string{binary}
		if err := r.back(ctx, m); err != nil {
			return err
		}
		if err := r.serves(ctx, 50); err != nil {
			return err
		}
	}
	return nil
}

// attempts bounds the checks whether a member's log is dense.
const attempts = 20

// untilDense runs a stopped member with its present binary, again and again, until its log has no
// coded entry.
func (r *run) untilDense(ctx context.Context, m *member) error {
	for range attempts {
		l, err := m.logged()
		if err != nil {
			return err
		}
		if l.Envelopes == 0 {
			return nil
		}
		r.say("%s has %d envelopes in its log", m.name, l.Envelopes)
		if err := r.back(ctx, m); err != nil {
			return err
		}
		if err := r.serves(ctx, snapshotCount/2); err != nil {
			return err
		}
		m.kill()
	}
	return fmt.Errorf("%s still has envelopes in its log after %d rounds of %d writes", m.name, attempts, snapshotCount/2)
}

var (
	errNothingCoded = errors.New("no coded entry in any log: the run did not test what it should")
	errTooEarly     = errors.New("members coded before all of them could")
)

// countCoded counts the coded entries in the logs of stopped members.
func (r *run) countCoded(members ...*member) error {
	for _, m := range members {
		l, err := m.logged()
		if err != nil {
			return err
		}
		r.report.Coded += l.Coded
	}
	return nil
}

// sawNoneCoded checks that the log of a stopped member has no entry that upstream's library cannot
// read.
func (r *run) sawNoneCoded(m *member) error {
	l, err := m.logged()
	if err == nil && l.Envelopes > 0 {
		err = fmt.Errorf("%w: %d envelopes in the log of %s", errTooEarly, l.Envelopes, m.name)
	}
	return err
}

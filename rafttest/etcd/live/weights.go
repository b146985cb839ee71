// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package live

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/weftraft/weft/internal/shim"
)

// Weights restarts the members of a running cluster with weights, one by one under load. The member
// with the largest weight must lead, the next one when the first is killed, although the third runs, and the first again
// when it is back.
func Weights(ctx context.Context, o Options) (Report, error) {
	return play(ctx, o, func(r *run, ctx context.Context) error { return r.weigh(ctx) })
}

func (r *run) weigh(ctx context.Context) error {
	leader, err := r.leader(ctx)
	if err != nil {
		return err
	}
	last := leader // so that the leader must change
	next, err := r.other(last)
	if err != nil {
		return err
	}
	var first *member
	for _, m := range r.members {
		if m != last && m != next {
			first = m
		}
	}
	var pairs []string
	for m, weight := range map[*member]int{first: 300, next: 200, last: 0} {
		known, err := r.find(ctx, leader, m)
		if err != nil {
			return err
		}
		pairs = append(pairs, fmt.Sprintf("%x=%d", known.ID, weight))
	}
	r.Env = append(r.Env, shim.LeaderWeightsVariable+"="+strings.Join(pairs, ","))
	if err := r.restartAll(ctx, r.Binaries[0], func(*member) error { return nil }); err != nil {
		return err
	}
	if err := r.leads(ctx, first); err != nil {
		return err
	}
	first.kill()
	if err := errors.Join(r.leads(ctx, next), r.serves(ctx, 100), r.back(ctx, first)); err != nil {
		return err
	}
	return errors.Join(r.leads(ctx, first), r.serves(ctx, 100))
}

// leads waits until all running members follow m. A leader waits for twice as long after each change
// of leader, up to some minutes, before it hands over to a member that has come back.
func (r *run) leads(ctx context.Context, m *member) error {
	err := r.WaitFor(ctx, 4*time.Minute, m.name+" to lead", func(ctx context.Context) error {
		leader, err := r.leader(ctx)
		if err == nil && leader != m {
			err = fmt.Errorf("%s leads", leader.name)
		}
		return err
	})
	if err == nil {
		r.say("%s leads, as its weight asks", m.name)
	}
	return err
}

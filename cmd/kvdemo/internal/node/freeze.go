// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/weftraft/weft/cmd/kvdemo/internal/kv"
	"github.com/weftraft/weft/rawnode"
)

const (
	// freezeLasts is how long a freeze counts. If the node that froze a group is gone,
	// whoever has a command refused thaws the group after that.
	freezeLasts = 5 * time.Second
	// freezePause is between attempts of a command that a freeze refused.
	freezePause = 5 * time.Millisecond
)

// freeze freezes all groups, calls do, and thaws them. Nothing that clients read
// changes meanwhile, in any group: what do looks at is the state of one moment. If a
// freeze was ended by another before, there is an error.
func (n *node) freeze(ctx context.Context, do func() error) error {
	mark := fmt.Sprintf("%d %s", time.Now().Add(freezeLasts).UnixMilli(), rand.Text())
	all, frozen := errgroup.WithContext(ctx)
	for _, g := range n.groups {
		all.Go(func() error { return g.freeze(frozen, mark) })
	}
	err := unseen("freeze the groups", all.Wait())
	if err == nil {
		err = do()
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), freezeLasts)
	defer cancel()
	var thaws errgroup.Group
	for _, g := range n.groups {
		thaws.Go(func() error {
			switch lasted, err := thaw(ctx, g, mark); {
			case err != nil:
				return unseen("thaw a group", err)
			case !lasted:
				return fmt.Errorf("%w, and it ended before all groups were looked at: try again, and check the clocks of the nodes", kv.ErrFrozen)
			}
			return nil
		})
	}
	thawed := thaws.Wait()
	if err == nil {
		err = thawed
	}
	return err
}

// freeze freezes a group. If somebody else has, it waits.
func (g *group) freeze(ctx context.Context, mark string) error {
	for {
		_, r, err := g.propose(ctx, kv.Command{Op: kv.OpSystem, Key: kv.FreezeKey, Value: []byte(mark)})
		if err != nil || r.Swapped {
			return err
		}
		if err := thawed(ctx, g, string(r.Value)); err != nil {
			return err
		}
	}
}

// thaw thaws a group that has this mark, and reports whether it did. A node that refuses for now, such as one whose disk
// is late, is asked again: clients wait for it.
func thaw(ctx context.Context, g proposer, mark string) (bool, error) {
	for {
		_, r, err := g.propose(ctx, kv.Command{Op: kv.OpSystem, Key: kv.FreezeKey, Want: []byte(mark)})
		if !errors.Is(err, rawnode.ErrRefused) {
			return r.Swapped, err
		}
		select {
		case <-ctx.Done():
			return false, err
		case <-time.After(freezePause):
		}
	}
}

// thawed waits a moment for a group that is frozen to thaw, and thaws it when its freeze
// has lasted too long.
func thawed(ctx context.Context, g proposer, mark string) error {
	until := int64(0)
	if _, err := fmt.Sscan(mark, &until); err != nil || time.Now().UnixMilli() > until {
		_, err := thaw(ctx, g, mark)
		return err
	}
	select {
	case <-ctx.Done():
		return fmt.Errorf("%w; the command was not applied: try again", kv.ErrFrozen)
	case <-time.After(freezePause):
		return nil
	}
}

// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package resp

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/tidwall/redcon"

	"github.com/weftraft/weft/cmd/kvdemo/internal/kv"
)

// plan is a command on keys: the actions of the command, and a function that makes the
// reply from their results.
type plan struct {
	actions []kv.Action
	writes  bool // one of the actions does
	// splits allows the actions to be done group by group, where the keys are of
	// several.
	splits bool
	// skips is how many members in front of a range are passed over.
	skips int64
	reply func(w redcon.Conn, r []kv.ActionResult)
}

// size is about what the plan takes of a command.
func (p *plan) size() (n int) {
	for i := range p.actions {
		n += len(p.actions[i].Key) + len(p.actions[i].Value) + 32
	}
	return n
}

// values is how many values the actions return.
func (p *plan) values() (n int) {
	for i := range p.actions {
		a := &p.actions[i]
		switch a.Kind {
		case kv.ActGet, kv.ActHash:
			n++
		case kv.ActSortedRange: // as many bytes as there is room for
			n += maxBatchValues + 1
		case kv.ActPut, kv.ActDelete:
			if a.Flags&kv.ReturnOld != 0 {
				n++
			}
		default:
		}
	}
	return n
}

// groups returns the groups of the keys, in the order in which they occur.
func (p *plan) groups(count int) (groups []uint64) {
	seen := map[uint64]bool{}
	for i := range p.actions {
		if g := kv.GroupOf(p.actions[i].Key, count); !seen[g] {
			seen[g] = true
			groups = append(groups, g)
		}
	}
	return groups
}

// Bounds of commands of a pipeline that share a transaction.
const (
	maxBatchItems = 1024
	maxBatchBytes = 256 << 10
	// maxBatchValues of the largest size fit into the results of one transaction, beside members with their scores, which take
	// little more than in the commands.
	maxBatchValues = kv.MaxTxnReplyBytes/kv.MaxInlineBytes - 1
)

// batch returns the plan, and the plans of commands behind it in the pipeline that can be done
// together: all only read, or all are about one group.
func (c *client) batch(first *plan) []*plan {
	batch := []*plan{first}
	count := c.server.cfg.Backend.Groups()
	groups := first.groups(count)
	items, size, values, writes := len(first.actions), first.size(), first.values(), first.writes
	for len(c.pipeline) > 0 {
		p := planOf(c.pipeline[0], c.server.now())
		if p == nil {
			break
		}
		items, size, values = items+len(p.actions), size+p.size(), values+p.values()
		if items > maxBatchItems || size > maxBatchBytes {
			break
		}
		if writes = writes || p.writes; writes && values > maxBatchValues {
			break // a value might find no room, and be another one later
		}
		if writes {
			g := p.groups(count)
			if len(groups) != 1 || len(g) != 1 || g[0] != groups[0] {
				break
			}
		}
		c.take()
		batch = append(batch, p)
	}
	return batch
}

// planOf returns the plan of a command in a pipeline, nil if it is none on keys, or wrong.
func planOf(cmd redcon.Command, now time.Time) *plan {
	command, ok := commands[upper(cmd.Args[0])]
	if !ok || command.plan == nil || !command.takes(len(cmd.Args)-1) {
		return nil
	}
	p, err := command.plan(cmd.Args[1:], now)
	if err != nil {
		return nil
	}
	return p
}

// run does plans and writes their replies.
func (s *Server) run(conn redcon.Conn, batch []*plan) {
	ctx, cancel := s.context()
	defer cancel()
	all := &plan{splits: batch[0].splits && len(batch) == 1}
	for _, p := range batch {
		all.actions = append(all.actions, p.actions...)
		all.writes = all.writes || p.writes
	}
	results, err := s.do(ctx, all)
	if err != nil {
		for range batch {
			conn.WriteError(explain(err))
		}
		return
	}
	for _, p := range batch {
		n := len(p.actions)
		own := results[:n]
		results = results[n:]
		if !all.writes && len(batch) > 1 && full(own) {
			if own, err = s.do(ctx, p); err != nil { // again, alone
				conn.WriteError(explain(err))
				continue
			}
		}
		p.reply(conn, own)
		if err := sendIfLong(conn); err != nil {
			return // as reading will say
		}
	}
}

// full reports whether a value found no room.
func full(results []kv.ActionResult) bool {
	return slices.ContainsFunc(results, func(r kv.ActionResult) bool { return r.Code == kv.TxnReplyFull })
}

// sendIfLong sends the replies so far, if they take much memory.
func sendIfLong(conn redcon.Conn) error {
	if w := redcon.BaseWriter(conn); w != nil && len(w.Buffer()) > flushBytes {
		return w.Flush()
	}
	return nil
}

// do does the actions of a plan and returns their results.
func (s *Server) do(ctx context.Context, p *plan) ([]kv.ActionResult, error) {
	if !p.writes {
		return s.read(ctx, p.actions)
	}
	groups := p.groups(s.cfg.Backend.Groups())
	if len(groups) > 1 && !p.splits {
		return nil, severalGroups(len(groups))
	}
	return s.byGroup(groups, p.actions, func(group uint64, some []kv.Action) ([]kv.ActionResult, error) {
		r, err := s.transact(ctx, group, &kv.Txn{Then: some})
		switch {
		case err == nil:
			return r.Actions, nil
		case group != groups[0]: // some groups have changed
			return nil, partial{err}
		}
		return nil, err
	})
}

// byGroup does actions group by group, and returns the results in the order of the actions.
func (s *Server) byGroup(groups []uint64, actions []kv.Action, do func(group uint64, some []kv.Action) ([]kv.ActionResult, error)) ([]kv.ActionResult, error) {
	if len(groups) == 1 {
		return do(groups[0], actions)
	}
	results := make([]kv.ActionResult, len(actions))
	for _, g := range groups {
		var some []kv.Action
		var at []int
		for i, a := range actions {
			if kv.GroupOf(a.Key, s.cfg.Backend.Groups()) == g {
				some, at = append(some, a), append(at, i)
			}
		}
		found, err := do(g, some)
		if err != nil {
			return nil, err
		}
		for i, result := range found {
			results[at[i]] = result
		}
	}
	return results, nil
}

// severalGroups says that keys are not of one group.
func severalGroups(groups int) error {
	return fmt.Errorf("%w keys: they are in %d groups, and what is done at once must be in one; run the nodes with --groups 1, or send a command for each key", kv.ErrInvalid, groups)
}

// partial is an error after some of a command was done.
type partial struct{ error }

// Unknown tells that the command may have had an effect.
func (partial) Unknown() bool { return true }

func (p partial) Unwrap() error { return p.error }

// transact makes a transaction and returns its results.
func (s *Server) transact(ctx context.Context, group uint64, x *kv.Txn) (*kv.TxnResult, error) {
	r, err := s.cfg.Backend.Transact(ctx, group, x)
	if err != nil {
		return nil, err
	}
	if r.Txn == nil {
		return nil, errors.New("the state machine did not answer with the result of a transaction")
	}
	return r.Txn, nil
}

// read does actions that only read. Actions on one group see the same state.
func (s *Server) read(ctx context.Context, actions []kv.Action) ([]kv.ActionResult, error) {
	b := s.cfg.Backend
	groups := (&plan{actions: actions}).groups(b.Groups())
	if err := b.Barrier(ctx, groups...); err != nil {
		return nil, err
	}
	return s.byGroup(groups, actions, func(group uint64, some []kv.Action) ([]kv.ActionResult, error) {
		return b.State(group).Look(ctx, some)
	})
}

// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package resp

import (
	"context"
	"fmt"

	"github.com/tidwall/redcon"

	"github.com/weftraft/weft/cmd/kvdemo/internal/kv"
)

// maxWatched is how many keys a client can have with WATCH, and watchedBytes about what each takes beside the key.
const maxWatched, watchedBytes = 1024, 100

// maxSkips is how many members of sorted sets the ranges of a transaction can pass over: each is looked at, at all nodes.
const maxSkips = 100_000

func doMulti(c *client, conn redcon.Conn, _ [][]byte) {
	c.multi, c.bad, c.queued, c.size, c.skips = true, false, nil, 0, 0
	conn.WriteString("OK")
}

// queued is a command that waits for EXEC. The plan is made again then, because times to
// live count from EXEC.
type queued struct {
	command
	text redcon.Command
}

// queue keeps a command, whose plan is good, for EXEC.
func (c *client) queue(conn redcon.Conn, q queued, p *plan) {
	size := max(p.size(), len(q.text.Raw))
	c.size += size
	if c.size > kv.MaxCommandBytes || len(c.queued) >= kv.MaxTxnItems/2 {
		c.fail(conn, fmt.Sprintf("ERR a transaction of %d bytes and %d commands, want at most %d and %d", c.size, len(c.queued)+1, kv.MaxCommandBytes, kv.MaxTxnItems/2))
		return
	}
	if p.skips > maxSkips-c.skips {
		c.fail(conn, fmt.Sprintf("ERR the ranges of a transaction pass over more than %d members, while all writes wait: ask for these outside of it", maxSkips))
		return
	}
	c.skips += p.skips
	if !c.hold(conn, size) {
		return
	}
	c.queued = append(c.queued, q)
	conn.WriteString("QUEUED")
}

// hold counts bytes that are kept for the client, or tells the client that there is no room.
func (c *client) hold(conn redcon.Conn, bytes int) bool {
	used := &c.server.budget.used
	if n := used.Add(int64(bytes)); n > maxPendingBytes {
		used.Add(-int64(bytes))
		c.fail(conn, fmt.Sprintf("TRYAGAIN commands and watched keys that wait for EXEC, of all clients, take %d bytes, want at most %d", n, int64(maxPendingBytes)))
		return false
	}
	c.held += bytes
	return true
}

// letGo ends the count of what was kept.
func (c *client) letGo() {
	c.server.budget.used.Add(-int64(c.held))
	c.held = 0
}

// endMulti forgets the transaction, and what was watched.
func (c *client) endMulti() {
	c.multi, c.bad, c.queued, c.size, c.watched = false, false, nil, 0, nil
	c.letGo()
}

func doDiscard(c *client, conn redcon.Conn, _ [][]byte) {
	if !c.multi {
		conn.WriteError("ERR DISCARD without MULTI")
		return
	}
	c.endMulti()
	conn.WriteString("OK")
}

func doExec(c *client, conn redcon.Conn, _ [][]byte) {
	defer c.endMulti()
	switch {
	case !c.multi:
		conn.WriteError("ERR EXEC without MULTI")
		return
	case c.bad:
		conn.WriteError("EXECABORT Transaction discarded because of previous errors.")
		return
	case len(c.queued) == 0 && len(c.watched) == 0:
		conn.WriteArray(0)
		return
	}
	x := &kv.Txn{}
	for _, w := range c.watched {
		x.Compares = append(x.Compares, w.Compare)
	}
	var plans []*plan
	for _, q := range c.queued {
		p, err := q.plan(q.text.Args[1:], c.server.now())
		if err != nil { // a time that was the last possible one
			conn.WriteError("EXECABORT Transaction discarded because of: " + clean(err.Error()))
			return
		}
		plans = append(plans, p)
		x.Then = append(x.Then, p.actions...)
	}
	ctx, cancel := c.server.context()
	defer cancel()
	r, err := c.server.exec(ctx, x, c.watched)
	switch {
	case err != nil:
		conn.WriteError(explain(err))
		return
	case !r.Succeeded:
		writeNoArray(conn) // as EXEC answers when a watched key has changed
		return
	}
	conn.WriteArray(len(plans))
	results := r.Actions
	for _, p := range plans {
		n := len(p.actions)
		p.reply(conn, results[:n])
		results = results[n:]
	}
}

// groupOf returns the one group of a transaction's keys.
func (s *Server) groupOf(x *kv.Txn) (uint64, error) {
	seen := map[uint64]bool{}
	var group uint64
	for key := range x.Keys {
		group = kv.GroupOf(key, s.cfg.Backend.Groups())
		seen[group] = true
	}
	if len(seen) > 1 {
		return 0, severalGroups(len(seen))
	}
	return group, nil
}

// watched is a key of WATCH.
type watched struct {
	kv.Compare        // holds while the key is as it was
	revision   uint64 // of its group, at WATCH or before
}

// exec does a transaction unless a watched key has changed since WATCH.
//
// The comparisons look at the keys at the moment of the transaction. They alone would
// let a key pass that was changed and changed back, while the client may have read in
// between what it was meanwhile. So the node looks at the changes that it remembers, up
// to all that came before EXEC. What is changed and changed back while EXEC is under
// way is not noticed: the client has read nothing since.
func (s *Server) exec(ctx context.Context, x *kv.Txn, keys []watched) (*kv.TxnResult, error) {
	group, err := s.groupOf(x)
	if err != nil {
		return nil, err
	}
	if len(keys) > 0 {
		if err := s.cfg.Backend.Barrier(ctx, group); err != nil {
			return nil, err
		}
		for _, w := range keys {
			if changed, err := s.cfg.Backend.State(group).Changed(ctx, w.Key, w.revision); changed || err != nil {
				return &kv.TxnResult{}, err
			}
		}
	}
	return s.transact(ctx, group, x)
}

// doWatch remembers the present condition of each key: EXEC does nothing if a key has changed
// meanwhile.
func doWatch(c *client, conn redcon.Conn, args [][]byte) {
	if len(c.watched)+len(args) > maxWatched {
		conn.WriteError(fmt.Sprintf("ERR %d watched keys, want at most %d", len(c.watched)+len(args), maxWatched))
		return
	}
	s := c.server
	p, err := checkKeys(&plan{actions: each(kv.ActHas, args)})
	if err != nil {
		conn.WriteError(clean(err.Error()))
		return
	}
	ctx, cancel := s.context()
	defer cancel()
	if err := s.cfg.Backend.Barrier(ctx, p.groups(s.cfg.Backend.Groups())...); err != nil {
		conn.WriteError(explain(err))
		return
	}
	var fresh []watched
	bytes := 0
	for _, a := range p.actions {
		bytes += len(a.Key) + watchedBytes
		store := s.cfg.Backend.State(kv.GroupOf(a.Key, s.cfg.Backend.Groups()))
		var w watched
		if w.revision, err = store.Revision(ctx); err == nil {
			w.Compare, err = store.Condition(ctx, a.Key)
		}
		if err != nil {
			conn.WriteError(explain(err))
			return
		}
		fresh = append(fresh, w)
	}
	if !c.hold(conn, bytes) {
		return
	}
	c.watched = append(c.watched, fresh...)
	conn.WriteString("OK")
}

func doUnwatch(c *client, conn redcon.Conn, _ [][]byte) {
	c.endMulti() // there is none
	conn.WriteString("OK")
}

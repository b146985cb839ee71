// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package resp

import (
	"fmt"

	"github.com/tidwall/redcon"

	"github.com/weftraft/weft/cmd/kvdemo/internal/kv"
)

// maxWatched is how many keys a client can have with WATCH.
const maxWatched = 1024

func doMulti(c *client, conn redcon.Conn, _ [][]byte) {
	c.multi, c.bad, c.queued, c.size = true, false, nil, 0
	conn.WriteString("OK")
}

// queue keeps a command for EXEC.
func (c *client) queue(conn redcon.Conn, p *plan) {
	c.size += p.size()
	if c.size > kv.MaxCommandBytes || len(c.queued) >= kv.MaxTxnItems/2 {
		c.fail(conn, fmt.Sprintf("ERR a transaction of %d bytes and %d commands, want at most %d and %d", c.size, len(c.queued)+1, kv.MaxCommandBytes, kv.MaxTxnItems/2))
		return
	}
	c.queued = append(c.queued, p)
	conn.WriteString("QUEUED")
}

// endMulti forgets the transaction, and what was watched.
func (c *client) endMulti() {
	c.multi, c.bad, c.queued, c.size, c.watched = false, false, nil, 0, nil
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
	x := &kv.Txn{Compares: c.watched}
	for _, p := range c.queued {
		x.Then = append(x.Then, p.actions...)
	}
	group, err := c.server.groupOf(x)
	if err != nil {
		conn.WriteError(explain(err))
		return
	}
	ctx, cancel := c.server.context()
	defer cancel()
	r, err := c.server.transact(ctx, group, x)
	switch {
	case err != nil:
		conn.WriteError(explain(err))
		return
	case !r.Succeeded:
		conn.WriteRaw([]byte("*-1\r\n")) // as EXEC answers when a watched key has changed
		return
	}
	conn.WriteArray(len(c.queued))
	results := r.Actions
	for _, p := range c.queued {
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

// doWatch remembers what the keys are now: EXEC does nothing if one is another then. A
// key that was changed and changed back is not noticed; whoever could tell the
// difference would have to have seen the time between.
func doWatch(c *client, conn redcon.Conn, args [][]byte) {
	if len(c.watched)+len(args) > maxWatched {
		conn.WriteError(fmt.Sprintf("ERR %d watched keys, want at most %d", len(c.watched)+len(args), maxWatched))
		return
	}
	s := c.server
	p, err := checkKeys(&plan{actions: each(kv.ActHas, args)})
	if err != nil {
		conn.WriteError(err.Error())
		return
	}
	ctx, cancel := s.context()
	defer cancel()
	if err := s.cfg.Backend.Barrier(ctx, p.groups(s.cfg.Backend.Groups())...); err != nil {
		conn.WriteError(explain(err))
		return
	}
	var fresh []kv.Compare
	for _, a := range p.actions {
		watched, err := s.cfg.Backend.State(kv.GroupOf(a.Key, s.cfg.Backend.Groups())).Condition(a.Key)
		if err != nil {
			conn.WriteError(explain(err))
			return
		}
		fresh = append(fresh, watched)
	}
	c.watched = append(c.watched, fresh...)
	conn.WriteString("OK")
}

func doUnwatch(c *client, conn redcon.Conn, _ [][]byte) {
	c.watched = nil
	conn.WriteString("OK")
}

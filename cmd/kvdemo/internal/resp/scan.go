// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package resp

import (
	"container/list"
	"context"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"sync"

	"github.com/tidwall/redcon"

	"github.com/weftraft/weft/cmd/kvdemo/internal/kv"
)

const (
	defaultScan = 10
	maxScan     = 1000
	// maxCursors is how many scans a node remembers; the one unused for longest is
	// forgotten.
	maxCursors = 10_000
)

// cursors remember where scans are, because clients take numbers only. A number is good
// at the node that gave it.
type cursors struct {
	mu   sync.Mutex
	next uint64
	at   map[uint64]*list.Element
	used list.List // of *cursor, the one unused for longest first
}

type cursor struct {
	id    uint64
	after string
}

// put returns a number for a place behind a key.
func (c *cursors) put(after string) uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.at == nil {
		c.at = map[uint64]*list.Element{}
	}
	c.next++
	c.at[c.next] = c.used.PushBack(&cursor{c.next, after})
	if len(c.at) > maxCursors {
		oldest := c.used.Front()
		delete(c.at, oldest.Value.(*cursor).id)
		c.used.Remove(oldest)
	}
	return c.next
}

// get returns the key behind which a scan goes on.
func (c *cursors) get(id uint64) (after string, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e, ok := c.at[id]
	if !ok {
		return "", false
	}
	c.used.MoveToBack(e)
	return e.Value.(*cursor).after, true
}

// scan is what SCAN asks for.
type scan struct {
	query kv.Query
	match *regexp.Regexp // nil: all keys
	// of is the name of a type, empty for all.
	of string
}

// doDBSize is DBSIZE. It reads all keys, not the values.
func doDBSize(c *client, conn redcon.Conn, _ [][]byte) {
	ctx, cancel := c.server.context()
	defer cancel()
	n, err := c.server.cfg.Backend.Count(ctx)
	if err != nil {
		conn.WriteError(explain(err))
		return
	}
	conn.WriteInt64(n)
}

// doScan is SCAN cursor [MATCH pattern] [COUNT number] [TYPE type].
func doScan(c *client, conn redcon.Conn, args [][]byte) {
	s := c.server
	q, err := s.parseScan(args)
	if err != nil {
		conn.WriteError(clean(err.Error()))
		return
	}
	ctx, cancel := s.context()
	defer cancel()
	page, err := s.cfg.Backend.List(ctx, q.query)
	if err != nil {
		conn.WriteError(explain(err))
		return
	}
	next := uint64(0)
	if page.Next != "" {
		next = s.cursors.put(page.Next)
	}
	var keys []string
	for _, item := range page.Items {
		if q.match == nil || q.match.MatchString(item.Key) {
			keys = append(keys, item.Key)
		}
	}
	if q.of != "" && len(keys) > 0 {
		if keys, err = s.ofType(ctx, keys, q.of); err != nil {
			conn.WriteError(explain(err))
			return
		}
	}
	conn.WriteArray(2)
	conn.WriteBulkString(strconv.FormatUint(next, 10))
	conn.WriteArray(len(keys))
	for _, key := range keys {
		conn.WriteBulkString(key)
	}
}

// ofType returns the keys whose values are of a type.
func (s *Server) ofType(ctx context.Context, keys []string, of string) (found []string, err error) {
	var look []kv.Action
	for _, key := range keys {
		look = append(look, kv.Action{Kind: kv.ActType, Key: key})
	}
	types, err := s.read(ctx, look)
	for i, r := range types {
		if kv.Type(r.Number).String() == of {
			found = append(found, keys[i])
		}
	}
	return found, err
}

func (s *Server) parseScan(args [][]byte) (q scan, err error) {
	id, err := strconv.ParseUint(string(args[0]), 10, 64)
	if err != nil {
		return q, fmt.Errorf("ERR invalid cursor")
	}
	q.query.Limit = defaultScan
	for rest := args[1:]; len(rest) > 0; rest = rest[2:] {
		if len(rest) < 2 {
			return q, errSyntax
		}
		switch value := string(rest[1]); upper(rest[0]) {
		case "MATCH":
			if q.query.Prefix, q.match, err = glob(value); err != nil {
				return q, err
			}
		case "COUNT":
			n, err := strconv.Atoi(value)
			if err != nil || n < 1 {
				return q, errNoInteger
			}
			q.query.Limit = min(n, maxScan)
		case "TYPE":
			q.of = strings.ToLower(value)
		default:
			return q, errSyntax
		}
	}
	if id != 0 {
		after, ok := s.cursors.get(id)
		if !ok {
			return q, fmt.Errorf("ERR the cursor %d is not known: it is of another node, or too old; begin with SCAN 0", id)
		}
		q.query.After = after
	}
	return q, nil
}

// glob translates a pattern of Redis, with *, ?, [...] and \, and returns the text that
// all matches begin with.
func glob(pattern string) (prefix string, match *regexp.Regexp, err error) {
	if len(pattern) > kv.MaxKeyBytes {
		return "", nil, fmt.Errorf("ERR a pattern of %d bytes, want at most %d", len(pattern), kv.MaxKeyBytes)
	}
	var b strings.Builder
	b.WriteString(`(?s)\A`)
	literal := true // so far
	for i := 0; i < len(pattern); i++ {
		switch c := pattern[i]; c {
		case '*':
			b.WriteString(`.*`)
			literal = false
		case '?':
			b.WriteString(`.`)
			literal = false
		case '[':
			end := strings.IndexByte(pattern[i+1:], ']')
			if end < 1 {
				return "", nil, fmt.Errorf("ERR pattern %q: a [ without its end", printable([]byte(pattern)))
			}
			b.WriteString(class(pattern[i+1 : i+1+end]))
			i += end + 1
			literal = false
		default:
			if c == '\\' && i+1 < len(pattern) {
				i++
			}
			b.WriteString(regexp.QuoteMeta(pattern[i : i+1]))
			if literal {
				prefix += pattern[i : i+1]
			}
		}
	}
	b.WriteString(`\z`)
	match, err = regexp.Compile(b.String())
	if err != nil {
		return "", nil, fmt.Errorf("ERR pattern %q cannot be used: %w", printable([]byte(pattern)), err)
	}
	return prefix, match, nil
}

// class translates what is between [ and ].
func class(set string) string {
	negated := strings.HasPrefix(set, "^")
	set = strings.TrimPrefix(set, "^")
	var b strings.Builder
	b.WriteByte('[')
	if negated {
		b.WriteByte('^')
	}
	for _, c := range set {
		if strings.ContainsRune(`\[]^&~`, c) {
			b.WriteByte('\\')
		}
		b.WriteRune(c)
	}
	b.WriteByte(']')
	return b.String()
}

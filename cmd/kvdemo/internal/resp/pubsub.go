// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package resp

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync"

	"github.com/tidwall/redcon"

	"github.com/weftraft/weft/cmd/kvdemo/internal/kv"
)

// Messages are changes of keys, on the channels that Redis has for them:
//
//	__keyspace@0__:KEY    what happened: set, hset, hdel, zadd, zrem, del, expire, expired
//	__keyevent@0__:EVENT  the key
//
// A subscriber gets each change that the node applies from the subscription on, in the
// order of the key's group. A subscriber that is too slow for what a node remembers is
// told so, and its connection ends.
const (
	keyspacePrefix = "__keyspace@0__:"
	keyeventPrefix = "__keyevent@0__:"

	// maxChannels bounds the channels and patterns of a client, and maxPatternBytes the patterns
	// alone, which take about a hundred times as much memory.
	maxChannels     = 1024
	maxPatternBytes = 16 << 10
	eventPage       = 256
	// maxFollowed bounds the subscribers, counted once for each group: each is sent the changes of all groups.
	maxFollowed = 64 << 10
)

var eventNames = map[kv.EventKind]string{
	kv.EventPut: "set", kv.EventDelete: "del", kv.EventExpire: "expired", kv.EventDeadline: "expire",
	kv.EventHashSet: "hset", kv.EventHashRemove: "hdel", kv.EventSortedAdd: "zadd", kv.EventSortedRemove: "zrem",
}

// subscriber is a client that gets messages. One goroutine takes the client's commands,
// and others bring the messages.
type subscriber struct {
	*client
	mu       sync.Mutex
	conn     redcon.DetachedConn
	channels map[string]*regexp.Regexp // of no expression
	patterns map[string]*regexp.Regexp
	unsent   int // bytes of messages
	quit     bool
}

// doSubscribe takes the connection out of redcon's care.
func doSubscribe(patterns bool) func(*client, redcon.Conn, [][]byte) {
	return func(c *client, conn redcon.Conn, args [][]byte) {
		if err := checkChannels(patterns, args); err != nil {
			conn.WriteError(clean(err.Error()))
			return
		}
		s := c.server
		from := make([]uint64, s.cfg.Backend.Groups())
		ctx, cancel := s.context()
		defer cancel()
		all := make([]uint64, len(from))
		for i := range from {
			all[i] = uint64(i + 1)
		}
		if err := s.cfg.Backend.Barrier(ctx, all...); err != nil {
			conn.WriteError(explain(err))
			return
		}
		for i := range from {
			now, err := s.cfg.Backend.State(uint64(i + 1)).Revision(ctx)
			if err != nil {
				conn.WriteError(explain(err))
				return
			}
			from[i] = now + 1
		}
		if err := s.follow(len(from)); err != nil {
			conn.WriteError(err.Error())
			return
		}
		c.endMulti() // there is none, but perhaps keys that are watched
		c.left, c.detached = true, true
		sub := &subscriber{client: c, conn: conn.Detach(), channels: map[string]*regexp.Regexp{}, patterns: map[string]*regexp.Regexp{}}
		sub.subscribe(patterns, args)
		rest := c.pipeline
		c.pipeline = nil
		go func() {
			defer s.unfollow(len(from))
			sub.serve(rest, from)
		}()
	}
}

// follow counts a subscriber in before anything is sent to it, so that Close waits for it.
func (s *Server) follow(groups int) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ctx.Err() != nil {
		return errors.New("TRYAGAIN the node ends: use another node")
	}
	if n := s.followed + groups; n > maxFollowed {
		return fmt.Errorf("TRYAGAIN subscribers follow %d groups together, want at most %d: use another node", n, maxFollowed)
	}
	s.followed += groups
	s.subscribers.Add(1)
	return nil
}

func (s *Server) unfollow(groups int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.followed -= groups
	s.subscribers.Done()
}

func doUnsubscribe(name string) func(*client, redcon.Conn, [][]byte) {
	return func(_ *client, conn redcon.Conn, _ [][]byte) { // there are no channels yet
		writePush(conn, 3)
		conn.WriteBulkString(name)
		writeNull(conn)
		conn.WriteInt(0)
	}
}

func checkChannels(patterns bool, args [][]byte) error {
	for _, a := range args {
		if patterns {
			if _, _, err := glob(string(a)); err != nil {
				return err
			}
			continue
		}
		if channel := string(a); !strings.HasPrefix(channel, keyspacePrefix) && !strings.HasPrefix(channel, keyeventPrefix) {
			return fmt.Errorf("ERR channel '%s': want %sKEY or %sEVENT, as messages come from changes of keys only", printable(a), keyspacePrefix, keyeventPrefix)
		}
		if len(a) > len(keyspacePrefix)+kv.MaxKeyBytes {
			return fmt.Errorf("ERR a channel of %d bytes, want at most %d, as keys have at most %d", len(a), len(keyspacePrefix)+kv.MaxKeyBytes, kv.MaxKeyBytes)
		}
	}
	return nil
}

// serve reads commands, and sends messages, until the client goes, or is too slow, or
// the server ends.
func (u *subscriber) serve(rest []redcon.Command, from []uint64) {
	ctx, cancel := context.WithCancel(u.server.ctx)
	stop := context.AfterFunc(ctx, func() { _ = u.conn.NetConn().Close() }) // which ends ReadCommand
	defer stop()
	var sending sync.WaitGroup
	for i, next := range from {
		sending.Go(func() {
			defer cancel()
			u.send(ctx, u.server.cfg.Backend.State(uint64(i+1)), next)
		})
	}
	for _, cmd := range rest {
		u.command(cmd)
	}
	for ctx.Err() == nil && !u.gone() {
		cmd, err := u.conn.ReadCommand()
		if err != nil {
			break
		}
		u.command(cmd)
	}
	cancel()
	sending.Wait()
	_ = u.conn.NetConn().Close() // twice does no harm
}

func (u *subscriber) gone() bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.quit
}

// command does one of the few commands that a subscriber may send.
func (u *subscriber) command(cmd redcon.Command) {
	u.mu.Lock()
	defer u.mu.Unlock()
	name, args := upper(cmd.Args[0]), cmd.Args[1:]
	switch name {
	case "SUBSCRIBE", "PSUBSCRIBE":
		if err := checkChannels(name == "PSUBSCRIBE", args); err != nil || len(args) == 0 {
			u.conn.WriteError(clean(fmt.Sprint(errors.Join(err, errSyntax))))
			break
		}
		u.subscribe(name == "PSUBSCRIBE", args)
		return
	case "UNSUBSCRIBE", "PUNSUBSCRIBE":
		u.unsubscribe(strings.ToLower(name), name == "PUNSUBSCRIBE", args)
	case "PING":
		if three(u.conn) {
			doPing(u.client, u.conn, args[:min(1, len(args))])
			break
		}
		text := ""
		if len(args) > 0 {
			text = string(args[0])
		}
		u.conn.WriteArray(2)
		u.conn.WriteBulkString("pong")
		u.conn.WriteBulkString(text)
	case "QUIT":
		u.conn.WriteString("OK")
		u.quit = true
	default:
		u.conn.WriteError(fmt.Sprintf("ERR '%s' cannot be used by a subscriber: want SUBSCRIBE, PSUBSCRIBE, UNSUBSCRIBE, PUNSUBSCRIBE, PING or QUIT", printable(cmd.Args[0])))
	}
	u.sendReplies()
}

// sendReplies sends what was written. A client that does not read that is cut off.
func (u *subscriber) sendReplies() {
	if u.conn.Flush() != nil {
		u.quit = true
	}
}

// count is how many channels and patterns there are.
func (u *subscriber) count() int { return len(u.channels) + len(u.patterns) }

func (u *subscriber) patternBytes() (n int) {
	for p := range u.patterns {
		n += len(p)
	}
	return n
}

// subscribe adds channels or patterns, which were checked.
func (u *subscriber) subscribe(patterns bool, args [][]byte) {
	name := "subscribe"
	if patterns {
		name = "psubscribe"
	}
	for _, a := range args {
		switch {
		case u.count() >= maxChannels:
			u.conn.WriteError(fmt.Sprintf("ERR %d channels and patterns, want at most that", maxChannels))
			continue
		case patterns && u.patternBytes()+len(a) > maxPatternBytes:
			u.conn.WriteError(fmt.Sprintf("ERR patterns of %d bytes, want at most %d together", u.patternBytes()+len(a), maxPatternBytes))
			continue
		case patterns:
			_, u.patterns[string(a)], _ = glob(string(a))
		default:
			u.channels[string(a)] = nil
		}
		writePush(u.conn, 3)
		u.conn.WriteBulkString(name)
		u.conn.WriteBulk(a)
		u.conn.WriteInt(u.count())
	}
	u.sendReplies()
}

// unsubscribe removes channels or patterns, all if none is named.
func (u *subscriber) unsubscribe(name string, patterns bool, args [][]byte) {
	set := u.channels
	if patterns {
		set = u.patterns
	}
	if len(args) == 0 {
		for name := range set {
			args = append(args, []byte(name))
		}
	}
	for _, a := range args {
		delete(set, string(a))
		writePush(u.conn, 3)
		u.conn.WriteBulkString(name)
		u.conn.WriteBulk(a)
		u.conn.WriteInt(u.count())
	}
	if len(args) == 0 {
		doUnsubscribe(name)(nil, u.conn, nil)
	}
}

// send sends the changes of a group.
func (u *subscriber) send(ctx context.Context, state State, next uint64) {
	for {
		events, following, more, err := state.Events(ctx, next, eventPage)
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			u.mu.Lock()
			u.conn.WriteError(clean("ERR there are no more messages: " + err.Error()))
			_ = u.conn.Flush() // it may be gone
			u.mu.Unlock()
			return
		}
		next = following
		if err := u.messages(events); err != nil {
			return
		}
		if more == nil {
			continue
		}
		select {
		case <-ctx.Done():
			return
		case <-more:
		}
	}
}

// messages sends what the client wants of some events.
func (u *subscriber) messages(events []kv.Event) error {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, e := range events {
		name := eventNames[e.Kind]
		for _, m := range [][2]string{{keyspacePrefix + e.Key, name}, {keyeventPrefix + name, e.Key}} {
			if err := u.message(m[0], m[1]); err != nil {
				return err
			}
		}
	}
	return u.flush(0)
}

// message writes a message for the channel, and one for each pattern that it matches.
func (u *subscriber) message(channel, text string) error {
	if _, ok := u.channels[channel]; ok {
		if err := u.write("message", channel, text); err != nil {
			return err
		}
	}
	for pattern, match := range u.patterns {
		if match.MatchString(channel) {
			if err := u.write("pmessage", pattern, channel, text); err != nil {
				return err
			}
		}
	}
	return nil
}

// write writes a message of some parts.
func (u *subscriber) write(parts ...string) error {
	writePush(u.conn, len(parts))
	for _, part := range parts {
		u.conn.WriteBulkString(part)
		u.unsent += len(part)
	}
	return u.flush(flushBytes)
}

// flush sends the messages that were written, if they are of more bytes.
func (u *subscriber) flush(more int) error {
	if u.unsent <= more {
		return nil
	}
	u.unsent = 0
	return u.conn.Flush()
}

// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

// Package resp lets clients of Redis use a node of kvdemo: a [Server] speaks versions 2
// and 3 of their protocol.
//
// A command that changes something becomes a transaction of the key's group, and a
// command that only reads waits until the node may answer, so histories through this
// front are linearizable. Commands that a client sends at once, without waiting for
// replies, share a transaction as long as they are about one group; so do those between
// MULTI and EXEC, which must be about one.
//
// Clients are not trusted: [guard] bounds what they send before the parser sees it.
package resp

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tidwall/redcon"

	"github.com/weftraft/weft/cmd/kvdemo/internal/kv"
	"github.com/weftraft/weft/cmd/kvdemo/kvpb"
	"github.com/weftraft/weft/internal/strangers"
)

// Backend is what the front needs of a node. Its methods are called by several
// goroutines.
type Backend interface {
	// Groups returns how many groups there are.
	Groups() int
	// Transact replicates a transaction in a group.
	Transact(ctx context.Context, group uint64, x *kv.Txn) (kv.Result, error)
	// Barrier returns when the states of the groups may answer linearizable reads.
	Barrier(ctx context.Context, groups ...uint64) error
	// State returns what reads behind a barrier see of a group.
	State(group uint64) State
	// List returns keys of all groups in their order, linearizable.
	List(ctx context.Context, q kv.Query) (kv.Page, error)
	// Count returns how many keys all groups have, linearizable.
	Count(ctx context.Context) (int64, error)
	// Info returns what INFO says of the node, as name and value.
	Info() [][2]string
}

// State is what the front reads of a group: see the methods of kv.Store with these names.
type State interface {
	Look(ctx context.Context, actions []kv.Action) ([]kv.ActionResult, error)
	Condition(ctx context.Context, key string) (kv.Compare, error)
	Changed(ctx context.Context, key string, since uint64) (bool, error)
	Revision(ctx context.Context) (uint64, error)
	Events(ctx context.Context, from uint64, limit int) (events []kv.Event, next uint64, more <-chan struct{}, err error)
}

// Local is the State of a store in this process.
type Local struct{ *kv.Store }

// Look implements State.
func (l Local) Look(_ context.Context, actions []kv.Action) ([]kv.ActionResult, error) {
	return l.Store.Look(actions)
}

// Condition implements State.
func (l Local) Condition(_ context.Context, key string) (kv.Compare, error) {
	return l.Store.Condition(key)
}

// Changed implements State.
func (l Local) Changed(_ context.Context, key string, since uint64) (bool, error) {
	return l.Store.Changed(key, since), nil
}

// Revision implements State.
func (l Local) Revision(context.Context) (uint64, error) { return l.Store.Revision(), nil }

// Events implements State.
func (l Local) Events(_ context.Context, from uint64, limit int) ([]kv.Event, uint64, <-chan struct{}, error) {
	return l.Store.Events(from, limit)
}

// Bounds of a Server.
const (
	// defaultTimeout bounds a command.
	defaultTimeout = 10 * time.Second
	// maxClients is how many clients can be connected.
	maxClients = 10_000
	// slowClient is how long a client may take to read a reply.
	slowClient = 30 * time.Second
	// flushBytes of replies are sent before further commands of a pipeline are done.
	flushBytes = 256 << 10
)

// Config configures [New].
type Config struct {
	Backend Backend // must be set
	// Secure, unless nil, makes the connection of a client one that is trusted, such as
	// by TLS, or says why it refuses the client; it may wait for the client. The
	// connection is closed after an error, which the client is told.
	Secure func(net.Conn) (net.Conn, error)
	// Password is what clients give with AUTH; empty: none is wanted.
	Password string
	// Strangers has the connections for which Secure has not answered yet, or, without
	// Secure, which have not given the password; nil: a table of the server's own.
	Strangers *strangers.Table
	// Timeout bounds a command; 0 means defaultTimeout.
	Timeout time.Duration
	// Log must be set.
	Log *slog.Logger
}

// Server serves clients of Redis.
type Server struct {
	cfg     Config
	redcon  *redcon.Server
	budget  budget
	cursors cursors
	clients atomic.Int64
	// maxClients bounds the clients; tests set a lower bound.
	maxClients int64
	// patience is slowClient, but in tests.
	patience time.Duration
	// now is time.Now, but in tests.
	now func() time.Time
	ids atomic.Int64
	// ctx ends with the server.
	ctx    context.Context
	cancel context.CancelFunc
	// mu guards what follows. listener is what Serve was given.
	mu       sync.Mutex
	listener net.Listener
	// subscribers have left redcon's care, and none is added after Close; followed counts each
	// once for each group.
	subscribers sync.WaitGroup
	followed    int
}

// New returns a server.
func New(cfg Config) *Server {
	if cfg.Timeout == 0 {
		cfg.Timeout = defaultTimeout
	}
	if cfg.Strangers == nil {
		cfg.Strangers = strangers.New(strangers.Limit, 1, rand.IntN)
	}
	s := &Server{cfg: cfg, maxClients: maxClients, patience: slowClient, now: time.Now}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	s.redcon = redcon.NewServerNetwork("tcp", "", s.handle, s.accept, s.closed)
	s.redcon.AcceptError = func(err error) {
		cfg.Log.Warn("accept a client", "error", err)
		time.Sleep(10 * time.Millisecond) // such as too many open files
	}
	return s
}

// Serve serves clients that come through the listener, until Close.
func (s *Server) Serve(l net.Listener) error {
	s.mu.Lock()
	s.listener = l
	s.mu.Unlock()
	if s.ctx.Err() != nil { // Close came first
		return closeListener(l)
	}
	return s.redcon.Serve(&guarded{Listener: l, server: s})
}

// Close closes the listener and all connections. Commands that are under way end.
func (s *Server) Close() error {
	s.mu.Lock()
	s.cancel()
	l := s.listener
	s.mu.Unlock()
	var err error
	if l != nil {
		err = closeListener(l) // which ends Serve, and that closes the connections
	}
	s.subscribers.Wait()
	return err
}

// closeListener closes a listener that may be closed.
func closeListener(l net.Listener) error {
	if err := l.Close(); !errors.Is(err, net.ErrClosed) {
		return err
	}
	return nil
}

// accept is told of a connection, whose guard decides whether its client may come in.
func (s *Server) accept(conn redcon.Conn) bool {
	conn.SetContext(&client{server: s, id: s.ids.Add(1)})
	return true
}

func (s *Server) closed(conn redcon.Conn, err error) {
	c, ok := conn.Context().(*client)
	if !ok || c.detached {
		return // the subscriber's own loop goes on
	}
	c.letGo()
	if err != nil {
		s.cfg.Log.Debug("a client's connection ended", "from", conn.RemoteAddr(), "error", err)
	}
}

// client is what the server knows of a connection.
type client struct {
	server   *Server
	id       int64
	name     string
	detached bool // its connection is not redcon's any more
	left     bool // it said that it goes, or is detached
	three    bool // it speaks version 3 of the protocol
	known    bool // it has given the password
	guesses  int  // passwords that were wrong
	// pipeline has the commands that have arrived and are not done.
	pipeline []redcon.Command

	// Of MULTI: the commands that wait for EXEC, and whether one of them was wrong.
	multi   bool
	queued  []queued
	bad     bool
	size    int
	skips   int64 // of queued
	watched []watched
	held    int // bytes of queued and watched that count in the budget
}

// version is that of the protocol.
func (c *client) version() int {
	if c.three {
		return 3
	}
	return 2
}

// context returns the context of a command.
func (s *Server) context() (context.Context, context.CancelFunc) {
	return context.WithTimeout(s.ctx, s.cfg.Timeout)
}

// handle does a command, and all behind it in the pipeline.
func (s *Server) handle(conn redcon.Conn, cmd redcon.Command) {
	c, ok := conn.Context().(*client)
	if !ok {
		conn.WriteError("ERR the connection has no client")
		return
	}
	c.pipeline = append([]redcon.Command{cmd}, conn.ReadPipeline()...)
	for len(c.pipeline) > 0 && !c.left {
		if err := sendIfLong(conn); err != nil {
			return // as reading will say
		}
		c.step(conn)
	}
}

// take takes the first command of the pipeline.
func (c *client) take() redcon.Command {
	cmd := c.pipeline[0]
	c.pipeline = c.pipeline[1:]
	return cmd
}

// step does a command, and those behind it that can share its work.
func (c *client) step(conn redcon.Conn) {
	cmd := c.take()
	name := upper(cmd.Args[0])
	command, ok := commands[name]
	switch {
	case !ok:
		c.fail(conn, fmt.Sprintf("ERR unknown command '%s'", printable(cmd.Args[0])))
		return
	case c.unknown() && !command.early:
		c.fail(conn, "NOAUTH Authentication required.")
		return
	case !command.takes(len(cmd.Args) - 1):
		c.fail(conn, fmt.Sprintf("ERR wrong number of arguments for '%s' command", strings.ToLower(name)))
		return
	case command.do != nil && c.multi && !command.inMulti:
		c.fail(conn, fmt.Sprintf("ERR %s cannot be used between MULTI and EXEC", name))
		return
	case command.do != nil:
		command.do(c, conn, cmd.Args[1:])
		return
	}
	p, err := command.plan(cmd.Args[1:], c.server.now())
	switch {
	case err != nil:
		c.fail(conn, err.Error())
	case c.multi:
		c.queue(conn, queued{command, cmd}, p)
	default:
		c.server.run(conn, c.batch(p))
	}
}

// fail writes an error. Between MULTI and EXEC it is the end of the transaction.
func (c *client) fail(conn redcon.Conn, message string) {
	c.bad = c.bad || c.multi
	conn.WriteError(clean(message))
}

// clean returns a message that fits into one line.
func clean(message string) string {
	return strings.NewReplacer("\r", " ", "\n", " ").Replace(message)
}

// upper returns the name of a command.
func upper(b []byte) string { return strings.ToUpper(string(b[:min(len(b), 64)])) }

// printable returns the start of what a client sent, for a message.
func printable(b []byte) string {
	text := fmt.Sprintf("%q", b[:min(len(b), 64)])
	return text[1 : len(text)-1]
}

// explain returns the reply for an error. A client knows by its first word whether a
// write may have happened: TRYAGAIN is that it has not.
func explain(err error) string {
	text := err.Error()
	if s, ok := kvpb.StatusIn(err); ok {
		text = s.Message()
	}
	var outcome interface{ Unknown() bool }
	switch {
	case errors.As(err, &outcome) && outcome.Unknown():
		return clean("UNKNOWN the write may or may not take effect; read before you write again: " + text)
	case errors.Is(err, kv.ErrInvalid):
		return clean("ERR " + text)
	}
	return clean("TRYAGAIN " + text)
}

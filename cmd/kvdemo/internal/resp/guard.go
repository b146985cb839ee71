// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package resp

import (
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Bounds on what a client sends.
const (
	// maxArgs is how many arguments a command can have, its name too.
	maxArgs = 8192
	// maxRequestBytes bounds a command with its lengths.
	maxRequestBytes = 4 << 20
	// maxInlineBytes bounds a command that is a line of text.
	maxInlineBytes = 64 << 10
	// maxPendingBytes bounds the commands of all clients that have arrived in part or wait for EXEC, and the
	// keys that are watched.
	maxPendingBytes = 256 << 20
	// handshakeTimeout bounds how long a client takes for Config.Secure.
	handshakeTimeout = 10 * time.Second
	// refusedLasts is how long a connection that is refused may stay.
	refusedLasts = time.Second
)

// budget counts the bytes that maxPendingBytes bounds.
type budget struct{ used atomic.Int64 }

// guarded is a listener whose connections have guards.
type guarded struct {
	net.Listener
	server *Server
}

// Accept implements net.Listener.
func (l *guarded) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	if l.server.cfg.Secure != nil || l.server.cfg.Password != "" {
		l.server.cfg.Strangers.Add(conn)
	}
	return &guard{Conn: conn, raw: conn, server: l.server}, nil
}

// guard is a connection that ends when the client sends bytes that are no command, or
// too many. The parser behind the guard trusts lengths: a length near 2^63 makes the
// parser panic, and a huge number of arguments keeps the parser busy for hours. The
// connection also ends when the client does not read. One goroutine may read, and one
// may write.
type guard struct {
	net.Conn // perhaps with TLS; set by the reader under swap
	swap     sync.Mutex
	raw      net.Conn // the same without
	server   *Server

	entered atomic.Bool // it has a client's place
	frame   frame
	pending int64 // bytes of an unfinished command that count in the budget; under swap
	gone    bool  // no bytes count any more; under swap
	once    sync.Once
	err     error // of the handshake
}

// errRefused wraps why a client is refused.
var errRefused = errors.New("refused")

// handshake secures the connection.
func (g *guard) handshake() error {
	g.once.Do(func() {
		cfg := &g.server.cfg
		if g.err = g.secure(); g.err == nil && cfg.Secure == nil && cfg.Password != "" {
			g.err = g.Conn.SetReadDeadline(time.Now().Add(handshakeTimeout)) // to give the password
		} else if g.err == nil {
			g.err = g.enter()
		}
		if g.err != nil {
			g.refuse(g.err)
		}
	})
	return g.err
}

// secure has Config.Secure look at the connection.
func (g *guard) secure() error {
	secure := g.server.cfg.Secure
	if secure == nil {
		return nil
	}
	_ = g.Conn.SetDeadline(time.Now().Add(handshakeTimeout)) // a connection that is gone says so
	conn, err := secure(g.raw)
	if conn != nil {
		g.swap.Lock()
		g.Conn = conn
		g.swap.Unlock()
	}
	if err != nil {
		return fmt.Errorf("%w: %w", errRefused, err)
	}
	return g.Conn.SetDeadline(time.Time{})
}

// enter turns the connection of a stranger into that of a client. Only the goroutine that
// reads may call enter.
func (g *guard) enter() error {
	if g.entered.Load() {
		return nil
	}
	if s := g.server; s.clients.Add(1) > s.maxClients {
		s.clients.Add(-1)
		return errors.New("max number of clients reached")
	}
	g.entered.Store(true)
	g.server.cfg.Strangers.Remove(g.raw)
	return g.Conn.SetReadDeadline(time.Time{})
}

// refuse tells the client why its connection ends, and waits a moment until the client
// hangs up: closing a connection with bytes unread makes the kernel throw away what was
// written.
func (g *guard) refuse(err error) {
	_ = g.Conn.SetDeadline(time.Now().Add(refusedLasts)) // a connection that is gone says so
	_, _ = io.WriteString(g.Conn, "-ERR "+clean(err.Error())+"\r\n")
	if half, ok := g.Conn.(interface{ CloseWrite() error }); ok {
		_ = half.CloseWrite()
		_, _ = io.CopyN(io.Discard, g.Conn, 64<<10)
	}
}

// Read implements net.Conn.
func (g *guard) Read(p []byte) (int, error) {
	if err := g.handshake(); err != nil {
		return 0, err
	}
	n, err := g.Conn.Read(p)
	if bad := g.look(p[:n]); bad != nil {
		g.refuse(bad)
		return 0, bad
	}
	return n, err
}

// look returns an error for bytes that end the connection.
func (g *guard) look(b []byte) error {
	if err := g.frame.scan(b); err != nil {
		return err
	}
	if g.frame.bytes > maxInlineBytes && !g.entered.Load() {
		return fmt.Errorf("%w: a command of more than %d bytes before the password", errRefused, maxInlineBytes)
	}
	if g.count(int64(g.frame.bytes)) && g.server.budget.used.Load() > maxPendingBytes {
		return fmt.Errorf("%w: clients have sent %d bytes of commands without their ends, want at most %d; try again later", errRefused, g.server.budget.used.Load(), int64(maxPendingBytes))
	}
	return nil
}

// count makes the unfinished command's bytes known to the budget, and reports whether there are any.
func (g *guard) count(n int64) bool {
	g.swap.Lock()
	defer g.swap.Unlock()
	if n < maxInlineBytes || g.gone {
		n = 0 // not worth the traffic
	}
	if n != g.pending {
		g.server.budget.used.Add(n - g.pending)
		g.pending = n
	}
	return n > 0
}

// Write implements net.Conn.
func (g *guard) Write(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	if err := g.Conn.SetWriteDeadline(time.Now().Add(g.server.patience)); err != nil {
		return 0, err
	}
	return g.Conn.Write(p)
}

// Close implements net.Conn.
func (g *guard) Close() error {
	g.swap.Lock()
	conn := g.Conn
	g.gone = true
	g.swap.Unlock()
	g.count(0)
	if g.entered.Swap(false) {
		g.server.clients.Add(-1)
	}
	err := conn.Close()
	g.server.cfg.Strangers.Remove(g.raw)
	return err
}

// frame follows the frames of a client's commands, byte by byte: "*2\r\n$3\r\nGET\r\n..."
// or a line of text. It checks the lengths and the ends of parts, not their meaning.
type frame struct {
	state  frameState
	args   int // that are still to come
	number int // that is being read
	digits int
	skip   int // bytes of an argument, and its end, that are still to come
	bytes  int // of the command so far
	// word is the first of a line: its end has come if named is set.
	word  string
	named bool
}

type frameState int

const (
	atStart  frameState = iota // of a command
	inLine                     // of text
	inCount                    // of arguments
	countEnd                   // after its \r
	atBulk                     // an argument begins
	inSize                     // of an argument
	sizeEnd                    // after its \r
	inBulk                     // its bytes
)

// scan follows some more bytes.
func (f *frame) scan(b []byte) error {
	for len(b) > 0 {
		if f.state == inBulk {
			n := min(f.skip, len(b))
			f.skip -= n
			f.bytes += n
			b = b[n:]
			if f.skip == 0 {
				f.next()
			}
			continue
		}
		f.bytes++
		if err := f.step(b[0]); err != nil {
			return err
		}
		b = b[1:]
	}
	return nil
}

func badFrame(what string, args ...any) error {
	return fmt.Errorf("%w: Protocol error: %s", errRefused, fmt.Sprintf(what, args...))
}

// next ends an argument.
func (f *frame) next() {
	f.args--
	f.state = atBulk
	if f.args == 0 {
		*f = frame{}
	}
}

// step takes one byte outside of an argument.
func (f *frame) step(c byte) error {
	switch f.state {
	case atStart:
		f.state, f.number, f.digits = inLine, 0, 0
		if c == '*' {
			f.state = inCount
			return nil
		}
		if c < ' ' && c != '\r' && c != '\n' && c != '\t' {
			return badFrame("byte %#x begins no command; a client with TLS needs a node with TLS", c)
		}
		fallthrough
	case inLine:
		return f.line(c)
	case inCount:
		if c == '\r' && f.digits > 0 {
			f.state = countEnd
			return nil
		}
		return f.digit(c, maxArgs, "arguments")
	case countEnd:
		if c != '\n' || f.number == 0 {
			return badFrame("invalid multibulk length")
		}
		f.args, f.state = f.number, atBulk
	case atBulk:
		if c != '$' {
			return badFrame("expected '$', got %q", c)
		}
		f.state, f.number, f.digits = inSize, 0, 0
	case inSize:
		if c == '\r' && f.digits > 0 {
			f.state = sizeEnd
			return nil
		}
		return f.digit(c, maxRequestBytes, "bytes in an argument")
	case sizeEnd:
		if c != '\n' {
			return badFrame("invalid bulk length")
		}
		if f.bytes+f.number > maxRequestBytes {
			return badFrame("a command of more than %d bytes", maxRequestBytes)
		}
		f.skip, f.state = f.number+len("\r\n"), inBulk
	case inBulk: // scan takes these
	}
	return nil
}

// maxWord bounds what is kept of the first word of a line, and is longer than commands.
const maxWord = 32

// line takes a byte of a line of text. A line that begins with no command is of another
// protocol, most likely: a browser or a server that was told to fetch a URL can send HTTP
// to any port, and lines of the request's body may be commands. So such a line ends the
// connection, and what arrived with the line is not carried out.
func (f *frame) line(c byte) error {
	end := c == ' ' && f.word != "" || c == '\r' || c == '\n'
	if !f.named && !end && c != ' ' && len(f.word) < maxWord {
		f.word += string(rune(c))
	}
	if end && !f.named && f.word != "" {
		if _, ok := commands[strings.ToUpper(f.word)]; !ok {
			return badFrame("a line begins with %q, want a command", f.word)
		}
		f.named = true
	}
	switch {
	case c == '\n':
		*f = frame{}
	case f.bytes > maxInlineBytes:
		return badFrame("a line of more than %d bytes", maxInlineBytes)
	}
	return nil
}

// digit adds a digit to the number.
func (f *frame) digit(c byte, limit int, of string) error {
	if c < '0' || c > '9' {
		return badFrame("%q in a length", c)
	}
	f.digits++
	f.number = min(f.number*10+int(c-'0'), math.MaxInt32)
	if f.number > limit || f.digits > 10 {
		return badFrame("more than %d %s", limit, of)
	}
	return nil
}

// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"
)

// Names of commands.
const (
	Kill    = "kill"
	Start   = "start"
	Pause   = "pause"
	Resume  = "resume"
	Squeeze = "shape"  // a link
	Code    = "policy" // of coding, at all nodes
	Load    = "load"
)

// Command is a button that was pressed.
type Command struct {
	Do     string `json:"do"`
	Node   uint64 `json:"node,omitempty"`   // of Kill, Start, Pause, Resume; the sender of Squeeze
	To     uint64 `json:"to,omitempty"`     // the receiver of Squeeze
	Shape  Shape  `json:"shape,omitzero"`   // of Squeeze
	Policy string `json:"policy,omitempty"` // of Code
	Writes int    `json:"writes,omitempty"` // of Load, in a second
}

// ControlState is what the buttons of a demonstration show.
type ControlState struct {
	// Busy is why commands are refused now; empty if they are not.
	Busy     string   `json:"busy,omitempty"`
	Policies []string `json:"policies"`
	Policy   string   `json:"policy"`
	Writes   int      `json:"writes"` // wanted in a second
	// Running has the nodes with a process.
	Running []uint64 `json:"running"`
	Paused  []uint64 `json:"paused"`
}

// Controls carries out commands.
type Controls interface {
	// Do carries out a command, and returns afterwards. Calls come one at a time. An error
	// names the mistake in the command, or the reason why the command is impossible now.
	Do(ctx context.Context, c Command) error
	// State returns what the buttons show, without waiting.
	State() ControlState
}

const (
	tokenHeader    = "X-Kvdemo-Token"
	maxCommand     = 4 << 10
	commandTimeout = 20 * time.Second
)

// commands serves the commands of a demonstration. A command needs three things: a token,
// which only pages of this server can read; the browser's word that the request comes from
// such a page; and a request to a name of this machine, so that a foreign name that
// resolves to this machine is of no use.
type commands struct {
	controls Controls
	token    string
	turn     sync.Mutex
}

func newCommands(c Controls) *commands { return &commands{controls: c, token: rand.Text()} }

func (c *commands) register(mux *http.ServeMux) {
	cross := http.NewCrossOriginProtection()
	cross.SetDenyHandler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		refuse(w, http.StatusForbidden, errors.New("the request comes from a page of another site; open the page of the demonstration itself"))
	}))
	mux.Handle("GET /page/token", local(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if site := r.Header.Get("Sec-Fetch-Site"); site != "" && site != "same-origin" {
			refuse(w, http.StatusForbidden, fmt.Errorf("the request comes from %q, want a page of the demonstration itself", Text(site)))
			return
		}
		reply(w, map[string]string{"token": c.token})
	})))
	mux.Handle("POST /page/do", local(cross.Handler(http.HandlerFunc(c.do))))
}

// named reports whether a request calls its server by an address, or as localhost.
func named(r *http.Request) bool {
	host := r.Host
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	return host == "localhost" || net.ParseIP(strings.Trim(host, "[]")) != nil
}

// NoForeignNames refuses requests from this machine to this machine under a foreign name. Any site can let
// the name of its server point to this machine; a browser then takes the pages served here for pages of that
// site. Requests from other machines may use a name.
func NoForeignNames(h http.Handler) http.Handler {
	guarded := local(h)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if at, ok := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr); ok && at.IP.IsLoopback() {
			guarded.ServeHTTP(w, r)
			return
		}
		h.ServeHTTP(w, r)
	})
}

// local refuses requests under another name than this machine's address or localhost.
func local(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !named(r) {
			refuse(w, http.StatusForbidden, fmt.Errorf("the server was called by the name %q; call it by its address, or as localhost", Text(r.Host)))
			return
		}
		h.ServeHTTP(w, r)
	})
}

func (c *commands) do(w http.ResponseWriter, r *http.Request) {
	if subtle.ConstantTimeCompare([]byte(r.Header.Get(tokenHeader)), []byte(c.token)) != 1 {
		refuse(w, http.StatusForbidden, fmt.Errorf("%s: not the token of this demonstration; load the page again", tokenHeader))
		return
	}
	command, err := readCommand(r.Body)
	if err != nil {
		refuse(w, http.StatusBadRequest, err)
		return
	}
	// A viewer that leaves does not cut a command short.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), commandTimeout)
	defer cancel()
	c.turn.Lock()
	defer c.turn.Unlock()
	if err := c.controls.Do(ctx, command); err != nil {
		refuse(w, http.StatusConflict, err)
		return
	}
	reply(w, c.controls.State())
}

// readCommand reads one command, and nothing behind it.
func readCommand(r io.Reader) (c Command, err error) {
	d := json.NewDecoder(io.LimitReader(r, maxCommand))
	d.DisallowUnknownFields()
	if err := d.Decode(&c); err != nil {
		return c, fmt.Errorf("the command is no JSON object of at most %d bytes: %w", maxCommand, err)
	}
	if d.More() {
		return c, errors.New("there is more behind the command, want one object")
	}
	return c, nil
}

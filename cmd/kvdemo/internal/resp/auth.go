// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package resp

import (
	"crypto/sha256"
	"crypto/subtle"

	"github.com/tidwall/redcon"
)

// defaultUser is the only user, under Redis's name for the user of a lone password.
const defaultUser = "default"

// maxGuesses is how many passwords a connection can give. Client libraries try again with
// other commands before they report the error.
const maxGuesses = 8

// unknown reports whether the client has yet to give the password.
func (c *client) unknown() bool { return c.server.cfg.Password != "" && !c.known }

// authenticate compares a password, and tells the client if it is wrong.
func (c *client) authenticate(conn redcon.Conn, user string, password []byte) bool {
	want := c.server.cfg.Password
	if want == "" {
		conn.WriteError("ERR AUTH is not used: there are no passwords; with TLS a client is who its certificate says")
		return false
	}
	got, right := sha256.Sum256(password), sha256.Sum256([]byte(want)) // of one length
	if user != defaultUser || subtle.ConstantTimeCompare(got[:], right[:]) != 1 {
		conn.WriteError("WRONGPASS invalid username-password pair")
		if c.guesses++; c.guesses == maxGuesses {
			c.leave(conn)
		}
		return false
	}
	if g, ok := conn.NetConn().(*guard); ok && !c.known {
		if err := g.enter(); err != nil {
			conn.WriteError("ERR " + clean(err.Error()))
			c.leave(conn)
			return false
		}
	}
	c.known = true
	return true
}

// leave ends the connection after sending the written replies. A client that is gone
// gets none.
func (c *client) leave(conn redcon.Conn) {
	c.left = true
	_ = conn.Close()
}

// doAuth is AUTH [user] password.
func doAuth(c *client, conn redcon.Conn, args [][]byte) {
	user := defaultUser
	if len(args) == 2 {
		user = string(args[0])
	}
	if c.authenticate(conn, user, args[len(args)-1]) {
		conn.WriteString("OK")
	}
}

// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package resp

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tidwall/redcon"
)

// maxName bounds the name that a client gives itself.
const maxName = 256

func doPing(_ *client, conn redcon.Conn, args [][]byte) {
	if len(args) == 1 {
		conn.WriteBulk(args[0])
		return
	}
	conn.WriteString("PONG")
}

func doEcho(_ *client, conn redcon.Conn, args [][]byte) { conn.WriteBulk(args[0]) }

func doQuit(c *client, conn redcon.Conn, _ [][]byte) {
	conn.WriteString("OK")
	c.leave(conn)
}

func doReset(c *client, conn redcon.Conn, _ [][]byte) {
	c.endMulti()
	c.name, c.three, c.known = "", false, false
	conn.WriteString("RESET")
}

func doSelect(_ *client, conn redcon.Conn, args [][]byte) {
	if string(args[0]) != "0" {
		conn.WriteError("ERR there is one database, 0")
		return
	}
	conn.WriteString("OK")
}

// doHello is HELLO [protocol [AUTH user password] [SETNAME name]].
func doHello(c *client, conn redcon.Conn, args [][]byte) {
	version, name := c.version(), c.name
	if len(args) > 0 {
		var err error
		if version, err = strconv.Atoi(string(args[0])); err != nil || version < 2 || version > 3 {
			conn.WriteError("NOPROTO this server speaks versions 2 and 3 of the protocol")
			return
		}
		args = args[1:]
	}
	for len(args) > 0 {
		switch option := upper(args[0]); {
		case option == "AUTH" && len(args) >= 3:
			if !c.authenticate(conn, string(args[1]), args[2]) {
				return
			}
			args = args[3:]
		case option == "SETNAME" && len(args) >= 2 && len(args[1]) <= maxName:
			name, args = string(args[1]), args[2:]
		default:
			conn.WriteError("ERR HELLO: want 2 or 3, AUTH with a user and a password, SETNAME with a name, or nothing")
			return
		}
	}
	if c.unknown() {
		conn.WriteError("NOAUTH HELLO must be called with the client already authenticated, or with AUTH default and the password")
		return
	}
	c.three, c.name = version == 3, name
	writeMap(conn, 7)
	for _, v := range []any{
		"server", "kvdemo", "version", claimedVersion, "proto", redcon.SimpleInt(version), "id", redcon.SimpleInt(c.id),
		"mode", "standalone", "role", "master", "modules", []any{},
	} {
		conn.WriteAny(v)
	}
}

// claimedVersion is the version of Redis that clients are told, so that a client expects
// that version's commands; only those in commands exist.
const claimedVersion = "7.0.0"

func doClient(c *client, conn redcon.Conn, args [][]byte) {
	switch sub := upper(args[0]); {
	case sub == "ID":
		conn.WriteInt64(c.id)
	case sub == "GETNAME":
		conn.WriteBulkString(c.name)
	case sub == "SETNAME" && len(args) == 2 && len(args[1]) <= maxName:
		c.name = string(args[1])
		conn.WriteString("OK")
	case sub == "SETINFO", sub == "NO-EVICT", sub == "NO-TOUCH":
		conn.WriteString("OK")
	case sub == "INFO", sub == "LIST":
		conn.WriteBulkString(fmt.Sprintf("id=%d addr=%s name=%s db=0 multi=%d watch=%d resp=%d\n", c.id, conn.RemoteAddr(), clean(c.name), len(c.queued), len(c.watched), c.version()))
	default:
		conn.WriteError(fmt.Sprintf("ERR CLIENT '%s': want ID, GETNAME, SETNAME, SETINFO, INFO or LIST", printable(args[0])))
	}
}

// doCommand is COMMAND, with COUNT, and DOCS, which says nothing.
func doCommand(_ *client, conn redcon.Conn, args [][]byte) {
	if len(args) == 0 {
		conn.WriteArray(len(commands))
		for _, name := range slices.Sorted(maps.Keys(commands)) {
			describe(conn, name, commands[name])
		}
		return
	}
	switch upper(args[0]) {
	case "COUNT":
		conn.WriteInt(len(commands))
	case "DOCS":
		writeMap(conn, 0)
	case "LIST":
		conn.WriteArray(0)
	case "INFO":
		conn.WriteArray(len(args) - 1)
		for _, name := range args[1:] {
			if command, ok := commands[upper(name)]; ok {
				describe(conn, upper(name), command)
			} else {
				writeNull(conn)
			}
		}
	default:
		conn.WriteError(fmt.Sprintf("ERR COMMAND '%s': want COUNT, DOCS, INFO or nothing", printable(args[0])))
	}
}

// describe writes name, arity, flags, and where the keys are: first, last, step.
func describe(conn redcon.Conn, name string, c command) {
	arity := c.least + 1
	if c.most != c.least {
		arity = -arity
	}
	first, last, step := 0, 0, 0
	if c.plan != nil {
		first, last, step = 1, 1, 1
		switch name {
		case "MGET", "DEL", "UNLINK", "EXISTS":
			last = -1
		case "MSET":
			last, step = -1, 2
		}
	}
	conn.WriteAny([]any{strings.ToLower(name), redcon.SimpleInt(arity), []any{}, redcon.SimpleInt(first), redcon.SimpleInt(last), redcon.SimpleInt(step)})
}

// doConfig is CONFIG GET, for the settings that tools of Redis ask for at their start.
func doConfig(_ *client, conn redcon.Conn, args [][]byte) {
	if upper(args[0]) != "GET" || len(args) != 2 {
		conn.WriteError("ERR CONFIG: want GET with one name; a node is configured with the flags of kvdemo serve")
		return
	}
	known := map[string]string{"save": "", "appendonly": "yes", "appendfsync": "always", "databases": "1", "maxmemory": "0"}
	name := strings.ToLower(string(args[1]))
	value, ok := known[name]
	if !ok {
		writeMap(conn, 0)
		return
	}
	writeMap(conn, 1)
	conn.WriteBulkString(name)
	conn.WriteBulkString(value)
}

func doInfo(c *client, conn redcon.Conn, _ [][]byte) {
	s := c.server
	var b strings.Builder
	section := func(name string, fields ...[2]string) {
		fmt.Fprintf(&b, "# %s\r\n", name)
		for _, f := range fields {
			fmt.Fprintf(&b, "%s:%s\r\n", f[0], clean(f[1]))
		}
		b.WriteString("\r\n")
	}
	section("Server", [2]string{"redis_version", claimedVersion}, [2]string{"server_name", "kvdemo"}, [2]string{"redis_mode", "standalone"})
	section("Clients", [2]string{"connected_clients", strconv.FormatInt(s.clients.Load(), 10)}, [2]string{"maxclients", strconv.Itoa(maxClients)})
	section("Kvdemo", s.cfg.Backend.Info()...)
	conn.WriteBulkString(b.String())
}

func doTime(_ *client, conn redcon.Conn, _ [][]byte) {
	now := time.Now()
	conn.WriteAny([]int64{now.Unix(), int64(now.Nanosecond() / 1000)})
}

// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package resp

import (
	"io"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weftraft/weft/cmd/kvdemo/internal/kv"
)

// A page of any site, or a server that fetches a URL for a stranger, can send a request
// of HTTP to the port, whose body has lines that are commands. None is carried out.
func TestLinesOfAnotherProtocolAreNotCarriedOut(t *testing.T) {
	for name, request := range map[string]string{
		"post":       "POST / HTTP/1.1\r\nHost: 127.0.0.1:6379\r\nContent-Length: 20\r\n\r\nSET stolen yes\r\n",
		"get":        "GET / HTTP/1.1\r\nHost: 127.0.0.1:6379\r\n\r\nSET stolen yes\r\n",
		"get of 1.0": "GET / HTTP/1.0\r\nUser-Agent: x\r\n\r\nSET stolen yes\r\n",
		"lower case": "post / HTTP/1.1\r\nhost: x\r\n\r\n*3\r\n$3\r\nSET\r\n$6\r\nstolen\r\n$3\r\nyes\r\n",
		"mail":       "EHLO there\r\nSET stolen yes\r\n",
		"quoted":     "\"POST\" / HTTP/1.1\r\nSET stolen yes\r\n",
		"alone":      "POST\nSET stolen yes\n",
	} {
		for _, cut := range []int{len(request), 1, 2, 17} { // as networks cut
			g := newGroups(t, 1)
			w := dialWire(t, listen(t, Config{Backend: g}))
			for rest := request; rest != ""; {
				n := min(cut, len(rest))
				if _, err := io.WriteString(w.Conn, rest[:n]); err != nil {
					break // the server has hung up
				}
				rest = rest[n:]
			}
			_, _ = io.ReadAll(w.r) // until it ends, or is reset
			_, _, err := g.stores[0].Get("stolen")
			require.ErrorIs(t, err, kv.ErrNotFound, "%s, %d bytes at a time", name, cut)
		}
	}
	w := dialWire(t, listen(t, Config{Backend: newGroups(t, 1)}))
	w.send("\r\n  ping\r\nset a 1\r\n")
	w.want("+PONG\r\n+OK\r\n")
	w.send("get\ta\r\n")
	w.want("-ERR refused: Protocol error: a line begins with \"get\\ta\", want a command")
}

// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package tpcc

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// request is what a transaction asks of the leader of another range: to lock rows, and to answer with them; to keep
// an intent; to commit the intent and let go of the locks; or just to let go.
type request struct {
	kind  byte
	txn   uint64
	wants []want // to lock
	puts  []byte // to keep
}

// The kinds of requests, beside intent and commit, which are as in commands.
const (
	lockRows = 'l'
	letGo    = 'g'
)

// The bytes of a request or of an answer in virtual time, beside keys, commands and rows.
const askBytes = 64

// size is the number of bytes that a request has in virtual time.
func (q request) size() int {
	if q.kind == intent {
		return askBytes + len(q.encode())
	}
	return askBytes + keyLen*len(q.wants)
}

// exclusive marks the first byte of a key, which is a table.
const exclusive = 0x80

// encode returns the request's bytes. Those of an intent or a commit are the command.
func (q request) encode() []byte {
	body := q.puts
	for _, w := range q.wants {
		at := len(body)
		if body = append(body, w.key...); w.exclusive {
			body[at] |= exclusive
		}
	}
	return command(q.kind, q.txn, body)
}

var errRequest = errors.New("not a request to this range")

// decodeRequest takes the bytes of a request to a range whose keys mine knows.
func decodeRequest(b []byte, mine func(key string) bool) (q request, err error) {
	if len(b) < commandHead {
		return q, fmt.Errorf("%w: %d bytes", errRequest, len(b))
	}
	q.kind, q.txn, b = b[0], binary.BigEndian.Uint64(b[1:]), b[commandHead:]
	switch {
	case q.kind == lockRows && len(b)%keyLen == 0:
		last := ""
		for ; len(b) > 0; b = b[keyLen:] {
			k := append([]byte{b[0] &^ exclusive}, b[1:keyLen]...)
			w := want{string(k), b[0]&exclusive != 0}
			if w.key <= last || !mine(w.key) { // a key that comes twice would wait for itself
				return q, fmt.Errorf("%w: key %x behind %x", errRequest, w.key, last)
			}
			q.wants, last = append(q.wants, w), w.key
		}
		return q, nil
	case q.kind == intent:
		q.puts = b
		return q, eachPut(b, func(k string, _ []byte) error {
			if !mine(k) {
				return fmt.Errorf("%w: key %x", errRequest, k)
			}
			return nil
		})
	case (q.kind == commit || q.kind == letGo) && len(b) == 0:
		return q, nil
	}
	return q, fmt.Errorf("%w: kind %q with %d bytes", errRequest, q.kind, len(b))
}

// encodeRows returns the bytes of an answer. No bytes stand for a row that is not there.
func encodeRows(rows [][]byte) (b []byte) {
	for _, r := range rows {
		b = append(binary.AppendUvarint(b, uint64(len(r))), r...)
	}
	return b
}

// decodeRows takes an answer with so many rows.
func decodeRows(b []byte, n int) (rows [][]byte, err error) {
	for range n {
		r, rest, ok := cut(b)
		if !ok {
			return nil, fmt.Errorf("%w: %d rows of %d", errRequest, len(rows), n)
		}
		rows, b = append(rows, r), rest
	}
	if len(b) > 0 {
		return nil, fmt.Errorf("%w: %d bytes behind %d rows", errRequest, len(b), n)
	}
	return rows, nil
}

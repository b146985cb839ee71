// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"fmt"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/weftraft/weft/internal/lab"
)

// callTimeout is above etcd's own limit on a request, so that clients get etcd's answer.
const callTimeout = 20 * time.Second

// load is the record of the clients' puts.
type load struct {
	prefix string // of all keys
	size   int
	seed   uint64
	result *lab.Result

	mu   sync.Mutex
	acks map[put]bool // begun; true: acknowledged
}

// put is a call: the client's number, and the number of earlier calls of the client.
type put struct{ client, number int }

func (p put) key(prefix string) string {
	return fmt.Sprintf("%s/%03d/%06d", prefix, p.client, p.number)
}

// value makes the value of a put.
func (l *load) value(p put) []byte {
	value := make([]byte, l.size)
	lab.Value(p.key(l.prefix), l.seed, value)
	return value
}

// run makes clients, each with a connection of its own, put values at a member for a time.
func (l *load) run(ctx context.Context, at *member, clients int, d time.Duration) error {
	l.acks = map[put]bool{}
	conns := make([]*clientv3.Client, clients)
	defer func() {
		for _, c := range conns {
			if c != nil {
				_ = c.Close() // nothing is under way
			}
		}
	}()
	for i := range conns {
		var err error
		if conns[i], err = dial(at.Client); err != nil {
			return err
		}
		if _, err := conns[i].Get(ctx, l.prefix); err != nil { // connects
			return err
		}
	}
	calls := lab.Load{
		Clients: clients, Duration: d, Calls: max(maxBytes/l.size, 1), Least: least, Timeout: callTimeout,
		Do: func(ctx context.Context, c *lab.Call) error {
			p := put{c.Client, c.Number}
			l.note(p, false)
			_, err := conns[c.Client].Put(ctx, p.key(l.prefix), string(l.value(p)))
			if err == nil {
				l.note(p, true)
			}
			return err
		},
	}
	var err error
	l.result, err = calls.Run(ctx)
	return err
}

func (l *load) note(p put, acknowledged bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.acks[p] = acknowledged
}

// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package live

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/weftraft/weft/internal/lab"
)

const (
	clients = 8
	keys    = 8
	// callTimeout is above etcd's own limit on a request, so that clients get etcd's answer.
	callTimeout = 8 * time.Second
	// pause between two calls of a client, so that the check of the history stays a small part of
	// the run.
	pause = 4 * time.Millisecond
	// retreat after an error: every write without an answer makes the check
	// harder.
	retreat = 200 * time.Millisecond
)

func newClient(endpoints ...string) (*clientv3.Client, error) {
	return clientv3.New(clientv3.Config{
		Endpoints:            endpoints,
		DialTimeout:          callTimeout,
		DialKeepAliveTime:    time.Second,
		DialKeepAliveTimeout: time.Second,
		Logger:               zap.NewNop(),
	})
}

func keyName(i int) string { return fmt.Sprintf("key-%d", i) }

// client is a user of the cluster, which makes a call after the end of the previous call.
type client struct {
	number  int
	rng     *rand.Rand
	api     *clientv3.Client
	history *history
	values  values
	calls   int
	known   map[string]string // the last value that the client saw, by key
}

// startLoad starts the clients, and returns a function that stops the clients.
func startLoad(ctx context.Context, c *cluster, h *history, v values, seed uint64) (stop func(), err error) {
	ctx, cancel := context.WithCancel(ctx)
	var group sync.WaitGroup
	stop = func() { cancel(); group.Wait() }
	for i := range clients {
		endpoints := c.endpoints.Load()
		api, err := newClient(*endpoints...)
		if err != nil {
			stop()
			return nil, fmt.Errorf("client %d: %w", i, err)
		}
		user := &client{i, rand.New(rand.NewPCG(seed, uint64(i))), api, h, v, 0, map[string]string{}}
		group.Go(func() {
			defer func() { _ = api.Close() }() // an error of Close has no effect on the run
			for ctx.Err() == nil {
				if now := c.endpoints.Load(); now != endpoints {
					endpoints = now
					api.SetEndpoints(*now...)
				}
				user.step(ctx)
			}
		})
	}
	return stop, nil
}

// step makes a call and records the call.
func (c *client) step(ctx context.Context) {
	o := operation{key: keyName(c.rng.IntN(keys))}
	c.calls++
	value := fmt.Sprintf("%d.%d", c.number, c.calls)
	switch draw := c.rng.IntN(10); {
	case draw < 5:
		o.verb = get
	case draw < 8:
		o.verb, o.value = put, value
	default:
		o.verb, o.old, o.value = swap, c.known[o.key], value
	}
	o.call = c.history.now()
	// Stopping must not cut a call short: its outcome would be unknown.
	callCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), callTimeout)
	err := o.run(callCtx, c.api, c.values)
	cancel()
	o.ret = c.history.now()
	o.answered = err == nil
	c.history.add(o)
	wait := pause
	if err != nil {
		wait = retreat
	} else {
		c.learn(&o)
	}
	_ = lab.Sleep(ctx, wait) // the caller looks at ctx
}

func (c *client) learn(o *operation) {
	if o.wrote() {
		c.known[o.key] = o.value
	} else {
		c.known[o.key] = o.read
	}
}

// run makes the call and fills in its outcome.
func (o *operation) run(ctx context.Context, api clientv3.KV, v values) error {
	switch o.verb {
	case get:
		resp, err := api.Get(ctx, o.key)
		if err != nil {
			return err
		}
		o.revision = resp.Header.Revision
		if len(resp.Kvs) > 0 {
			o.read = v.id(resp.Kvs[0].Value)
		}
	case put:
		resp, err := api.Put(ctx, o.key, v.of(o.value))
		if err != nil {
			return err
		}
		o.revision = resp.Header.Revision
	case swap:
		same := clientv3.Compare(clientv3.Value(o.key), "=", v.of(o.old))
		if o.old == "" {
			same = clientv3.Compare(clientv3.CreateRevision(o.key), "=", 0)
		}
		resp, err := api.Txn(ctx).If(same).Then(clientv3.OpPut(o.key, v.of(o.value))).Else(clientv3.OpGet(o.key)).Commit()
		if err != nil {
			return err
		}
		o.revision, o.swapped = resp.Header.Revision, resp.Succeeded
		if !o.swapped {
			if kvs := resp.Responses[0].GetResponseRange().Kvs; len(kvs) > 0 {
				o.read = v.id(kvs[0].Value)
			}
		}
	}
	return nil
}

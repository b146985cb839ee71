// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// errLost is returned when a member lacks an acknowledged value.
var errLost = errors.New("a member does not have what was acknowledged")

// page is the number of bytes of values in the answer to a read.
const page = 8 << 20

// verify reads all values of the load at every member.
func (l *load) verify(ctx context.Context, c *cluster) error {
	for _, m := range c.members {
		// A linearizable read returns after the member has applied all acknowledged puts. Then
		// serializable reads return the member's own data, without other members.
		err := c.Wait(ctx, fmt.Sprintf("a read at member %d", m.ID), func(ctx context.Context) error {
			_, err := m.api.Get(ctx, l.prefix)
			return err
		})
		if err != nil {
			return err
		}
		if err := l.verifyAt(ctx, m); err != nil {
			return fmt.Errorf("member %d of %s: %w", m.ID, c.side.Name, err)
		}
	}
	return nil
}

func (l *load) verifyAt(ctx context.Context, m *member) error {
	values := map[string][]byte{}
	end := clientv3.GetPrefixRangeEnd(l.prefix + "/")
	for from := l.prefix + "/"; ; {
		r, err := m.api.Get(ctx, from, clientv3.WithRange(end), clientv3.WithSerializable(),
			clientv3.WithLimit(int64(max(page/l.size, 1))))
		if err != nil {
			return err
		}
		for _, kv := range r.Kvs {
			values[string(kv.Key)] = kv.Value
		}
		if !r.More {
			break
		}
		from = string(r.Kvs[len(r.Kvs)-1].Key) + "\x00"
	}
	return l.compare(values)
}

// compare checks a member's data against the puts of the load. A put without an answer may be there
// or not; a key without a put must not be there.
func (l *load) compare(values map[string][]byte) error {
	found := 0
	for p, acknowledged := range l.acks {
		got, ok := values[p.key(l.prefix)]
		if !ok && acknowledged {
			return fmt.Errorf("%w: key %s is not there", errLost, p.key(l.prefix))
		}
		if !ok {
			continue
		}
		found++
		if !bytes.Equal(got, l.value(p)) {
			return fmt.Errorf("%w: key %s has other bytes", errLost, p.key(l.prefix))
		}
	}
	if found != len(values) {
		return fmt.Errorf("%w: %d keys are there that nobody put", errLost, len(values)-found)
	}
	return nil
}

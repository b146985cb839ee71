// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package torture

import (
	"context"
	"crypto/sha256"
	"encoding/binary"

	"github.com/weftraft/weft/cmd/kvdemo/kvpb"
)

const (
	// A value of more than partBytes is written in parts of that size.
	partBytes = 1 << 20
	// smallValue bounds most values.
	smallValue = 32 << 10
)

// size draws the size of a value: most are small, one in 64 is up to 1 MiB, and
// one in 800 as large as may be. More would be all that the nodes do: a state of
// gigabytes is sent to each that lags.
func (w *writer) size() int {
	small := min(smallValue, w.maxValue)
	switch x := w.rng.IntN(800); {
	case x == 0:
		return 8 + w.rng.IntN(w.maxValue)
	case x <= 12:
		return 8 + w.rng.IntN(min(partBytes-8, w.maxValue))
	}
	return 8 + w.rng.IntN(max(1, small>>w.rng.IntN(10)))
}

// put writes a value, each part of a large one at another node.
func (w *writer) put(ctx context.Context, nodes []kvpb.KVClient, key string, value []byte, sum [sha256.Size]byte) outcome {
	node := func() kvpb.KVClient { return nodes[w.rng.IntN(len(nodes))] }
	if len(value) <= partBytes {
		return call(ctx, func(ctx context.Context) error {
			_, err := node().Put(ctx, &kvpb.PutRequest{Key: key, Value: value})
			return err
		})
	}
	upload := make([]byte, 16)
	binary.LittleEndian.PutUint64(upload, w.rng.Uint64())
	binary.LittleEndian.PutUint64(upload[8:], w.rng.Uint64())
	size := uint64(len(value))
	for part := range (len(value) + partBytes - 1) / partBytes {
		data := value[part*partBytes : min(len(value), (part+1)*partBytes)]
		o := call(ctx, func(ctx context.Context) error {
			_, err := node().PutPart(ctx, &kvpb.PutPartRequest{Key: key, Upload: upload, Size: size, Part: uint32(part), Data: data})
			return err
		})
		if o != acknowledged {
			return refused // a value that is not finished is not there
		}
	}
	return call(ctx, func(ctx context.Context) error {
		_, err := node().Finish(ctx, &kvpb.FinishRequest{Key: key, Upload: upload, Size: size, Sha256: sum[:]})
		return err
	})
}

// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/weftraft/weft/cmd/kvdemo/internal/kv"
	"github.com/weftraft/weft/cmd/kvdemo/kvpb"
)

const (
	// partsUnderWay is how many parts of a value are sent at a time, and in
	// memory.
	partsUnderWay = 4
	// chunkTimeout is how long a node may take for the next chunk of a value.
	chunkTimeout = 5 * time.Second
)

// PutFrom sets a key to a value of so many bytes, which are read from r during the
// call. A large value goes in parts; no reader sees the value before the last part.
func (c *Client) PutFrom(ctx context.Context, key string, r io.Reader, size int64) (Written, error) {
	if err := errors.Join(kv.CheckKey(key), kv.CheckValue(int(size))); err != nil {
		return Written{}, err
	}
	if size <= kv.MaxInlineBytes {
		value := make([]byte, size)
		if _, err := io.ReadFull(r, value); err != nil {
			return Written{}, fmt.Errorf("read the value: %w", err)
		}
		return c.Put(ctx, key, value)
	}
	ctx, cancel := c.deadline(ctx)
	defer cancel()
	upload := make([]byte, len(kv.UploadID{}))
	_, _ = rand.Read(upload) // never fails
	sum, err := c.putParts(ctx, key, upload, r, size)
	if err != nil {
		return Written{}, err
	}
	resp, err := write(ctx, c, key, func(ctx context.Context, kv kvpb.KVClient, s *kvpb.Session) (*kvpb.PutResponse, error) {
		return kv.Finish(ctx, &kvpb.FinishRequest{Key: key, Upload: upload, Size: uint64(size), Sha256: sum, Session: s})
	})
	return Written{resp.GetIndex(), resp.GetPosition()}, err
}

// putParts sends all parts and returns the SHA-256 of the value.
func (c *Client) putParts(ctx context.Context, key string, upload []byte, r io.Reader, size int64) ([]byte, error) {
	sum := sha256.New()
	g, ctx := errgroup.WithContext(ctx)
	free := make(chan []byte, partsUnderWay)
	for range partsUnderWay {
		free <- make([]byte, kv.PartBytes)
	}
	var readErr error
	for part, left := uint32(0), size; left > 0; part++ {
		var buf []byte
		select {
		case buf = <-free:
		case <-ctx.Done():
			return nil, errors.Join(g.Wait(), ctx.Err())
		}
		data := buf[:min(left, kv.PartBytes)]
		if _, readErr = io.ReadFull(r, data); readErr != nil {
			break
		}
		left -= int64(len(data))
		sum.Write(data)
		g.Go(func() error {
			defer func() { free <- buf }()
			// Twice does no harm, and nobody sees it: not a write.
			_, err := ask(ctx, c, kvpb.KVClient.PutPart, &kvpb.PutPartRequest{Key: key, Upload: upload, Size: uint64(size), Part: part, Data: data})
			return err
		})
	}
	err := g.Wait()
	if readErr != nil {
		return nil, fmt.Errorf("read the value: %w", readErr)
	}
	return sum.Sum(nil), err
}

// GetTo writes the value of a key to w, in order and as it arrives, and returns
// what came first: of the value, all but the value. If a node fails on the way another goes on
// where it stopped. After an error w may have a part of the value.
func (c *Client) GetTo(ctx context.Context, req *kvpb.GetRequest, w io.Writer) (head *kvpb.ReadChunk, err error) {
	if err := kv.CheckKey(req.GetKey()); err != nil {
		return nil, err
	}
	ctx, cancel := c.deadline(ctx)
	defer cancel()
	in := incoming{w: w, hash: sha256.New()}
	err = c.do(context.WithValue(ctx, wholeTime{}, true), false, func(ctx context.Context, kv kvpb.KVClient) error {
		return in.read(ctx, kv, &kvpb.ReadRequest{
			Key: req.GetKey(), Local: req.GetLocal(), Policy: req.GetPolicy(), Revision: req.GetRevision(), Offset: in.written,
		})
	})
	return in.head, errors.Join(err, in.failed)
}

// incoming is a value on its way.
type incoming struct {
	w       io.Writer
	hash    hash.Hash // of what was written
	written uint64
	head    *kvpb.ReadChunk // the first, which announces the value
	failed  error           // what no other node can help
}

// read takes the chunks that one node sends. It returns nil if no other node needs
// to be asked.
func (in *incoming) read(ctx context.Context, client kvpb.KVClient, req *kvpb.ReadRequest) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	silent := time.AfterFunc(chunkTimeout, func() { cancel(context.DeadlineExceeded) })
	defer silent.Stop()
	stream, err := client.Read(ctx, req)
	if err != nil {
		return err
	}
	for first := true; ; first = false {
		chunk, err := stream.Recv()
		switch {
		case errors.Is(err, io.EOF):
			in.failed = in.check()
			return nil
		case err != nil:
			return err
		}
		silent.Reset(chunkTimeout)
		if first && !in.same(chunk) {
			in.failed = errors.New("the value was changed while it was read: read it again")
			return nil
		}
		n, err := in.w.Write(chunk.GetData())
		in.written += uint64(n)
		in.hash.Write(chunk.GetData())
		if err != nil {
			in.failed = fmt.Errorf("write the value: %w", err)
			return nil
		}
	}
}

// check compares the length and the digest of the bytes that have arrived with the announced ones.
func (in *incoming) check() error {
	if in.written != in.head.GetSize() {
		return fmt.Errorf("%w: the value ended after %d of %d bytes", kv.ErrDamaged, in.written, in.head.GetSize())
	}
	if sum := in.hash.Sum(nil); len(in.head.GetSha256()) > 0 && !bytes.Equal(sum, in.head.GetSha256()) {
		return fmt.Errorf("%w: the SHA-256 of the value is %x, want %x", kv.ErrDamaged, sum, in.head.GetSha256())
	}
	return nil
}

// same reports whether a node has the value of which a part was read before. A
// value without a sum arrives whole or not at all.
func (in *incoming) same(chunk *kvpb.ReadChunk) bool {
	if in.written > 0 {
		return in.head.GetSize() == chunk.GetSize() && bytes.Equal(in.head.GetSha256(), chunk.GetSha256())
	}
	in.head = chunk
	return true
}

// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package weft

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/weftraft/weft/internal/chunks"
	"github.com/weftraft/weft/internal/invalid"
)

// Snapshot writes the state of the group, as of one place in the log, while commands go
// on. The state has everything that was acknowledged before the call. What is written
// can be checked and restored by [Restore]. Any member can be asked; an error of w or of the
// state machine leaves w with a part that Restore refuses.
func (g *Group) Snapshot(ctx context.Context, w io.Writer) (SnapshotInfo, error) {
	if err := g.member(ctx); err != nil {
		return SnapshotInfo{}, refused("snapshot", err)
	}
	if invalid.IsNil(w) {
		return SnapshotInfo{}, refused("snapshot", invalid.Errorf("the writer is nil"))
	}
	ctx, end, err := g.begin(ctx)
	if err != nil {
		return SnapshotInfo{}, refused("snapshot", err)
	}
	defer end()
	if _, err := g.host.Read(ctx); err != nil {
		return SnapshotInfo{}, fmt.Errorf("group %d: snapshot: %w", g.id, err)
	}
	info, err := g.writeSnapshot(ctx, w)
	if err != nil {
		return info, refused("snapshot", fmt.Errorf("group %d, index %d: %w", g.id, info.Index, err))
	}
	return info, nil
}

func (g *Group) writeSnapshot(ctx context.Context, w io.Writer) (info SnapshotInfo, err error) {
	index, body, err := g.openView(ctx)
	if err != nil {
		return info, err
	}
	defer func() { _ = body.Close() }() // never fails; a view that is read no more is closed
	if info, err = newSnapshotInfo(g.node.options.Cluster, g.id, index); err != nil {
		return info, err
	}
	return info, copySnapshot(ctx, w, info, body)
}

// openView opens a view of the state in a goroutine, and returns the view's index and body. The
// goroutine is left behind, as a use of the state machine, if the state machine does not return until
// ctx has ended and endPatience is over.
func (g *Group) openView(ctx context.Context) (uint64, *io.PipeReader, error) {
	body, to := io.Pipe()
	opened, over := make(chan uint64, 1), make(chan error, 2)
	end := func(err error) {
		_ = to.CloseWithError(err) // never fails, and the first counts
		over <- err
	}
	g.uses.Add(1) // beside the caller's use
	go func() {
		defer g.uses.Done()
		end(g.copyView(to, opened))
	}()
	context.AfterFunc(ctx, func() {
		time.AfterFunc(endPatience, func() {
			end(fmt.Errorf("%w: the state machine, in Snapshot or in Read of its view: %w", ErrNotEnded, context.Cause(ctx)))
		})
	})
	select {
	case index := <-opened:
		return index, body, nil
	case err := <-over:
		return 0, nil, err
	}
}

// copyView opens a view and copies it to a pipe.
func (g *Group) copyView(to *io.PipeWriter, opened chan<- uint64) (err error) {
	view, err := g.user.Snapshot()
	if err != nil {
		return fmt.Errorf("the state machine's Snapshot: %w", err)
	}
	if invalid.IsNil(view) {
		return errors.New("the state machine's Snapshot returned neither a view nor an error")
	}
	defer func() { err = errors.Join(err, view.Close()) }()
	opened <- view.Meta().Index
	buf := make([]byte, snapshotChunk)
	for ended := false; !ended; {
		var n int
		if n, ended, err = chunks.Fill(view, buf); err != nil {
			return err
		}
		if _, err := to.Write(buf[:n]); err != nil {
			return err // nobody reads
		}
	}
	return nil
}

func newSnapshotInfo(cluster, group, index uint64) (SnapshotInfo, error) {
	id := make([]byte, snapshotIDBytes)
	_, err := rand.Read(id)
	return SnapshotInfo{Format: snapshotFormat, Cluster: cluster, Group: group, Index: index, ID: hex.EncodeToString(id)}, err
}

// copySnapshot writes a header and the bytes of a view.
func copySnapshot(ctx context.Context, w io.Writer, info SnapshotInfo, view io.Reader) error {
	out := snapshotWriter{w: w}
	if err := out.header(info); err != nil {
		return fmt.Errorf("write the header: %w", err)
	}
	buf := make([]byte, snapshotChunk)
	for {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		n, ended, err := chunks.Fill(view, buf)
		if err != nil {
			return fmt.Errorf("read the state: %w", err)
		}
		if n > 0 {
			if err := out.chunk(buf[:n]); err != nil {
				return fmt.Errorf("write the state: %w", err)
			}
		}
		if ended {
			if err := out.chunk(nil); err != nil {
				return fmt.Errorf("write the end: %w", err)
			}
			return nil
		}
	}
}

// begin enters a use of the state machine that a close of the group waits for, and ends.
func (g *Group) begin(ctx context.Context) (context.Context, func(), error) {
	if err := g.host.Err(); err != nil {
		return nil, nil, errors.Join(ErrStopped, err)
	}
	return g.use(ctx)
}

// use is begin for a group whose host may not be open yet.
func (g *Group) use(ctx context.Context) (context.Context, func(), error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closing {
		return nil, nil, ErrStopped
	}
	ctx, cancel := context.WithCancelCause(ctx)
	unhook := context.AfterFunc(g.ending, func() { cancel(ErrStopped) })
	g.uses.Add(1)
	return ctx, func() {
		unhook()
		cancel(nil)
		g.uses.Done()
	}, nil
}

// awaitUses waits for the ends of all uses.
func (g *Group) awaitUses(ctx context.Context) error {
	g.mu.Lock()
	g.closing = true
	g.mu.Unlock()
	g.end()
	done := make(chan struct{})
	go func() { g.uses.Wait(); close(done) }()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
	}
	select { // a use that looks at its own context ends now
	case <-done:
		return nil
	case <-time.After(endPatience):
		return fmt.Errorf("%w: Snapshot, which reads the state machine's view or writes: %w", ErrNotEnded, context.Cause(ctx))
	}
}

// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package state

import (
	"errors"
	"fmt"
	"io"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/weftraft/weft/rawnode"
	"github.com/weftraft/weft/rawnode/state/internal/frames"
)

// snapshot is an open checkpoint. Its file may be removed meanwhile.
type snapshot struct {
	meta rawnode.SnapshotMeta
	io.ReadCloser
}

// Meta implements [rawnode.Snapshot].
func (s *snapshot) Meta() rawnode.SnapshotMeta { return s.meta }

// Snapshot implements [rawnode.StateMachine]. It makes a checkpoint, unless the last one
// is of the present state.
func (m *Memory[M]) Snapshot() (rawnode.Snapshot, error) {
	m.files.Lock()
	defer m.files.Unlock()
	if err := m.checkpoint(); err != nil {
		return nil, err
	}
	if m.last.index == 0 {
		return m.emptySnapshot(), nil
	}
	f, err := m.opts.FS.Open(m.path(m.last.name), vfs.SequentialReadsOption)
	if err != nil {
		return nil, fmt.Errorf("open checkpoint: %w", err)
	}
	meta, err := m.readHeader(&frames.Reader{From: f}) // the body stands behind it
	if err != nil {
		return nil, fmt.Errorf("checkpoint %s: %w", m.last.name, errors.Join(err, f.Close()))
	}
	return &snapshot{meta, f}, nil
}

// SnapshotBytes returns the size of the last checkpoint: see [rawnode.StateMachine].
func (m *Memory[M]) SnapshotBytes() int64 { return int64(m.lastBytes()) }

// emptySnapshot is the snapshot of a state that nothing was applied to.
func (m *Memory[M]) emptySnapshot() rawnode.Snapshot {
	r, w := io.Pipe()
	machine := m.make()
	go func() {
		f := &frames.Writer{To: w, Number: 1}
		_ = w.CloseWithError(errors.Join(machine.Write(f), f.End())) // never fails
	}()
	return &snapshot{rawnode.SnapshotMeta{}, r}
}

// Restore implements [rawnode.StateMachine]. The state that comes is written to a file
// and read into a new machine, before it takes the place of the old one.
func (m *Memory[M]) Restore(meta rawnode.SnapshotMeta, body io.Reader) error {
	m.files.Lock()
	defer m.files.Unlock()
	if err := m.ended(); err != nil {
		return err
	}
	if meta.Index == 0 {
		return fmt.Errorf("%w: a snapshot of index 0, want 1 or more", ErrInvalid)
	}
	if len(meta.Host) > MaxHostBytes {
		return fmt.Errorf("%w: %d bytes of the host, the bound is %d", ErrInvalid, len(meta.Host), MaxHostBytes)
	}
	c, temp, err := m.writeTemporary(meta, func(w *frames.Writer) error { return copyBody(w, body) }, func() {})
	if err != nil {
		return err
	}
	s, err := m.read(checkpoint{index: c.index, name: tempPrefix + c.name})
	if err != nil {
		return errors.Join(err, m.opts.FS.Remove(temp))
	}
	return m.replace(c, temp, s)
}

// copyBody copies the frames of a snapshot, up to the end of its source, and checks
// each.
func copyBody(w *frames.Writer, body io.Reader) error {
	r := &frames.Reader{From: body, Number: 1}
	for {
		if err := r.Next(); err != nil {
			return fmt.Errorf("read the snapshot: %w", err)
		}
		switch r.Kind {
		case frames.Session, frames.Piece:
		case frames.End:
			end := r.Data
			if err := r.AtEnd(); err != nil {
				return fmt.Errorf("read the snapshot: %w", err)
			}
			return w.Frame(frames.End, end)
		default:
			return fmt.Errorf("read the snapshot: %w: frame %d is of kind %q", ErrDamaged, r.Number-1, r.Kind)
		}
		if err := w.Frame(r.Kind, r.Data); err != nil {
			return err
		}
	}
}

// replace puts a restored state into force.
func (m *Memory[M]) replace(c checkpoint, temp string, s contents[M]) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.ended(); err != nil {
		return errors.Join(err, m.opts.FS.Remove(temp))
	}
	if err := m.install(c, temp); err != nil {
		return err
	}
	m.put(s)
	return nil
}

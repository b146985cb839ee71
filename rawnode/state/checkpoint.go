// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package state

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/weftraft/weft/internal/dirlock"
	"github.com/weftraft/weft/rawnode"
	"github.com/weftraft/weft/rawnode/session"
	"github.com/weftraft/weft/rawnode/state/internal/envelope"
	"github.com/weftraft/weft/rawnode/state/internal/frames"
)

// checkpoint is a file of the directory; the zero value is that of the empty state,
// which has none.
type checkpoint struct {
	index uint64
	name  string
	bytes uint64
}

const (
	filePrefix = "checkpoint-"
	tempPrefix = "temporary-"
)

func (m *Memory[M]) path(name string) string { return m.opts.FS.PathJoin(m.opts.Dir, name) }

func (m *Memory[M]) lastBytes() uint64 { return atomic.LoadUint64(&m.last.bytes) }

// newest finds the last checkpoint. An older one beside it is what a crash left.
func (m *Memory[M]) newest() (c checkpoint, err error) {
	names, err := m.opts.FS.List(m.opts.Dir)
	if err != nil {
		return c, fmt.Errorf("list state directory: %w", err)
	}
	for _, name := range names {
		rest, ok := strings.CutPrefix(name, filePrefix)
		if !ok {
			continue
		}
		var index uint64
		if _, err := fmt.Sscanf(rest, "%020d", &index); err != nil || fileName(index) != name {
			return c, fmt.Errorf("%w: %s is no name of a checkpoint; move the file elsewhere", ErrDamaged, m.path(name))
		}
		if index > c.index {
			c = checkpoint{index: index, name: name}
		}
	}
	if c.index > 0 {
		info, err := m.opts.FS.Stat(m.path(c.name))
		if err != nil {
			return c, fmt.Errorf("look at checkpoint: %w", err)
		}
		c.bytes = uint64(info.Size())
	}
	return c, nil
}

func fileName(index uint64) string { return fmt.Sprintf("%s%020d", filePrefix, index) }

// tidy removes all files but the last checkpoint's. What cannot be removed, as it is
// open still, is tried again later.
func (m *Memory[M]) tidy() {
	names, err := m.opts.FS.List(m.opts.Dir)
	if err != nil {
		m.opts.Logf("list state directory: %v", err)
		return
	}
	for _, name := range names {
		ours := strings.HasPrefix(name, filePrefix) || strings.HasPrefix(name, tempPrefix)
		if ours && name != m.last.name {
			if err := m.opts.FS.Remove(m.path(name)); err != nil {
				m.opts.Logf("remove %s: %v", m.path(name), err)
			}
		}
	}
}

// read reads a checkpoint into a new machine.
func (m *Memory[M]) read(c checkpoint) (s contents[M], err error) {
	if c.index == 0 {
		s.machine = m.make()
		return s, m.loadSessions(&s, nil)
	}
	f, err := m.opts.FS.Open(m.path(c.name), vfs.SequentialReadsOption)
	if err != nil {
		return s, fmt.Errorf("open checkpoint: %w", err)
	}
	defer func() {
		if err = errors.Join(err, f.Close()); err != nil {
			err = fmt.Errorf("checkpoint %s: %w", m.path(c.name), err)
		}
	}()
	r := &frames.Reader{From: f}
	meta, err := m.readHeader(r)
	if err != nil {
		return s, err
	}
	if meta.Index != c.index {
		return s, fmt.Errorf("%w: it is of index %d", ErrDamaged, meta.Index)
	}
	return m.readBody(r, meta)
}

// readHeader reads the first frame of a checkpoint.
func (m *Memory[M]) readHeader(r *frames.Reader) (meta rawnode.SnapshotMeta, err error) {
	if err := r.Next(); err != nil {
		return meta, err
	}
	b := r.Data
	if r.Kind != frames.Header || len(b) < 9 {
		return meta, fmt.Errorf("%w: it begins with a frame of kind %q, want a header", ErrDamaged, r.Kind)
	}
	if b[0] != frames.Version {
		return meta, fmt.Errorf("%w: %d, this program reads %d: run the program that wrote it", ErrVersion, b[0], frames.Version)
	}
	meta.Index = binary.LittleEndian.Uint64(b[1:])
	identity, b, ok := cutBytes(b[9:])
	if !ok {
		return meta, fmt.Errorf("%w: its header is short", ErrDamaged)
	}
	if string(identity) != m.opts.Identity {
		return meta, fmt.Errorf("%w: of %q, this is %q; give the directory of this state", ErrIdentity, identity, m.opts.Identity)
	}
	// nil and empty are different to nobody, but a host that has written nothing gets nil.
	if len(b) > 0 {
		meta.Host = slices.Clone(b)
	}
	return meta, nil
}

// encodeHeader returns what readHeader reads.
func encodeHeader(meta rawnode.SnapshotMeta, identity string) []byte {
	b := binary.LittleEndian.AppendUint64([]byte{frames.Version}, meta.Index)
	b = binary.AppendUvarint(b, uint64(len(identity)))
	return append(append(b, identity...), meta.Host...)
}

// cutBytes cuts off bytes that stand behind their length.
func cutBytes(b []byte) (value, rest []byte, ok bool) {
	n, head := binary.Uvarint(b)
	if head <= 0 || n > uint64(len(b)-head) {
		return nil, nil, false
	}
	return b[head:][:n], b[head:][n:], true
}

// readBody reads the rest into a new machine.
func (m *Memory[M]) readBody(r *frames.Reader, meta rawnode.SnapshotMeta) (s contents[M], err error) {
	rows := map[session.ID][]byte{}
	for {
		if err := r.Next(); err != nil {
			return s, err
		}
		if r.Kind != frames.Session {
			break
		}
		id, row, ok := envelope.ParseRow(r.Data)
		if !ok {
			return s, fmt.Errorf("%w: frame %d is no row of a session", ErrDamaged, r.Number-1)
		}
		rows[id] = row
	}
	s.machine, s.applied, s.host = m.make(), meta.Index, meta.Host
	if err := s.machine.Read(r); err != nil {
		if r.Err != nil {
			return s, r.Err // which the machine may have wrapped or not
		}
		return s, fmt.Errorf("the machine does not read what it has written: %w", err)
	}
	if err := r.AtEnd(); err != nil {
		return s, err
	}
	return s, m.loadSessions(&s, rows)
}

// loadSessions makes the table of sessions, if there is to be one.
func (m *Memory[M]) loadSessions(s *contents[M], rows map[session.ID][]byte) (err error) {
	if m.opts.Sessions == nil {
		if len(rows) > 0 {
			err = fmt.Errorf("%w: Options.Sessions is nil, the state has %d rows of sessions: set the limits that all replicas have", ErrInvalid, len(rows))
		}
		return err
	}
	s.sessions, err = envelope.Load(*m.opts.Sessions, envelope.Rows(rows))
	return err
}

// inBackground begins a checkpoint, unless one is under way.
func (m *Memory[M]) inBackground() {
	if m.opts.Inline {
		m.report(m.Checkpoint())
		return
	}
	m.begun.Lock()
	defer m.begun.Unlock()
	if m.closed.Load() || m.busy.Swap(true) {
		return
	}
	m.background.Go(func() {
		defer m.busy.Store(false)
		m.report(m.Checkpoint())
	})
}

// report tells of a checkpoint that nobody asked for. The log is kept meanwhile, and
// the next one is due after as many commands again.
func (m *Memory[M]) report(err error) {
	if err != nil && m.ended() == nil {
		m.opts.Logf("checkpoint of %s: %v", m.opts.Dir, err)
		m.mu.Lock()
		m.since = 0
		m.mu.Unlock()
	}
}

// Checkpoint makes the present state durable, if it is not. An error leaves the last
// checkpoint as it was.
func (m *Memory[M]) Checkpoint() error {
	m.files.Lock()
	defer m.files.Unlock()
	return m.checkpoint()
}

// checkpoint is Checkpoint for a caller that holds files.
func (m *Memory[M]) checkpoint() error {
	if err := m.ended(); err != nil {
		return err
	}
	if m.Applied() == m.last.index {
		return nil
	}
	defer m.watch()()
	s, release := m.setAside()
	err := m.save(rawnode.SnapshotMeta{Index: s.applied, Host: s.host}, func(w *frames.Writer) error {
		for _, row := range s.rows {
			if err := w.Frame(frames.Session, row); err != nil {
				return err
			}
		}
		letGo, _ := m.alone(context.Background()) // which never ends
		err := s.machine.Write(w)
		letGo()
		if err != nil {
			return fmt.Errorf("the machine writes: %w", err)
		}
		return w.End()
	}, release)
	if err != nil {
		return err
	}
	m.mu.Lock()
	m.since = max(m.since-s.cost, 0)
	m.mu.Unlock()
	return nil
}

// slowAfter is the time after which a checkpoint is logged.
const slowAfter = 10 * time.Second

// watch logs a checkpoint that takes long, until done is called.
func (m *Memory[M]) watch() (done func()) {
	begun := time.Now()
	timer := time.AfterFunc(slowAfter, func() {
		m.opts.Logf("the checkpoint of %s has run for %v, and the log grows meanwhile: does the disk answer?", m.opts.Dir, slowAfter)
	})
	return func() {
		if !timer.Stop() {
			m.opts.Logf("the checkpoint of %s took %v", m.opts.Dir, time.Since(begun).Round(time.Second))
		}
	}
}

// aside is a state as it was at one index.
type aside struct {
	machine Machine
	rows    [][]byte // of sessions
	applied uint64
	host    []byte
	cost    int64 // of commands since the last checkpoint
}

// setAside returns the present state, which stays as it is until release is called: a copy, if the
// machine is a [Forker], and otherwise the machine itself, while commands wait.
func (m *Memory[M]) setAside() (s aside, release func()) {
	take, letGo := m.mu.RLock, m.mu.RUnlock
	if m.forks {
		take, letGo = m.mu.Lock, m.mu.Unlock // Fork may change what readers look at
	}
	take()
	s = aside{machine: m.machine, rows: m.rows(), applied: m.applied, host: m.host, cost: m.since}
	if f, forks := s.machine.(Forker); forks && m.forks {
		s.machine = f.Fork()
		letGo()
		return s, func() {}
	}
	return s, letGo
}

// alone waits until neither Write nor Digest reads a machine that is no [Forker], and keeps others
// waiting until letGo is called. The error is the cause of ctx's end.
func (m *Memory[M]) alone(ctx context.Context) (letGo func(), err error) {
	if m.forks {
		return func() {}, nil // each reads a copy of its own
	}
	select {
	case m.whole <- struct{}{}:
		return func() { <-m.whole }, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// rows encodes the table of sessions.
func (m *Memory[M]) rows() (rows [][]byte) {
	if m.sessions == nil {
		return nil
	}
	for id, row := range m.sessions.All() {
		rows = append(rows, envelope.EncodeRow(id, row))
	}
	return rows
}

// save writes a checkpoint and puts it in the place of the last. body is called once,
// and afterwards written, before the file is synced.
func (m *Memory[M]) save(meta rawnode.SnapshotMeta, body func(*frames.Writer) error, written func()) (err error) {
	c, temp, err := m.writeTemporary(meta, body, written)
	if err != nil {
		return err
	}
	return m.install(c, temp)
}

// writeTemporary writes a checkpoint under a name that nobody looks for, durably.
func (m *Memory[M]) writeTemporary(meta rawnode.SnapshotMeta, body func(*frames.Writer) error, written func()) (c checkpoint, temp string, err error) {
	if err := m.keepLimits(); err != nil {
		written()
		return c, temp, err
	}
	fs := m.opts.FS
	c = checkpoint{index: meta.Index, name: fileName(meta.Index)}
	temp = m.path(tempPrefix + c.name)
	f, err := fs.Create(temp, vfs.WriteCategoryUnspecified)
	if err != nil {
		written()
		return c, temp, fmt.Errorf("make checkpoint: %w", err)
	}
	counted := &counter{to: f}
	w := &frames.Writer{To: counted, Check: m.ended}
	err = w.Frame(frames.Header, encodeHeader(meta, m.opts.Identity))
	if err == nil {
		err = body(w)
	}
	written()
	if err == nil {
		err = w.Err // a machine may have dropped it
	}
	if err == nil {
		err = f.Sync()
	}
	c.bytes = counted.n
	if err = errors.Join(err, f.Close()); err != nil {
		return c, temp, fmt.Errorf("write checkpoint %s: %w", temp, errors.Join(err, fs.Remove(temp)))
	}
	return c, temp, nil
}

// install puts a written checkpoint in the place of the last.
func (m *Memory[M]) install(c checkpoint, temp string) error {
	fs := m.opts.FS
	if err := fs.Rename(temp, m.path(c.name)); err != nil {
		return fmt.Errorf("rename checkpoint: %w", errors.Join(err, fs.Remove(temp)))
	}
	if err := dirlock.Sync(fs, m.opts.Dir); err != nil {
		if c.name == m.last.name {
			return err // the last checkpoint was under this name: there is no other
		}
		return errors.Join(err, fs.Remove(m.path(c.name))) // or a start may find it beside later ones
	}
	if c.index < m.last.index {
		if err := m.forgetLater(c); err != nil {
			return err
		}
	}
	m.last.index, m.last.name = c.index, c.name
	atomic.StoreUint64(&m.last.bytes, c.bytes)
	m.durable.Store(c.index)
	m.tidy()
	return nil
}

// forgetLater removes the last checkpoint, durably, for an earlier one beside it, to which the state goes back: of two a
// start takes the later.
func (m *Memory[M]) forgetLater(c checkpoint) error {
	fs := m.opts.FS
	if err := fs.Remove(m.path(m.last.name)); err != nil {
		return fmt.Errorf("remove the later checkpoint: %w", errors.Join(err, fs.Remove(m.path(c.name))))
	}
	m.last.index, m.last.name = 0, "" // whatever the disk makes of it, a further checkpoint of the old state is written anew
	m.durable.Store(c.index)          // of the old state nothing more is certain
	return dirlock.Sync(fs, m.opts.Dir)
}

// counter counts bytes.
type counter struct {
	to io.Writer
	n  uint64
}

// Write implements io.Writer.
func (c *counter) Write(b []byte) (int, error) {
	n, err := c.to.Write(b)
	c.n += uint64(n)
	return n, err
}

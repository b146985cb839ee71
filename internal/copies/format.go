// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package copies

import (
	"bufio"
	"context"
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"

	"github.com/weftraft/weft/internal/files"
)

// A snapshot in a file:
//
//	header  one line of JSON: Info
//	sum     4 bytes
//	chunk   length, 4 bytes, 1 to maxChunk; data; sum
//	...
//	end     a length of 0; sum
//
// Numbers are big-endian. Each sum is the CRC-32C of everything in front of it but for the
// sums, so that a chunk that is missing, doubled or in another place is found, as well as a
// damaged one; a file without its end is cut off.
const (
	// ChunkBytes is the size of chunks as written.
	ChunkBytes = 256 << 10

	format    = 1
	maxChunk  = 16 << 20 // as read
	maxHeader = 4 << 10
)

// Info describes a snapshot: see SnapshotInfo of package weft.
type Info struct {
	Format  int    `json:"weft_snapshot"`
	Cluster uint64 `json:"cluster"`
	Group   uint64 `json:"group"`
	Index   uint64 `json:"index"`
	ID      string `json:"id"`
}

// ErrSnapshot is weft.ErrSnapshot.
var ErrSnapshot = errors.New("weft: not a whole snapshot")

// check returns what is wrong with a header.
func (i Info) check() error {
	if i.Format != format {
		return fmt.Errorf("it has format %d, this version reads %d: use the version that wrote it", i.Format, format)
	}
	if id, err := hex.DecodeString(i.ID); err != nil || len(id) != idBytes {
		return fmt.Errorf("its id is %q, want %d hexadecimal digits", i.ID, 2*idBytes)
	}
	if i.Cluster == 0 || i.Group == 0 || i.Index == 0 {
		return fmt.Errorf("it is of cluster %d, group %d, index %d: want 1 or more of each", i.Cluster, i.Group, i.Index)
	}
	return nil
}

const idBytes = 16

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// writer writes a snapshot.
type writer struct {
	w   io.Writer
	sum uint32
}

// put writes b, which counts for the sums.
func (s *writer) put(b []byte) error {
	s.sum = crc32.Update(s.sum, castagnoli, b)
	_, err := s.w.Write(b)
	return err
}

// seal writes the sum.
func (s *writer) seal() error {
	_, err := s.w.Write(binary.BigEndian.AppendUint32(nil, s.sum))
	return err
}

func (s *writer) header(i Info) error {
	line, err := json.Marshal(i)
	if err != nil {
		return err
	}
	if err := s.put(append(line, '\n')); err != nil {
		return err
	}
	return s.seal()
}

// chunk writes a chunk; one without data is the end.
func (s *writer) chunk(data []byte) error {
	if err := s.put(binary.BigEndian.AppendUint32(nil, uint32(len(data)))); err != nil {
		return err
	}
	if err := s.put(data); err != nil {
		return err
	}
	return s.seal()
}

// reader reads a snapshot: the header at once, and then, as an io.Reader, the state.
type reader struct {
	r     *bufio.Reader
	info  Info
	sum   uint32
	data  []byte // what is left of a chunk
	ended error  // io.EOF behind the end, or what is wrong
}

func newReader(r io.Reader) (*reader, error) {
	s := &reader{r: bufio.NewReaderSize(r, maxHeader)}
	line, err := s.r.ReadSlice('\n')
	if err != nil || len(line) < 2 || line[0] != '{' {
		return nil, fmt.Errorf("%w: it does not begin with a line of JSON of at most %d bytes: %w", ErrSnapshot, maxHeader, unexpected(err))
	}
	if err := json.Unmarshal(line, &s.info); err != nil {
		return nil, fmt.Errorf("%w: its header: %w", ErrSnapshot, err)
	}
	s.sum = crc32.Checksum(line, castagnoli)
	if err := s.sealed(); err != nil {
		return nil, fmt.Errorf("%w: its header: %w", ErrSnapshot, err)
	}
	if err := s.info.check(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrSnapshot, err)
	}
	return s, nil
}

// unexpected returns err, for an end that should not be there.
func unexpected(err error) error {
	if err == nil || errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// take reads n bytes, which count for the sums.
func (s *reader) take(n int) ([]byte, error) {
	b := make([]byte, n)
	if _, err := io.ReadFull(s.r, b); err != nil {
		return nil, unexpected(err)
	}
	s.sum = crc32.Update(s.sum, castagnoli, b)
	return b, nil
}

// sealed reads a sum and compares.
func (s *reader) sealed() error {
	var b [4]byte
	if _, err := io.ReadFull(s.r, b[:]); err != nil {
		return unexpected(err)
	}
	if got := binary.BigEndian.Uint32(b[:]); got != s.sum {
		return fmt.Errorf("its checksum is %08x, that of the bytes is %08x", got, s.sum)
	}
	return nil
}

// Read implements io.Reader. It returns io.EOF behind the end only, and no byte that was not
// compared with a sum.
func (s *reader) Read(p []byte) (int, error) {
	for len(s.data) == 0 && s.ended == nil {
		s.ended = s.next()
	}
	if len(s.data) == 0 {
		return 0, s.ended
	}
	n := copy(p, s.data)
	s.data = s.data[n:]
	return n, nil
}

// next reads a chunk.
func (s *reader) next() error {
	bad := func(err error) error { return fmt.Errorf("%w: it is damaged or cut off: %w", ErrSnapshot, err) }
	length, err := s.take(4)
	if err != nil {
		return bad(err)
	}
	n := binary.BigEndian.Uint32(length)
	if n > maxChunk {
		return bad(fmt.Errorf("a chunk of %d bytes, want at most %d", n, maxChunk))
	}
	data, err := s.take(int(n))
	if err != nil {
		return bad(err)
	}
	if err := s.sealed(); err != nil {
		return bad(err)
	}
	s.data = data
	if n == 0 {
		return io.EOF
	}
	return nil
}

// NewInfo returns the description of a new snapshot.
func NewInfo(cluster, group, index uint64) (Info, error) {
	id := make([]byte, idBytes)
	_, err := rand.Read(id)
	return Info{Format: format, Cluster: cluster, Group: group, Index: index, ID: hex.EncodeToString(id)}, err
}

// Write writes a header and the bytes of a view.
func Write(ctx context.Context, w io.Writer, info Info, view io.Reader) error {
	out := writer{w: w}
	if err := out.header(info); err != nil {
		return fmt.Errorf("write the header: %w", err)
	}
	buf := make([]byte, ChunkBytes)
	for {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		n, ended, err := files.Fill(view, buf)
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

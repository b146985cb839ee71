// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package fetch

import (
	"fmt"

	"github.com/weftraft/weft/internal/wire"
)

// Stream is a source's account of the chunks of one body: which may be sent, and which are kept in
// case that they are asked for again.
type Stream struct {
	kept  [][]byte // chunks base to base+len(kept)
	base  uint64   // Invariant: base <= sends <= base+len(kept) <= base+Window.
	sends uint64   // the chunk to be sent next
	until uint64
	whole bool // the last kept chunk is the last of the body
}

// Want takes what the receiver asks for. The error says that the stream cannot go on.
func (s *Stream) Want(f wire.Fetch) error {
	end := s.base + uint64(len(s.kept))
	switch {
	case f.Number > end:
		return fmt.Errorf("chunk %d is not there, but the chunks from %d to %d", f.Number, s.base, end)
	case f.Number < s.base && f.Step == wire.FetchAgain:
		return nil // it comes late, or twice: the receiver has taken more since
	}
	if f.Number > s.base {
		n := f.Number - s.base
		clear(s.kept[:n])
		s.kept, s.base = s.kept[n:], f.Number
	}
	s.sends = max(s.sends, s.base)
	if f.Step == wire.FetchAgain {
		s.sends = s.base
	}
	s.until = max(s.until, min(f.Until, s.base+Window))
	return nil
}

// Span returns the first chunk that was not taken, and the first that is not wanted yet.
func (s *Stream) Span() (base, until uint64) { return s.base, s.until }

// Whole returns the number of chunks, once the last has been read.
func (s *Stream) Whole() (chunks uint64, ok bool) { return s.base + uint64(len(s.kept)), s.whole }

// Next returns the number of the chunk that may be sent now. If reads is true, the chunk is to be
// read first, and goes to Read.
func (s *Stream) Next() (number uint64, reads, ok bool) {
	end := s.base + uint64(len(s.kept))
	reads = s.sends == end
	return s.sends, reads, s.sends < s.until && (!reads || !s.whole && len(s.kept) < Window)
}

// Read takes the chunk that was read, for Take.
func (s *Stream) Read(data []byte, last bool) {
	s.kept = append(s.kept, data)
	s.whole = last
}

// Take returns the chunk that Next named, and goes on to the next. The caller adds Stream, and the
// header to chunk 0.
func (s *Stream) Take() wire.Chunk {
	i := s.sends - s.base
	c := wire.Chunk{Number: s.sends, Data: s.kept[i], Last: s.whole && i == uint64(len(s.kept))-1}
	s.sends++
	return c
}

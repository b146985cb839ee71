// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package ecraft

import (
	"sync"

	"github.com/klauspost/reedsolomon"
)

// coder multiplies input units by a matrix. Encoding computes parity units from the data units,
// decoding computes data units from held units: the same work with another matrix.
//
// The library has its fast kernels for at most maxIn inputs, maxOut outputs and whole blocks of
// bytes, so larger matrices are cut: into groups of outputs, and each group into passes over some
// of the inputs. Each pass after the first adds to the sums of the previous pass, which are its
// inputs, multiplied by 1.
type coder struct {
	in     int
	groups []group
	// chained says that there are groups of several passes. The bytes are then worked on in pieces
	// whose sums stay in the cache.
	chained bool
}

type group struct {
	first, count int // outputs
	passes       []pass
}

type pass struct {
	matrix   reedsolomon.Encoder
	from, to int // inputs
}

const (
	maxIn, maxOut = 10, 10
	// blockUnit is the length of a kernel's blocks, in bytes.
	blockUnit = 64
	// piece is the number of bytes of each unit that a chained group takes at a time.
	piece = 8 << 10
)

// newCoder returns the coder of a matrix: a row for each output, a column for
// each input.
func newCoder(rows [][]byte) (*coder, error) {
	c := &coder{in: len(rows[0])}
	most := maxOut
	if c.in > maxIn { // room for new inputs beside the sums
		c.chained, most = true, max(maxIn-(c.in-maxIn), maxIn/2)
	}
	groups := (len(rows) + most - 1) / most
	for g := range groups {
		first, end := g*len(rows)/groups, (g+1)*len(rows)/groups
		out := group{first: first, count: end - first}
		for from := 0; from < c.in; {
			to := min(from+maxIn, c.in)
			if from > 0 {
				to = min(from+maxIn-out.count, c.in)
			}
			matrix, err := newPass(rows[first:end], from, to)
			if err != nil {
				return nil, err
			}
			out.passes = append(out.passes, pass{matrix: matrix, from: from, to: to})
			from = to
		}
		c.groups = append(c.groups, out)
	}
	return c, nil
}

// newPass returns the matrix of a pass: the columns from..to and, in each pass after the first, the
// columns of the sums so far.
func newPass(rows [][]byte, from, to int) (reedsolomon.Encoder, error) {
	sums := 0
	if from > 0 {
		sums = len(rows)
	}
	matrix := make([][]byte, len(rows))
	for i, row := range rows {
		matrix[i] = append(make([]byte, 0, to-from+sums), row[from:to]...)
		for j := range sums {
			one := byte(0)
			if i == j {
				one = 1
			}
			matrix[i] = append(matrix[i], one)
		}
	}
	return reedsolomon.New(to-from+sums, len(rows), reedsolomon.WithCustomMatrix(matrix),
		reedsolomon.WithMaxGoroutines(1), reedsolomon.WithInversionCache(false))
}

// scratch is the memory of a call besides its shards.
type scratch struct {
	args   [][]byte
	sums   [2][]byte
	short  [][]byte // a block of blocks for each shard
	blocks []byte
}

var scratches = sync.Pool{New: func() any { return new(scratch) }}

// code computes the shards behind the inputs from the inputs. All have the same
// length.
func (c *coder) code(shards [][]byte) error {
	s := scratches.Get().(*scratch)
	defer s.free()
	n := len(shards[0])
	whole := n &^ (blockUnit - 1)
	step := max(whole, 1)
	if c.chained {
		step = piece
		if s.sums[0] == nil {
			s.sums = [2][]byte{make([]byte, maxOut*piece), make([]byte, maxOut*piece)}
		}
	}
	for at := 0; at < whole; at += step {
		if err := c.block(shards, at, min(at+step, whole), s); err != nil {
			return err
		}
	}
	switch {
	case whole == n:
		return nil
	case whole > 0: // the last block overlaps the previous block
		return c.block(shards, n-blockUnit, n, s)
	}
	if err := c.block(s.padded(shards), 0, blockUnit, s); err != nil {
		return err
	}
	for i := c.in; i < len(shards); i++ {
		copy(shards[i], s.short[i])
	}
	return nil
}

// padded returns shards of one block each that begin with the given shards.
func (s *scratch) padded(shards [][]byte) [][]byte {
	if need := len(shards) * blockUnit; len(s.blocks) < need {
		s.blocks = make([]byte, need)
	}
	s.short = s.short[:0]
	for i, shard := range shards {
		block := s.blocks[i*blockUnit : (i+1)*blockUnit]
		clear(block[copy(block, shard):])
		s.short = append(s.short, block)
	}
	return s.short
}

// block computes bytes from..to of the outputs.
func (c *coder) block(shards [][]byte, from, to int, s *scratch) error {
	for i := range c.groups {
		g := &c.groups[i]
		for j := range g.passes {
			p := &g.passes[j]
			args := s.args[:0]
			for _, shard := range shards[p.from:p.to] {
				args = append(args, shard[from:to])
			}
			if j > 0 {
				args = s.appendSums(args, 1-j&1, g.count, to-from)
			}
			if j < len(g.passes)-1 {
				args = s.appendSums(args, j&1, g.count, to-from)
			} else {
				for _, shard := range shards[c.in+g.first : c.in+g.first+g.count] {
					args = append(args, shard[from:to])
				}
			}
			s.args = args
			if err := p.matrix.Encode(args); err != nil {
				return err
			}
		}
	}
	return nil
}

// appendSums appends the sums that a pass of this parity writes or reads.
func (s *scratch) appendSums(args [][]byte, parity, count, length int) [][]byte {
	for i := range count {
		args = append(args, s.sums[parity][i*piece:][:length])
	}
	return args
}

// free forgets the shards, which others own.
func (s *scratch) free() {
	clear(s.args[:cap(s.args)])
	s.args = s.args[:0]
	scratches.Put(s)
}

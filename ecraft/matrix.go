// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package ecraft

import "sync"

// coderKey names a coder: its input units, if not the data units, and its output units.
type coderKey struct {
	d       int
	in, out Set
}

// coders caches coders for the whole process: few layouts and levels are in use at a time, and a
// matrix is expensive compared with a small payload.
var coders = struct {
	sync.RWMutex
	made map[coderKey]*coder
}{made: map[coderKey]*coder{}}

// maxCoders bounds coders.made. A group in steady state uses a handful; more are made when members
// fail in many ways.
const maxCoders = 256

func coderFor(key coderKey, rows func(coderKey) [][]byte) (*coder, error) {
	coders.RLock()
	c := coders.made[key]
	coders.RUnlock()
	if c != nil {
		return c, nil
	}
	c, err := newCoder(rows(key))
	if err != nil {
		return nil, err
	}
	coders.Lock()
	defer coders.Unlock()
	if len(coders.made) >= maxCoders {
		for other := range coders.made { // any entry may go, because it can be made again
			delete(coders.made, other)
			break
		}
	}
	coders.made[key] = c
	return c, nil
}

// encoderFor returns the coder of parity units from the data units.
func encoderFor(d int, parity Set) (*coder, error) {
	return coderFor(coderKey{d: d, out: parity}, encodingRows)
}

// decoderFor returns the coder of the data units that are not in the set in of d units.
func decoderFor(d int, in Set) (*coder, error) {
	return coderFor(coderKey{d: d, in: in}, decodingRows)
}

func encodingRows(key coderKey) [][]byte {
	var rows [][]byte
	for r := range key.out.all() {
		row := make([]byte, key.d)
		for c := range row {
			row[c] = generator(r, c)
		}
		rows = append(rows, row)
	}
	return rows
}

// decodingRows solves for the missing data units. Each held parity unit r is a sum over data units
// c of generator(r,c)*c: leave the missing data units on one side and invert the square matrix of
// their coefficients.
func decodingRows(key coderKey) [][]byte {
	var in, parity, missing []int
	for u := range key.in.all() {
		in = append(in, u)
		if u >= key.d {
			parity = append(parity, u)
		}
	}
	for c := range key.d {
		if !key.in.Has(c) {
			missing = append(missing, c)
		}
	}
	square := make([][]byte, len(parity))
	for i, r := range parity {
		square[i] = make([]byte, len(missing))
		for j, c := range missing {
			square[i][j] = generator(r, c)
		}
	}
	inv := invert(square)
	rows := make([][]byte, len(missing))
	for m := range rows {
		rows[m] = make([]byte, len(in))
		for j, u := range in {
			for i, r := range parity {
				switch {
				case u < key.d:
					rows[m][j] ^= mul(inv[m][i], generator(r, u))
				case u == r:
					rows[m][j] = inv[m][i]
				}
			}
		}
	}
	return rows
}

// invert returns the inverse of a square part of a Cauchy matrix, by Gauss and Jordan, and destroys
// a. No pivot is ever 0, because each top left part of a can be inverted, too.
func invert(a [][]byte) [][]byte {
	n := len(a)
	inv := make([][]byte, n)
	for i := range inv {
		inv[i] = make([]byte, n)
		inv[i][i] = 1
	}
	for col := range n {
		scale := inverse(a[col][col])
		for j := range n {
			a[col][j], inv[col][j] = mul(a[col][j], scale), mul(inv[col][j], scale)
		}
		for i := range n {
			factor := a[i][col]
			if i == col || factor == 0 {
				continue
			}
			for j := range n {
				a[i][j] ^= mul(factor, a[col][j])
				inv[i][j] ^= mul(factor, inv[col][j])
			}
		}
	}
	return inv
}

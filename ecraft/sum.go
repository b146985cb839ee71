// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package ecraft

import (
	"encoding/binary"
	"hash/crc32"
	"math/bits"
)

// A CRC is a remainder of polynomials over GF(2), so sums of parts can be combined: the
// sum of a followed by b is the sum of a times x^(8 len(b)), plus the sum of b. So a
// payload is summed once, as data units. Its own checksum, and its units' checksums,
// which cover their places too, follow.
//
// Polynomials are reflected as the CRC is: bit 31 is 1, bit 30 is x.

const sumOne = 1 << 31

// sumPowers[k] is x^(8 * 2^k).
var sumPowers = func() (p [32]uint32) {
	p[0] = sumOne >> 8
	for k := 1; k < len(p); k++ {
		p[k] = sumTimes(p[k-1], p[k-1])
	}
	return p
}()

// sumTimes returns the product of two polynomials, modulo the polynomial of the CRC.
func sumTimes(a, b uint32) (product uint32) {
	for ; a != 0; a <<= 1 {
		if a&sumOne != 0 {
			product ^= b
		}
		b = b>>1 ^ crc32.Castagnoli&-(b&1)
	}
	return product
}

// sumShift is the factor by which n following bytes multiply a sum.
func sumShift(n int) uint32 {
	p := uint32(sumOne)
	for ; n > 0; n &= n - 1 {
		p = sumTimes(sumPowers[bits.TrailingZeros(uint(n))], p)
	}
	return p
}

// sumPlace is the checksum of the two bytes at the beginning of a unit's checksum. The bytes are
// added one by one, because a slice of them would be allocated.
func sumPlace(slot, k int) uint32 {
	sum := ^uint32(0)
	sum = castagnoli[byte(sum)^byte(slot)] ^ sum>>8
	sum = castagnoli[byte(sum)^byte(k)] ^ sum>>8
	return ^sum
}

// Sum returns the CRC-32C of the payload; the header given to NewCodeword may lack this CRC. The sums
// of data units are kept, so that Seal does not sum these units again.
func (c *Codeword) Sum() uint32 {
	if c.h.D == 0 {
		return Checksum(c.payload)
	}
	n := c.h.UnitLen()
	shift := sumShift(n)
	total := uint32(0)
	c.sums = c.sums[:0]
	for u := range c.h.D {
		unit := c.dataUnit(u)
		sum := Checksum(unit)
		if len(unit) == n {
			total = sumTimes(shift, total) ^ sum
		} else {
			total = sumTimes(sumShift(len(unit)), total) ^ sum
			sum = crc32.Update(sum, castagnoli, zeros[:n-len(unit)])
		}
		c.sums = append(c.sums, sum)
	}
	c.shift = shift
	return total
}

// appendDataUnit is appendUnit for data unit u, which is unit k of a slot.
func (c *Codeword) appendDataUnit(dst []byte, slot, k, u int) []byte {
	n := c.h.UnitLen()
	if u >= len(c.sums) {
		return appendUnit(dst, slot, k, n, c.dataUnit(u))
	}
	data := c.dataUnit(u)
	dst = append(append(dst, data...), zeros[:n-len(data)]...)
	return binary.LittleEndian.AppendUint32(dst, sumTimes(c.shift, sumPlace(slot, k))^c.sums[u])
}

// Moved tells that the payload, with the same bytes, is at another place in memory now. Only Sum
// may have used the payload before.
func (c *Codeword) Moved(payload []byte) { c.payload = payload }

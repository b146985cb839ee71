// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package ecraft

// The field GF(2^8): bytes as polynomials over two elements, modulo
// x^8+x^4+x^3+x^2+1, written 0x11d. The element 2 generates all but 0.
const polynomial = 0x11d

// expTable[i] is 2^i, for i below 510; logTable is its inverse.
var expTable, logTable = func() (exp [510]byte, log [256]int) {
	x := 1
	for i := range 255 {
		exp[i], exp[i+255] = byte(x), byte(x)
		log[x] = i
		if x <<= 1; x > 255 {
			x ^= polynomial
		}
	}
	return exp, log
}()

func mul(a, b byte) byte {
	if a == 0 || b == 0 {
		return 0
	}
	return expTable[logTable[a]+logTable[b]]
}

// inverse returns 1/a; a is not 0.
func inverse(a byte) byte { return expTable[255-logTable[a]] }

// generator returns the coefficient of data unit c in parity unit r. As r and c are never equal,
// the parity rows are a Cauchy matrix: each square part of a Cauchy matrix can be inverted, and so
// any D units, data or parity, give the data back.
func generator(r, c int) byte { return inverse(byte(r ^ c)) }

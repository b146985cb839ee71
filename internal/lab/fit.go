// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package lab

import "math"

// Fit returns factors, none below zero, for which the sum of factors times counts is nearest to
// what was measured, in relative terms: by descent in one factor after the other, which is enough
// for a few of them. Row i of counts belongs to measured[i], and does not count unless that is
// above zero.
func Fit(counts [][]float64, measured []float64) []float64 {
	if len(counts) == 0 {
		return nil
	}
	// What remains of the squares: the descent needs the products of columns alone.
	n := len(counts[0])
	products, aims := make([][]float64, n), make([]float64, n)
	for k := range products {
		products[k] = make([]float64, n)
	}
	for i, row := range counts {
		if measured[i] <= 0 {
			continue
		}
		for k, x := range row {
			aims[k] += x / measured[i]
			for j, y := range row {
				products[k][j] += x * y / (measured[i] * measured[i])
			}
		}
	}
	factors := make([]float64, n)
	for range 100_000 {
		moved := 0.0
		for k := range factors {
			if products[k][k] == 0 {
				continue
			}
			rest := aims[k]
			for j, f := range factors {
				if j != k {
					rest -= f * products[k][j]
				}
			}
			was := factors[k]
			factors[k] = max(0, rest/products[k][k])
			if most := max(was, factors[k]); most > 0 {
				moved = max(moved, math.Abs(factors[k]-was)/most)
			}
		}
		if moved < 1e-9 {
			break
		}
	}
	return factors
}

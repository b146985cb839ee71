// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package costs

// Fitted is the costs of this code, in nanoseconds, as weftbench costs printed them with
// docs/data/costs.md, which has the error of the fit. Another run gives other figures, here and in
// simulations.
var Fitted = Costs{
	Second:   5291587,
	FrameOut: 6192,
	FrameIn:  7318,
	KiBOut:   825,
	KiBIn:    395,
	Message:  2088,
	Write:    183842,
	Entry:    0,
	LogKiB:   1826,
	Apply:    339,
	Propose:  2910,
	Read:     2277,
	Lean:     5814,
	RPC:      25253,
	CallKiB:  1423,
}

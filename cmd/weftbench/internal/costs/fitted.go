// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package costs

// Fitted is the costs of this code, in nanoseconds, as weftbench costs printed them with
// docs/data/costs.md, which has the error of the fit. Another run gives other figures, here and in
// simulations.
var Fitted = Costs{
	Second:   8441285,
	FrameOut: 8894,
	FrameIn:  5571,
	KiBOut:   1264,
	KiBIn:    1338,
	Message:  2257,
	Write:    186986,
	Entry:    0,
	LogKiB:   348,
	Apply:    19,
	Propose:  3109,
	Read:     2859,
	Lean:     5623,
	RPC:      26586,
	CallKiB:  1382,
}

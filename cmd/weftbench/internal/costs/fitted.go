// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package costs

// Fitted is the costs of this code, in nanoseconds, as weftbench costs printed them with
// docs/data/costs.md, which has the error of the fit. Another run gives other figures, here and in
// simulations.
var Fitted = Costs{
	Second:   6878849,
	FrameOut: 9692,
	FrameIn:  7348,
	KiBOut:   1041,
	KiBIn:    630,
	Message:  1463,
	Write:    159379,
	Entry:    0,
	LogKiB:   2053,
	Apply:    133,
	Propose:  2602,
	Read:     2548,
	Lean:     5443,
	RPC:      21965,
	CallKiB:  754,
}

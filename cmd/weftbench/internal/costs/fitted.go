// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package costs

// Fitted is the costs of this code, in nanoseconds, as weftbench costs wrote them with
// docs/data/costs.md, which has the error of the fit. Another run gives other figures, here and in
// simulations.
var Fitted = Costs{
	Second:     1733429,
	Sleep:      16247,
	WakeSecond: 7935197,
	WakeWrite:  162132,
	Wake:       14880,
	FrameOut:   2448,
	FrameIn:    0,
	KiBOut:     570,
	KiBIn:      0,
	Message:    2434,
	Write:      95901,
	Entry:      0,
	LogKiB:     1364,
	Apply:      0,
	Propose:    5670,
	Read:       2481,
	Lean:       2515,
	RPC:        23867,
	CallKiB:    2043,
}

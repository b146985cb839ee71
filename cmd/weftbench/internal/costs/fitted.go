// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package costs

// Fitted is the costs of this code, in nanoseconds, as weftbench costs wrote them with
// docs/data/costs.md, which has the error of the fit. Another run gives other figures, here and in
// simulations.
var Fitted = Costs{
	Second:     4388715,
	Sleep:      14592,
	WakeSecond: 4784455,
	WakeWrite:  96396,
	Wake:       13511,
	FrameOut:   5858,
	FrameIn:    0,
	KiBOut:     653,
	KiBIn:      219,
	Message:    1894,
	Write:      90209,
	Entry:      0,
	LogKiB:     826,
	Apply:      0,
	Propose:    5061,
	Read:       2904,
	Lean:       2023,
	RPC:        21500,
	CallKiB:    1325,
}

// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package costs

// Fitted is the costs of this code, in nanoseconds, as weftbench costs wrote them with
// docs/data/costs.md, which has the error of the fit. Another run gives other figures, here and in
// simulations.
var Fitted = Costs{
	Second:     2922544,
	Sleep:      16071,
	WakeSecond: 6073395,
	WakeWrite:  114066,
	Wake:       15033,
	FrameOut:   1440,
	FrameIn:    0,
	KiBOut:     994,
	KiBIn:      649,
	Message:    2751,
	Write:      65191,
	Entry:      0,
	LogKiB:     1562,
	Apply:      0,
	Propose:    5051,
	Read:       2486,
	Lean:       2206,
	RPC:        23290,
	CallKiB:    1820,
}

// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"errors"
	"time"

	"github.com/weftraft/weft/internal/process"
)

// machine is the processor time of the whole machine and of this process so far.
type machine struct {
	process.Machine
	self time.Duration
}

func readMachine() (machine, error) {
	m := machine{process.MachineTime(), process.OwnCPU()}
	if m.All == 0 {
		return m, errors.New("the system does not say how busy its processors are (this needs Linux)")
	}
	return m, nil
}

// others returns the share of the machine's processors, 0 to 1, that was used since before by
// neither this process nor the members. The share includes the kernel's work for the network.
func (m machine) others(before machine, members time.Duration) float64 {
	busy := m.Busy - before.Busy - (m.self - before.self) - members
	return max(0, busy.Seconds()/(m.All-before.All).Seconds())
}

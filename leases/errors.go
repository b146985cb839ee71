// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package leases

import (
	"errors"
	"fmt"
)

// ErrMalformed is wrapped by the errors of impossible bytes and messages.
// Nothing of the message has been taken.
var ErrMalformed = errors.New("leases: malformed")

// ErrNotLeader is returned by calls that only a leader can answer.
var ErrNotLeader = errors.New("leases: this node does not lead; ask the leader")

// ErrClocks is wrapped by the errors of messages whose sender's clock, by the sender's settings,
// keeps time so badly that no lease between the two nodes could be renewed in time. None was granted or
// taken.
var ErrClocks = errors.New("leases: settings of clocks differ")

// ErrConfig is wrapped by the errors of Config.Validate.
var ErrConfig = errors.New("leases: Config")

func malformed(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrMalformed, fmt.Sprintf(format, args...))
}

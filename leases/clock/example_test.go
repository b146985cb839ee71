// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package clock_test

import (
	"fmt"
	"time"

	"github.com/weftraft/weft/leases/clock"
)

// A host looks at its clock before it turns leases on, and reads it from then on.
func Example() {
	if err := clock.Check(100 * time.Millisecond); err != nil {
		fmt.Println(err)
		return
	}
	var c clock.Boottime
	before := c.Now()
	fmt.Println("the clock falls:", c.Now() < before)
	// Output: the clock falls: false
}

// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package register

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestCheck(t *testing.T) {
	write := Access{Client: 1, Kind: Write, Call: 1, Return: 2, Value: 7, Known: true}
	lost := Access{Client: 1, Kind: Write, Call: 1, Value: 7}
	read := func(value uint32, call int64) Access {
		return Access{Client: 2, Kind: Read, Call: call, Return: call + 1, Value: value, Known: true}
	}
	swap := func(known, swapped bool) Access {
		return Access{Client: 3, Kind: Swap, Call: 3, Return: 4, Old: 7, Value: 8, Known: known, Swapped: swapped}
	}
	for name, tt := range map[string]struct {
		history []Access
		want    bool
	}{
		"nothing":                        {nil, true},
		"a read of the start":            {[]Access{read(0, 1)}, true},
		"a read after a write":           {[]Access{write, read(7, 3)}, true},
		"a stale read":                   {[]Access{write, read(0, 3)}, false},
		"a read of the future":           {[]Access{read(7, -1), write}, false},
		"a write without result, late":   {[]Access{lost, read(0, 3), read(7, 5)}, true},
		"a write that is taken back":     {[]Access{lost, read(7, 3), read(0, 5)}, false},
		"a read without result":          {[]Access{write, {Client: 2, Call: 3}}, true},
		"a swap":                         {[]Access{write, swap(true, true), read(8, 5)}, true},
		"a swap that says it did not":    {[]Access{write, swap(true, false), read(8, 5)}, false},
		"a swap that says it did":        {[]Access{swap(true, true)}, false},
		"a swap without result, hit":     {[]Access{write, swap(false, false), read(8, 5)}, true},
		"a swap without result, not yet": {[]Access{write, swap(false, false), read(7, 5)}, true},
	} {
		t.Run(name, func(t *testing.T) {
			err := Check(tt.history, func(a Access) Access { return a })
			require.Equal(t, tt.want, err == nil, "%v", err)
		})
	}
}

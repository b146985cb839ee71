// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package mutate

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// A mutant whose text has gone, or that the compiler would refuse, is reported before anybody
// waits for its tests.
func TestCheckReportsMutantsThatAreNone(t *testing.T) {
	const file = "rafttest/internal/mutate/mutate.go"
	for name, tt := range map[string]struct {
		old, now string
		want     string
	}{
		"good":   {"errSame     = errors.New(", "errSame error = fmt.Errorf(", ""},
		"absent": {"no such" + " text", "", "does not occur exactly once"},
		"unused": {"	seen := map[string]bool{}\n", "	seen, none := map[string]bool{}, 0\n", "declared and not used: none"},
		"typed":  {"	seen := map[string]bool{}\n", "	seen := map[string]string{}\n", "non-boolean"},
		"import": {"func Root(ctx context.Context) (string, error) {\n", "func Root(context.Context) (string, error) {\n	ctx := error(nil)\n", "does not implement context.Context"},
		// What the mutant changes may be all right, and what uses it not.
		"others": {"scratch string, number int) (f Finding)", "scratch string, number int, _ bool) (f Finding)", "run.go"},
	} {
		t.Run(name, func(t *testing.T) {
			err := Check(t.Context(), []Mutant{{What: name, File: file, Edits: [][2]string{{tt.old, tt.now}}}})
			if tt.want == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, tt.want)
		})
	}
}
